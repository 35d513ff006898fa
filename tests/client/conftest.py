"""Fixtures of the client tests; the rig itself is in client_rig.py."""

from collections.abc import Iterator

import pytest

from profilesvc.client import AsyncOptions, ProfileClient, Retries, SyncOptions
from profilesvc.contract.keys import KeyCreated
from profilesvc.domain.time import FrozenClock
from profilesvc.settings import Settings
from support.clients.sdk import Recorded, Service, new_key


@pytest.fixture
def database() -> str:
    """The client does not depend on the database."""
    return "sqlite"


@pytest.fixture
def service(settings: Settings, clock: FrozenClock) -> Iterator[Service]:
    """A service whose access tokens last an hour, so that they end before their refresh tokens."""
    lifetimes = settings.tokens.model_copy(update={"access_ttl_seconds": 3600})
    running = Service(settings.model_copy(update={"tokens": lifetimes}), clock)
    yield running
    running.stop()


@pytest.fixture
def recorded() -> Recorded:
    return Recorded()


@pytest.fixture
def options(service: Service, recorded: Recorded) -> SyncOptions:
    """The service's clock, recorded calls, and pauses that move that clock."""
    pause = lambda seconds: service.clock.advance(seconds=seconds)  # noqa: E731
    return {"transport": recorded, "clock": service.seconds, "sleep": pause, "retries": Retries(chance=lambda: 1.0)}


@pytest.fixture
def async_options(service: Service, recorded: Recorded) -> AsyncOptions:
    async def pause(seconds: float) -> None:
        service.clock.advance(seconds=seconds)

    return {"transport": recorded, "clock": service.seconds, "sleep": pause, "retries": Retries(chance=lambda: 1.0)}


@pytest.fixture
def alice(service: Service) -> Iterator[ProfileClient]:
    with ProfileClient.user(service.url, service.user_token()) as client:
        yield client


@pytest.fixture
def key(alice: ProfileClient) -> KeyCreated:
    return new_key(alice)


@pytest.fixture
def site(service: Service, key: KeyCreated, options: SyncOptions) -> Iterator[ProfileClient]:
    """A plugin of locations/111."""
    with ProfileClient.service(service.url, key.client_id, key.client_secret, **options) as client:
        yield client
