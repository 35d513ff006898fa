"""Webhooks by the API: what is refused and why, the plan's limit, secrets, foreign ids, recover."""

import asyncio
from typing import Any

import httpx
import pytest
from sqlalchemy.ext.asyncio import AsyncSession

from conftest import ON_POSTGRES, AsUser, Change
from profilesvc.contract.events import QuotaWarning
from profilesvc.database.engine import at_the_end
from profilesvc.domain import webhooks as rules
from profilesvc.domain.time import DAY, FrozenClock, iso
from profilesvc.services import events
from profilesvc.services.context import Services
from profilesvc.storage.notify import channels
from profilesvc.storage.notify import deliveries as stored_deliveries
from support.api import BOB, Site, assert_error, assert_ok
from support.cases.webhook_urls import PRIVATE, REFUSED

WEBHOOKS = "/api/v1/webhooks"
URL = "https://hooks.example/profiles"


async def create(owner: httpx.AsyncClient, url: str = URL, **more: Any) -> dict[str, Any]:
    made: dict[str, Any] = assert_ok(await owner.post(WEBHOOKS, json={"url": url, **more}), 201)
    return made


async def problem(response: httpx.Response) -> tuple[str, str]:
    [error] = assert_error(response, 400, "VALIDATION_ERROR")["errors"]
    return error["field"], error["problem"]


@pytest.mark.parametrize("database", ["sqlite"])
async def test_A153_A154_a_url_is_refused_with_its_rule(alice: httpx.AsyncClient) -> None:
    for url, rule in REFUSED.items():
        if "\x00" not in url:
            assert await problem(await alice.post(WEBHOOKS, json={"url": url})) == ("url", rule), url
    made = await create(alice)
    for url, rule in list(REFUSED.items())[:3]:
        response = await alice.patch(f"{WEBHOOKS}/{made['id']}", json={"url": url})
        assert await problem(response) == ("url", rule)


@pytest.mark.in_process("the resolver of the test")
@pytest.mark.parametrize("database", ["sqlite"])
async def test_A155_a_name_that_leads_to_a_private_address_is_refused(alice: httpx.AsyncClient, change: Change) -> None:
    async def resolve(_owner_id: int, host: str) -> list[str]:
        return {"good.example": ["8.8.8.8", "2606:4700::1111"], "mixed.example": ["8.8.8.8", "10.0.0.1"]}[host]

    change(resolver=resolve)
    assert await problem(await alice.post(WEBHOOKS, json={"url": "https://mixed.example/"})) == ("url", PRIVATE)
    await create(alice, "https://good.example/")


async def test_A156_other_fields_are_checked(alice: httpx.AsyncClient) -> None:
    for body, field in [
        ({}, "url"),
        ({"url": 1}, "url"),
        ({"url": URL, "types": ["key.lost"]}, "types.0"),
        ({"url": URL, "types": "key.created"}, "types"),
        ({"url": URL, "description": "x" * 201}, "description"),
        ({"url": URL, "format": "irc"}, "format"),
    ]:
        assert (await problem(await alice.post(WEBHOOKS, json=body)))[0] == field
    made = await create(alice)
    since = f"{WEBHOOKS}/{made['id']}/recover"
    for value in ("yesterday", "2027-01-02T00:00:00Z"):
        assert (await problem(await alice.post(since, json={"since": value})))[0] == "since"
    assert_ok(await alice.post(since, json={"since": "2020-01-02T00:00:00Z"}))  # events are kept for 30 days


async def test_A157_an_endpoint_is_used_once(alice: httpx.AsyncClient, as_user: AsUser) -> None:
    first = await create(alice)
    for same in (URL, "HTTPS://HOOKS.example:443/profiles"):
        expected = ("url", "is used by another of your webhooks")
        assert await problem(await alice.post(WEBHOOKS, json={"url": same})) == expected
    await create(alice, "https://[2606:4700:4700::1111]/profiles")
    for same in ("https://[2606:4700:4700:0:0:0:0:1111]/profiles", "https://[2606:4700:4700:0::1111]:443/profiles"):
        assert (await problem(await alice.post(WEBHOOKS, json={"url": same})))[0] == "url"
    other = await create(alice, f"{URL}/2")
    response = await alice.patch(f"{WEBHOOKS}/{other['id']}", json={"url": URL})
    assert await problem(response) == ("url", "is used by another of your webhooks")
    assert_ok(await alice.patch(f"{WEBHOOKS}/{first['id']}", json={"url": URL}))
    await create(await as_user(BOB))


async def test_A158_the_plan_limits_their_number(alice: httpx.AsyncClient) -> None:
    limit = assert_ok(await alice.get(WEBHOOKS))["limit"]
    for number in range(limit):
        await create(alice, f"{URL}/{number}")
    details = assert_error(await alice.post(WEBHOOKS, json={"url": URL}), 403, "PLAN_RESTRICTION")
    assert details["limit"] == limit == 10


async def test_the_secret_is_shown_when_it_is_made_and_never_again(
    alice: httpx.AsyncClient, services: Services
) -> None:
    made = await create(alice)
    rolled = assert_ok(await alice.post(f"{WEBHOOKS}/{made['id']}/roll"))
    assert made["secret"] != rolled["secret"]
    for response in (await alice.get(WEBHOOKS), await alice.get(f"{WEBHOOKS}/{made['id']}")):
        assert rules.PREFIX not in response.text
        assert response.headers["cache-control"] == "no-store"
    assert rolled["previous_secret_expires_at"] == iso(services.clock.now() + DAY)
    chat = await create(alice, "https://chat.example/", format="slack")
    assert chat["secret"] is None
    assert_error(await alice.post(f"{WEBHOOKS}/{chat['id']}/roll"), 404, "NOT_FOUND")


async def test_A159_another_owner_finds_nothing(alice: httpx.AsyncClient, as_user: AsUser) -> None:
    made, bob = await create(alice), await as_user(BOB)
    own = await create(bob)
    delivery = assert_ok(await alice.post(f"{WEBHOOKS}/{made['id']}/test"))
    body = {"since": "2026-01-02T00:00:00Z"}
    for method, path in [
        ("GET", ""),
        ("PATCH", ""),
        ("POST", "/roll"),
        ("POST", "/test"),
        ("GET", "/deliveries"),
        ("POST", f"/deliveries/{delivery['id']}/resend"),
        ("POST", "/recover"),
        ("DELETE", ""),
    ]:
        for number in (str(made["id"]), "999", "x", "9" * 30, "0" * 20 + "9" * 30, "9" * 4400, "-1", "\u0661"):
            sent = None if method == "GET" else body
            response = await bob.request(method, f"{WEBHOOKS}/{number}{path}", json=sent)
            assert_error(response, 404, "NOT_FOUND")
    assert_error(await bob.post(f"{WEBHOOKS}/{own['id']}/deliveries/{delivery['id']}/resend"), 404, "NOT_FOUND")
    assert len(assert_ok(await alice.get(f"{WEBHOOKS}/{made['id']}/deliveries"))["deliveries"]) == 1


async def test_a_disabled_webhook_is_enabled_and_recovers(
    alice: httpx.AsyncClient, clock: FrozenClock, services: Services
) -> None:
    made = await create(alice, types=["key.created"])
    path, since = f"{WEBHOOKS}/{made['id']}", iso(clock.now())
    assert_ok(await alice.patch(path, json={"enabled": False}))
    key = {"name": "Site", "business_id": 10, "assigned_location_id": "locations/111"}
    created = assert_ok(await alice.post("/api/v1/developer/credentials", json=key), 201)
    assert_ok(await alice.delete(f"/api/v1/developer/credentials/{created['client_id']}"))
    clock.advance(minutes=1)
    for action in ("test", "recover"):
        assert_error(await alice.post(f"{path}/{action}", json={"since": since}), 409, "CONFLICT")
    assert assert_ok(await alice.patch(path, json={"enabled": True}))["disabled_reason"] is None
    assert assert_ok(await alice.post(f"{path}/recover", json={"since": since}))["queued"] == 1
    assert assert_ok(await alice.post(f"{path}/recover", json={"since": since}))["queued"] == 0
    [queued] = assert_ok(await alice.get(f"{path}/deliveries"))["deliveries"]
    assert (queued["state"], queued["event"]["type"], queued["attempts"]) == ("pending", "key.created", [])


@pytest.mark.in_process("counts transactions")
async def test_recover_queues_a_bounded_number_in_pieces(
    alice: httpx.AsyncClient, clock: FrozenClock, services: Services, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("profilesvc.services.notify.deliveries.MOST_RECOVERED", 12)
    monkeypatch.setattr("profilesvc.services.notify.deliveries._PIECE", 5)
    pieces, add_missed = list[int](), stored_deliveries.add_missed

    async def counted(*parts: Any) -> int:
        pieces.append(await add_missed(*parts))
        return pieces[-1]

    monkeypatch.setattr(stored_deliveries, "add_missed", counted)
    made = await create(alice)
    path, since = f"{WEBHOOKS}/{made['id']}", iso(clock.now())
    assert_ok(await alice.patch(path, json={"enabled": False}))
    warned = QuotaWarning(used=8, limit=10, month="2026-01")
    async with services.storage.write() as session:
        events.publish(services, session, 1, *[events.new("quota.warning", warned) for _ in range(20)])
    assert_ok(await alice.patch(path, json={"enabled": True}))
    queued = [assert_ok(await alice.post(f"{path}/recover", json={"since": since}))["queued"] for _ in range(3)]
    assert (queued, pieces) == ([12, 8, 0], [5, 5, 2, 5, 3])
    listed = assert_ok(await alice.get(f"{path}/deliveries", params={"limit": "50"}))["deliveries"]
    assert [each["event"]["id"] for each in listed] == [f"evt_1_{number}" for number in range(20, 0, -1)]


@pytest.mark.in_process("leaves a transaction open")
@pytest.mark.parametrize("action", ["roll", "test", "recover"])
@ON_POSTGRES
async def test_a_request_that_queues_for_a_webhook_waits_for_its_deletion(
    alice: httpx.AsyncClient, plugin: Site, services: Services, action: str
) -> None:
    """An event, or the request of its owner. Only the second one needs the webhook."""
    made, body = await create(alice), {"since": iso(services.clock.now())} if action == "recover" else {}
    of_key = f"/api/v1/developer/credentials/{plugin.key['client_id']}/roll"
    path, status = (of_key, 200) if action == "roll" else (f"{WEBHOOKS}/{made['id']}/{action}", 404)
    async with services.storage.write() as session:
        await channels.remove(session, 1, made["id"])
        queuing = asyncio.create_task(alice.post(path, json=body))
        await asyncio.sleep(0.5)
    assert (await queuing).status_code == status


@pytest.mark.in_process("leaves a transaction open")
@ON_POSTGRES
async def test_a_deletion_waits_for_an_event_that_is_queued(alice: httpx.AsyncClient, services: Services) -> None:
    made, is_queued = await create(alice), asyncio.Event()

    async def pause(_session: AsyncSession) -> None:
        is_queued.set()
        await asyncio.sleep(0.5)

    async def happen() -> None:
        warned = QuotaWarning(used=8, limit=10, month="2026-01")
        async with services.storage.write() as session:
            events.publish(services, session, 1, events.new("quota.warning", warned))
            at_the_end(session, pause)

    happening = asyncio.create_task(happen())
    await is_queued.wait()
    assert_ok(await alice.delete(f"{WEBHOOKS}/{made['id']}"))
    await happening
    assert assert_ok(await alice.get(WEBHOOKS))["webhooks"] == []
