"""The service with a foreign identity provider configured, and Alice linked to her login there."""

from collections.abc import Iterator

import httpx
import pytest
from quart import Quart

from profilesvc.domain.time import FrozenClock
from profilesvc.operations import operator
from profilesvc.services.context import Services
from profilesvc.settings import IdentitySettings, Settings
from support.api import ALICE
from support.identity.issuer import CLIENT, ISSUER, FakeIssuer, Logins


@pytest.fixture
def issuer() -> Iterator[FakeIssuer]:
    with FakeIssuer() as fake:
        yield fake


@pytest.fixture
def settings(settings: Settings, issuer: FakeIssuer) -> Settings:
    identity = IdentitySettings(
        issuer=ISSUER, jwks_url=issuer.url, client_id=CLIENT, algorithms=("RS256", "PS256", "ES256", "EdDSA")
    )
    return settings.model_copy(update={"identity": identity})


@pytest.fixture
async def linked(app: Quart, services: Services) -> str:
    """The subject by which the issuer knows Alice."""
    return (await operator.link(services, ALICE, "alice-at-login")).subject


@pytest.fixture
def canary() -> Iterator[FakeIssuer]:
    """The attacker's server, which must never get a request."""
    with FakeIssuer() as fake:
        yield fake


@pytest.fixture
def login(http: httpx.AsyncClient, clock: FrozenClock) -> Logins:
    return Logins(http, clock)
