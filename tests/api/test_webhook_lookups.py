"""When the host of a webhook is looked up, who waits for a silent name server, and that each id has one body."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import httpx
import orjson
import pytest

from api.webhook_rounds import channel, deliver
from conftest import Change
from profilesvc.contract.events import QuotaWarning
from profilesvc.contract.webhooks import DeliveryEntry
from profilesvc.delivery import requests
from profilesvc.delivery.transport import Transport
from profilesvc.delivery.webhooks import WebhookSender
from profilesvc.delivery.worker import Worker
from profilesvc.domain.time import FrozenClock
from profilesvc.limits.settings import LimitSettings
from profilesvc.services import events
from profilesvc.services.context import Caller, Services
from profilesvc.services.notify import resolving
from profilesvc.services.notify.resolving import Lookups
from profilesvc.storage.notify import channels
from support.api import assert_error, assert_ok
from support.network.name_servers import NameServer, names_by, serving_names
from support.network.receivers import receiving, responding

pytestmark = [
    pytest.mark.in_process("the resolver of the test"),
    pytest.mark.parametrize("database", ["sqlite"]),
]
WEBHOOKS = "/api/v1/webhooks"
SILENT = "https://silent.example/hook"


class Names:
    """A resolver of the test; it records each question with its owner."""

    def __init__(self) -> None:
        self.asked: list[tuple[int, str]] = []

    async def __call__(self, owner_id: int, host: str) -> list[str]:
        self.asked.append((owner_id, host))
        return ["8.8.8.8"]


@pytest.fixture
def names(change: Change) -> Names:
    made = Names()
    change(resolver=made)
    return made


@pytest.fixture
async def server() -> AsyncIterator[NameServer]:
    async with serving_names({"good.example": ["127.0.0.1"]}) as made:
        yield made


async def test_a_change_looks_a_host_up_only_if_the_url_differs(alice: httpx.AsyncClient, names: Names) -> None:
    made = assert_ok(await alice.post(WEBHOOKS, json={"url": "https://a.example/x"}), 201)
    assert names.asked == [(1, "a.example")]
    path = f"{WEBHOOKS}/{made['id']}"
    same = ("https://a.example/x", "HTTPS://A.example:443/x", "https://a.example./x")
    for body in ({"description": "d"}, {"enabled": True}, *({"url": url} for url in same)):
        assert_ok(await alice.patch(path, json=body))
    assert len(names.asked) == 1
    assert_ok(await alice.patch(path, json={"url": "https://b.example/x"}))
    assert names.asked[1:] == [(1, "b.example")]


async def test_no_host_is_looked_up_for_a_refused_request(alice: httpx.AsyncClient, names: Names) -> None:
    assert_error(await alice.patch(f"{WEBHOOKS}/99", json={"url": SILENT}), 404, "NOT_FOUND")
    for number in range(10):
        assert_ok(await alice.post(WEBHOOKS, json={"url": f"https://{number}.example/"}), 201)
    assert_error(await alice.post(WEBHOOKS, json={"url": SILENT}), 403, "PLAN_RESTRICTION")
    assert len(names.asked) == 10


async def test_lookups_are_counted_by_their_owner(alice: httpx.AsyncClient, names: Names, change: Change) -> None:
    made = assert_ok(await alice.post(WEBHOOKS, json={"url": "https://a.example/"}), 201)
    change(resolver=names, limits=LimitSettings.model_validate({"calls_per_user": "3/minute"}))
    path = f"{WEBHOOKS}/{made['id']}"
    for number in range(3):
        assert_ok(await alice.patch(path, json={"url": f"https://{number}.example/"}))
    assert_error(await alice.patch(path, json={"url": "https://3.example/"}), 429, "RATE_LIMITED")
    assert_error(await alice.post(WEBHOOKS, json={"url": "https://4.example/"}), 429, "RATE_LIMITED")
    assert_ok(await alice.patch(path, json={"description": "no lookup"}))
    assert len(names.asked) == 4


async def test_a_url_with_a_silent_name_server_is_accepted_and_looked_up_no_longer(
    alice: httpx.AsyncClient, change: Change, server: NameServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("profilesvc.services.notify.webhooks._RESOLVE_SECONDS", 0.05)
    lookups = Lookups(names_by(server).query)
    change(resolver=lookups)
    urls = [f"https://{number}.silent.example/" for number in range(10)]
    made = await asyncio.gather(*(alice.post(WEBHOOKS, json={"url": url}) for url in urls))
    for response in made:
        assert_ok(response, 201)
    assert lookups._turns == {}, "a lookup ends with the request that needed it"


async def happen(services: Services, owner_id: int) -> None:
    async with services.storage.write() as session:
        warned = QuotaWarning(used=8, limit=10, month="2026-01")
        events.publish(services, session, owner_id, events.new("quota.warning", warned))


async def test_a_silent_name_server_stops_only_the_owner_who_named_it(
    allowed: Services, server: NameServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(resolving, "SECONDS", 60.0)
    monkeypatch.setattr("profilesvc.delivery.transport.SECONDS", 60.0)
    transport = Transport(allow_private=True, resolver=Lookups(names_by(server).query))
    for number in range(30):
        await channel(allowed, f"https://{number}.silent.example/")
    async with receiving(responding(204, body=b"")) as receiver:
        await of_owner(allowed, 2, f"http://good.example:{receiver.port}/")
        await happen(allowed, 1)
        worker = Worker(allowed, {"webhook": WebhookSender(transport)})
        assert await worker.run_round() == 30
        for _ in range(5):
            await happen(allowed, 2)
            await worker.run_round()
            await asyncio.gather(*(call for call, first in worker._calls.items() if first.owner_id == 2))
        assert len(receiver.got) == 5
        assert len(worker._calls) >= 30, "those of the silent names still wait"
        assert len({name for name, _ in server.asked if "silent" in name}) == 1
    await worker.stop()
    await transport.aclose()


async def of_owner(services: Services, owner_id: int, url: str) -> int:
    async with services.storage.write() as session:
        made: dict[str, Any] = {"kind": "webhook", "target": url, "nonce": "n", "created_at": 0, "confirmed_at": 0}
        number = await channels.add(session, owner_id, url, **made)
    assert number is not None
    return number


async def test_a_test_has_the_same_body_at_each_attempt_and_on_its_page(
    alice: httpx.AsyncClient, allowed: Services, local: Transport, clock: FrozenClock
) -> None:
    async with receiving(responding(500)) as receiver:
        number = await channel(allowed, receiver.url)
        made = [assert_ok(await alice.post(f"{WEBHOOKS}/{number}/test")) for _ in range(2)]
        for _ in range(3):
            for _ in range(2):
                await deliver(allowed, local)
            clock.advance(days=2)
    bodies: dict[str, set[bytes]] = {}
    for request in receiver.got:
        bodies.setdefault(request.headers["webhook-id"], set()).add(request.body)
    assert len(receiver.got) == 6
    assert len({request.headers["webhook-timestamp"] for request in receiver.got}) == 3, (
        "each attempt has a new signature"
    )
    assert [len(its) for its in bodies.values()] == [1, 1]
    caller = Caller(1, allowed.plans["pro"], frozenset())
    entry = DeliveryEntry.model_validate(
        assert_ok(await alice.get(f"{WEBHOOKS}/{number}/deliveries"))["deliveries"][-1]
    )
    shown = await requests.sent_request(allowed, caller, number, entry)
    assert shown is not None
    assert {orjson.dumps(orjson.loads(shown.body))} == bodies[shown.headers["webhook-id"]]
    assert entry.id == made[0]["id"]
