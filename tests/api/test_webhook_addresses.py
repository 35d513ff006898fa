"""Attempts to reach private addresses: at the registration of a webhook, and at each attempt of a delivery."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import httpx
import orjson
import pytest

from api.webhook_rounds import channel, deliver, deliveries_of, happen, only
from profilesvc.delivery.transport import Transport
from profilesvc.domain.time import FrozenClock
from profilesvc.services.context import Services
from support.api import assert_error, assert_ok, fields
from support.cases.webhook_urls import PRIVATE_ADDRESSES, REFUSED
from support.network.receivers import receiving, responding

pytestmark = pytest.mark.parametrize("database", ["sqlite"])
IN_PROCESS = pytest.mark.in_process("runs the rounds of the worker itself")
PUBLIC = "93.184.215.14"
LEADS_TO_PRIVATE = "the host name leads to a private address"
WEBHOOKS = "/api/v1/webhooks"


class Network:
    """A network that records where connections go, and refuses them."""

    def __init__(self) -> None:
        self.addresses: list[str] = []

    async def connect(self, address: str, *_more: Any) -> Any:
        self.addresses.append(address)
        raise ConnectionRefusedError


class Names:
    """A resolver of the test; it records each question."""

    def __init__(self) -> None:
        self.addresses: list[str] = [PUBLIC]
        self.asked: list[str] = []

    async def __call__(self, _owner_id: int, host: str) -> list[str]:
        self.asked.append(host)
        return self.addresses


@pytest.fixture
def names() -> Names:
    return Names()


@pytest.fixture
def network() -> Network:
    return Network()


@pytest.fixture
async def by(names: Names, network: Network) -> AsyncIterator[Transport]:
    """The transport of production: names by the resolver of the test, connections to its network."""
    made = Transport(resolver=names, connect=network.connect)
    yield made
    await made.aclose()


async def test_A160_each_url_is_rejected_when_it_is_registered(alice: httpx.AsyncClient) -> None:
    for url in REFUSED:
        response = await alice.post(WEBHOOKS, json={"url": url})
        assert fields(assert_error(response, 400, "VALIDATION_ERROR")) == ["url"], url
    assert assert_ok(await alice.get(WEBHOOKS))["webhooks"] == []


@IN_PROCESS
async def test_A160_each_url_is_refused_at_each_attempt(
    services: Services, clock: FrozenClock, by: Transport, names: Names, network: Network
) -> None:
    """As if it had been stored by a version with fewer rules: it is not even resolved."""
    for url in REFUSED:
        await channel(services, url)
    await happen(services)
    for _ in range(3):
        for _ in range(len(REFUSED) // 100 + 2):
            await deliver(services, by)
        due = [row.next_at for row in await deliveries_of(services)]
        clock.advance(milliseconds=max(due) - clock.now())
    rows = await deliveries_of(services)
    assert len(rows) == len(REFUSED) >= 60
    for row, expected in zip(rows, REFUSED.values(), strict=True):
        made = orjson.loads(row.attempts)
        assert [attempt["error"] for attempt in made] == [expected] * 3
        assert [attempt["response"] for attempt in made] == [None] * 3
    assert (names.asked, network.addresses) == ([], [])


@IN_PROCESS
@pytest.mark.parametrize("address", PRIVATE_ADDRESSES)
async def test_A160_a_name_that_changes_to_a_private_address(
    services: Services, clock: FrozenClock, by: Transport, names: Names, network: Network, address: str
) -> None:
    """Public when it is registered and at the first attempt; then private, alone or among public ones; then public."""
    await channel(services, "https://hooks.example./x")
    await happen(services)
    errors = []
    turns = [[PUBLIC], [address], [PUBLIC, address], [address, PUBLIC], [PUBLIC]]
    for names.addresses in turns:
        await deliver(services, by)
        row, attempt = await only(services)
        errors.append(attempt["error"])
        assert attempt["response"] is None
        clock.advance(milliseconds=row.next_at - clock.now())
    assert errors[1:4] == [LEADS_TO_PRIVATE] * 3
    assert network.addresses == [PUBLIC] * 2, "no connection in between"
    assert names.asked == ["hooks.example"] * len(turns), "the name is resolved for each attempt"


@IN_PROCESS
@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
async def test_A160_a_redirect_to_a_private_address_is_not_followed(
    allowed: Services, local: Transport, status: int
) -> None:
    async with (
        receiving(responding(200, body=b"secret")) as private,
        receiving(responding(status, f"Location: {private.url}", body=b"moved")) as receiver,
    ):
        await channel(allowed, receiver.url)
        await happen(allowed)
        await deliver(allowed, local)
        assert (len(receiver.got), private.got) == (1, [])
    _, attempt = await only(allowed)
    assert (attempt["status"], attempt["error"]) == (status, "redirects are not followed")


@IN_PROCESS
@pytest.mark.parametrize("status", [200, 302, 400, 410, 500])
async def test_A160_the_body_of_a_private_address_is_never_shown(
    allowed: Services, local: Transport, alice: httpx.AsyncClient, status: int
) -> None:
    """Not even in development, which may send there."""
    async with receiving(responding(status, "X-Secret: header", body=b"secret-body")) as receiver:
        number = await channel(allowed, receiver.url)
        await happen(allowed)
        await deliver(allowed, local)
        assert len(receiver.got) == 1
    row, attempt = await only(allowed)
    assert (attempt["status"], attempt["response"]) == (status, None)
    assert "secret" not in row.attempts
    shown = await alice.get(f"{WEBHOOKS}/{number}/deliveries")
    assert len(assert_ok(shown)["deliveries"]) == 1
    assert "secret" not in shown.text


@IN_PROCESS
async def test_A160_a_kept_connection_stays_at_the_address_that_was_checked(
    allowed: Services, clock: FrozenClock, names: Names
) -> None:
    """A second request to a name uses the connection to the checked address, whatever the name means by then."""
    made = Transport(allow_private=True, resolver=names)
    names.addresses = ["127.0.0.1"]
    async with receiving(responding(200)) as receiver:
        await channel(allowed, f"http://hooks.example:{receiver.port}/")
        for names.addresses in (["127.0.0.1"], ["127.0.0.2"]):
            await happen(allowed)
            await deliver(allowed, made)
        assert len(receiver.got) == 2
        assert len(names.asked) == 1
    await made.aclose()
    await asyncio.sleep(0)
