"""The access matrix and the tests of tenants by HTTP, on a deployment of one process and of four."""

import asyncio
from collections.abc import AsyncIterator, Iterator

import httpx
import pytest

from api.test_access_matrix import callers, test_every_response_is_the_one_of_the_policy
from api.test_tenancy import (
    attacker,
    test_an_idempotency_value_replays_nothing_of_another,
    test_another_tenants_key_looks_missing,
    test_another_tenants_location_looks_missing,
    test_no_header_leads_elsewhere,
    test_page_tokens_and_idempotency_keys_are_useless_to_others,
    test_tokens_of_another_caller_look_invalid,
    untouched,
)
from conftest import AsService, Dial, Postgres
from profilesvc.bootstrap import Runtime, open_services
from profilesvc.services.context import Services
from support.api import Site
from support.fleet.deployment import Deployment, deployed
from support.program import controls

__all__ = [  # what pytest finds here: the tests, and the fixtures that they ask for
    "attacker",
    "callers",
    "test_an_idempotency_value_replays_nothing_of_another",
    "test_another_tenants_key_looks_missing",
    "test_another_tenants_location_looks_missing",
    "test_every_response_is_the_one_of_the_policy",
    "test_no_header_leads_elsewhere",
    "test_page_tokens_and_idempotency_keys_are_useless_to_others",
    "test_tokens_of_another_caller_look_invalid",
    "untouched",
    "victim",
]
pytestmark = [pytest.mark.postgres, pytest.mark.long]


@pytest.fixture(scope="module", params=[1, 4], ids=["one process", "four processes"])
def started(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, postgres: Postgres
) -> Iterator[tuple[Deployment, str]]:
    """A deployment, and the statement that resets its database to the demo data."""
    with deployed(tmp_path_factory.mktemp("deployed"), request.param, postgres) as running:
        yield running, postgres.keep(f"deployed_{request.param}")


@pytest.fixture
async def deployment(started: tuple[Deployment, str]) -> Deployment:
    """The demo data, as after a new deployment."""
    running, restore = started
    await running.sql(restore)
    with controls(running.service.folder / "var", running.emulator.url) as control:
        assert (await asyncio.to_thread(control.post, "reset")).is_success
    return running


@pytest.fixture
def dial(deployment: Deployment) -> Dial:
    """A client with a new connection for each request, so that every process gets some of them."""

    def client(token: str | None = None) -> httpx.AsyncClient:
        headers = {} if token is None else {"Authorization": f"Bearer {token}"}
        url, limits = deployment.service.url, httpx.Limits(max_keepalive_connections=0)
        return httpx.AsyncClient(base_url=url, headers=headers, limits=limits, timeout=60, trust_env=False)

    return client


@pytest.fixture
async def victim(as_service: AsService) -> Site:
    """Its grant is in the audit trail, which another process writes a tenth of a second later."""
    site = await as_service("locations/111")
    await asyncio.sleep(0.3)
    return site


@pytest.fixture
async def services(deployment: Deployment) -> AsyncIterator[Services]:
    """The operator's services, on the same database."""
    async with open_services(deployment.settings, Runtime(), provider=False) as opened:
        yield opened


@pytest.fixture
async def emulator(deployment: Deployment) -> AsyncIterator[httpx.AsyncClient]:
    """A client of the provider's control API."""
    async with httpx.AsyncClient(base_url=deployment.emulator.url, trust_env=False, timeout=60) as client:
        yield client
