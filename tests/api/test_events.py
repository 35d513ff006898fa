"""The log of events: what causes each event, in which order they are read, and whose they are."""

import asyncio
from typing import Any

import httpx
import pytest
from sqlalchemy import insert, select

from conftest import ON_ONE_DATABASE, AsUser
from profilesvc.contract.alerts import DAILY
from profilesvc.contract.events import SyncSwitchChanged
from profilesvc.contract.keys import KeyRoll
from profilesvc.domain.time import FrozenClock, month_start
from profilesvc.services import credentials, events, holds, keys
from profilesvc.services.context import Services
from profilesvc.storage import tables
from support.api import ALICE, BOB, Site, assert_error, assert_ok, fields
from support.posts import PATH as POSTS
from support.posts import PIER
from support.provider.drive import drift, fail, heal
from support.waiting import until_async

EVENTS, LIST = "/api/v1/events", "/api/v1/external-business/locations"
KEYS = "/api/v1/developer/credentials"


async def read(owner: httpx.AsyncClient, **query: Any) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = assert_ok(await owner.get(EVENTS, params=query))["events"]
    return found


async def types(owner: httpx.AsyncClient, **query: Any) -> list[str]:
    return [event["type"] for event in await read(owner, **query)]


async def test_the_log_is_read_from_an_event_on(alice: httpx.AsyncClient, plugin: Site) -> None:
    """A reader of everything continues after the last event."""
    assert assert_ok(await alice.get(EVENTS, params={"types": "sync.failed"}))["next_after"] is None
    for _ in range(2):
        assert_ok(await alice.post(f"{KEYS}/{plugin.key['client_id']}/roll", json={"overlap_seconds": 0}))
    first = assert_ok(await alice.get(EVENTS, params={"limit": "2"}))
    assert ([event["id"] for event in first["events"]], first["has_more"]) == (["evt_1_1", "evt_1_2"], True)
    rest = assert_ok(await alice.get(EVENTS, params={"after": first["next_after"]}))
    assert ([event["id"] for event in rest["events"]], rest["has_more"]) == (["evt_1_3"], False)
    end = assert_ok(await alice.get(EVENTS, params={"after": rest["next_after"]}))
    assert end == {"events": [], "next_after": "evt_1_3", "has_more": False}


async def test_the_log_can_be_restricted_to_types_and_to_a_key(alice: httpx.AsyncClient, plugin: Site) -> None:
    client_id = plugin.key["client_id"]
    assert_ok(await alice.post(f"{KEYS}/{client_id}/roll", json={}))
    assert_ok(await alice.patch(f"{LIST}/111/sync", json={"syncEnabled": False}))
    assert await types(alice) == ["key.created", "key.rolled", "location.sync_switched"]
    assert await types(alice, types="location.sync_switched,key.rolled") == ["key.rolled", "location.sync_switched"]
    assert await types(alice, client_id=client_id) == ["key.created", "key.rolled"]
    assert await types(alice, client_id="svcid_1_1_unknown") == []


async def test_the_log_has_the_events_of_its_owner_only(as_user: AsUser, plugin: Site) -> None:
    bob = await as_user(BOB)
    assert await read(bob) == []
    assert await read(bob, client_id=plugin.key["client_id"]) == []
    assert fields(assert_error(await bob.get(EVENTS, params={"after": "evt_1_1"}), 400, "VALIDATION_ERROR")) == [
        "after"
    ]


@pytest.mark.parametrize(
    ("name", "value"), [("types", "key.lost"), ("types", ""), ("after", "7"), ("after", "evt_1_x"), ("limit", "0")]
)
@ON_ONE_DATABASE
async def test_the_log_rejects_an_invalid_parameter(alice: httpx.AsyncClient, name: str, value: str) -> None:
    response = await alice.get(EVENTS, params={name: value})
    assert fields(assert_error(response, 400, "VALIDATION_ERROR")) == [name]


async def test_the_log_has_the_order_of_the_commits(services: Services, alice: httpx.AsyncClient) -> None:
    """A reader who continues after the last event misses none, however the transactions overlap."""

    async def publish(number: int) -> None:
        data = SyncSwitchChanged(location_id=str(number), sync_enabled=True)
        async with services.storage.write() as session:
            events.publish(services, session, 1, events.new("location.sync_switched", data))
            await asyncio.sleep(0)

    seen: list[str] = []

    async def all_are_read() -> bool:
        page = assert_ok(await alice.get(EVENTS, params={"after": seen[-1]} if seen else {}))
        seen.extend(event["id"] for event in page["events"])
        return len(seen) >= 40

    following = asyncio.create_task(until_async(all_are_read, "40 events", every=0.005))
    await asyncio.gather(*(publish(number) for number in range(40)))
    await following
    assert seen == [f"evt_1_{number}" for number in range(1, 41)]


async def test_the_log_has_no_event_of_a_transaction_that_failed(services: Services, alice: httpx.AsyncClient) -> None:
    data = SyncSwitchChanged(location_id="x", sync_enabled=True)

    async def fail_in_it() -> None:
        async with services.storage.write() as session:
            events.publish(services, session, 1, events.new("location.sync_switched", data))
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        await fail_in_it()
    assert await read(alice) == []


async def test_each_change_of_a_key_causes_an_event(alice: httpx.AsyncClient, services: Services, plugin: Site) -> None:
    client_id = plugin.key["client_id"]
    for action in ("deactivate", "deactivate", "reactivate", "reactivate"):
        assert_ok(await alice.post(f"{KEYS}/{client_id}/{action}"))
    await credentials.roll(services, None, client_id, KeyRoll())
    assert_ok(await alice.delete(f"{KEYS}/{client_id}"))
    found = await read(alice)
    assert [(event["type"], event["data"]["key"]["status"]) for event in found] == [
        ("key.created", "active"),
        ("key.deactivated", "deactivated"),
        ("key.reactivated", "active"),
        ("key.rolled", "active"),
        ("key.revoked", "revoked"),
    ]
    listed = assert_ok(await alice.get(KEYS, params={"include_revoked": "true"}))["credentials"][0]
    assert found[-1]["data"]["key"] == listed | {"last_used_at": found[-1]["data"]["key"]["last_used_at"]}
    assert "secret" not in str(found)


async def test_an_unpaid_invoice_causes_events_of_the_key(
    alice: httpx.AsyncClient, services: Services, plugin: Site
) -> None:
    await holds.billing_event(services, ALICE, paid=False, version=1)
    await holds.billing_event(services, ALICE, paid=True, version=2)
    assert (await types(alice))[1:] == ["key.deactivated", "key.reactivated"]


async def test_a_reused_refresh_token_causes_one_event(
    alice: httpx.AsyncClient, http: httpx.AsyncClient, plugin: Site, clock: FrozenClock
) -> None:
    old = {"grant_type": "refresh_token", "refresh_token": plugin.tokens["refresh_token"]}
    assert_ok(await http.post("/api/v1/auth/token", json=old))
    clock.advance(minutes=1)
    for _ in range(3):
        assert (await http.post("/api/v1/auth/token", json=old)).status_code == 401
    (event,) = await read(alice, types="token.reuse_detected")
    assert event["data"]["key"]["client_id"] == plugin.key["client_id"]


async def test_changes_of_the_sync_switch_and_the_verification_cause_events(
    alice: httpx.AsyncClient, emulator: httpx.AsyncClient
) -> None:
    for enabled in (False, False, True, True):
        assert_ok(await alice.patch(f"{LIST}/111/sync", json={"syncEnabled": enabled}))
    lost: dict[str, Any] = {"resolveOwnershipConflict": {}}
    await drift(emulator, voice_of_merchant={"locations/111": lost})
    for _ in range(2):
        assert_ok(await alice.post(f"{LIST}/111/refresh-verification"))
    found = await read(alice)
    assert [(event["type"], event["data"].get("sync_enabled")) for event in found] == [
        ("location.sync_switched", False),
        ("location.sync_switched", True),
        ("location.sync_switched", False),
        ("location.verification_changed", None),
    ]
    assert found[-1]["data"] == {
        "location_id": "locations/111",
        "is_verified": False,
        "verification_state": "DUPLICATE",
    }


async def test_a_sync_and_a_failed_sync_cause_an_event_each(
    alice: httpx.AsyncClient, emulator: httpx.AsyncClient
) -> None:
    done = assert_ok(await alice.post("/api/v1/sync/111", json={"title": "Pier"}))
    await fail(emulator)
    assert_error(await alice.post("/api/v1/sync/111", json={"title": "Quay"}), 502, "PROVIDER_API_ERROR")
    await heal(emulator)
    assert_ok(await alice.post("/api/v1/sync/111", json={"unknown": 1}))
    good, bad = await read(alice, types="sync.succeeded,sync.failed")
    assert (good["type"], bad["type"]) == ("sync.succeeded", "sync.failed")
    assert good["data"]["sync"]["syncId"] == done["syncId"]
    assert (good["data"]["fields_updated"], good["data"]["error"]) == (["title"], None)
    history = assert_ok(await alice.get("/api/v1/sync/history/111"))["history"]
    assert bad["data"]["sync"] in history
    assert bad["data"]["error"] == "PROVIDER_API_ERROR"


async def test_a_drift_causes_one_event_per_difference(alice: httpx.AsyncClient, emulator: httpx.AsyncClient) -> None:
    async def compare() -> list[list[str]]:
        for _ in range(2):
            assert_ok(await alice.get("/api/v1/sync/comparison/111"))
        found = await read(alice, types="profile.drifted")
        return [[each["field"] for each in event["data"]["differences"]] for event in found]

    assert_ok(await alice.post("/api/v1/sync/111", json={"title": "Pier"}))
    before = await compare()
    await drift(emulator, locations={"locations/111": {"title": "Changed by other hands"}})
    first = await compare()
    assert len(first) == len(before) + 1
    assert "title" in first[-1]
    await drift(emulator, locations={"locations/111": {"title": "Changed again"}})
    assert len(await compare()) == len(first) + 1
    assert_ok(await alice.post("/api/v1/sync/111", json={"title": "Pier"}))
    await drift(emulator, locations={"locations/111": {"title": "Changed again"}})
    assert len(await compare()) == len(first) + 2


async def test_the_review_and_the_deletion_of_posts_at_the_provider_cause_events(
    alice: httpx.AsyncClient, emulator: httpx.AsyncClient, services: Services, clock: FrozenClock
) -> None:
    await drift(emulator, switches={"review_seconds": 20, "reject_phrase": "casino"})
    made = [
        assert_ok(await alice.post(POSTS, params=PIER, json={"summary": text}), 201)["name"]
        for text in ("Fresh bread", "Visit our casino")
    ]
    clock.advance(seconds=26)
    for _ in range(2):
        assert_ok(await alice.get(POSTS, params=PIER))
    assert [(event["type"], event["data"]["post"]["name"]) for event in await read(alice)] == [
        *(("post.created", name) for name in made),
        ("post.published", made[0]),
        ("post.rejected", made[1]),
    ]
    await services.provider.delete_post("accounts/1", "locations/111", made[0].rpartition("/")[2])
    clock.advance(hours=2)
    for _ in range(2):
        assert_ok(await alice.get(POSTS, params=PIER))
    (gone,) = await read(alice, types="post.deleted_at_provider")
    assert gone["data"]["post"]["summary"] == "Fresh bread"


async def test_a_post_that_the_owner_deletes_is_not_reported_as_deleted_elsewhere(alice: httpx.AsyncClient) -> None:
    assert_ok(await alice.get(POSTS, params=PIER))
    assert_ok(await alice.delete(f"{POSTS}/11102", params=PIER))
    assert_error(await alice.delete(f"{POSTS}/11102", params=PIER), 404, "NOT_FOUND")
    assert_ok(await alice.get(POSTS, params=PIER))
    (event,) = await read(alice)
    assert (event["type"], event["data"]["post"]["name"]) == ("post.deleted", "locations/111/localPosts/11102")
    assert event["data"]["post"]["summary"]


async def test_a_change_of_a_post_that_was_deleted_elsewhere_causes_one_event(
    alice: httpx.AsyncClient, services: Services
) -> None:
    assert_ok(await alice.get(POSTS, params=PIER))
    await services.provider.delete_post("accounts/1", "locations/111", "11102")
    for _ in range(2):
        assert_error(await alice.patch(f"{POSTS}/11102", params=PIER, json={"summary": "New"}), 404, "NOT_FOUND")
    assert await types(alice) == ["post.deleted_at_provider"]


async def test_each_change_by_a_key_or_by_the_owner_causes_an_event(alice: httpx.AsyncClient, plugin: Site) -> None:
    """The provider's policy: the owner hears of each change, so the default digest has all of these."""
    made = assert_ok(await plugin.http.post(POSTS, params=PIER, json={"summary": "Fresh bread"}), 201)["name"]
    one = f"{POSTS}/{made.rpartition('/')[2]}"
    assert_ok(await plugin.http.patch(one, params=PIER, json={"summary": "Fresh rolls"}))
    assert_ok(await alice.delete(one, params=PIER))
    reply = "/api/v1/reviews/111002/reply"
    replied = assert_ok(await plugin.http.put(reply, params=PIER, json={"comment": "Thank you."}))
    assert_ok(await alice.delete(reply, params=PIER))
    found = (await read(alice))[1:]
    assert [(event["type"], event["data"].get("post", {}).get("summary")) for event in found] == [
        ("post.created", "Fresh bread"),
        ("post.updated", "Fresh rolls"),
        ("post.deleted", "Fresh rolls"),
        ("review.replied", None),
        ("review.reply_deleted", None),
    ]
    where = {"location_id": "locations/111", "review_name": "locations/111/reviews/111002"}
    assert [event["data"] for event in found[3:]] == [{**where, "reply": replied}, {**where, "reply": None}]
    of_key = await types(alice, client_id=plugin.key["client_id"])
    assert of_key == ["key.created", "post.created", "post.updated", "review.replied"]
    assert {event["type"] for event in found} <= set(DAILY)


async def test_a_change_that_the_provider_rejects_causes_no_event(
    alice: httpx.AsyncClient, emulator: httpx.AsyncClient
) -> None:
    assert_ok(await alice.get(POSTS, params=PIER))
    await fail(emulator, method="POST|PATCH|PUT|DELETE")
    body = {"summary": "Fresh bread"}
    assert_error(await alice.post(POSTS, params=PIER, json=body), 502, "PROVIDER_API_ERROR")
    assert_error(await alice.patch(f"{POSTS}/11102", params=PIER, json=body), 502, "PROVIDER_API_ERROR")
    assert_error(await alice.delete(f"{POSTS}/11102", params=PIER), 502, "PROVIDER_API_ERROR")
    assert await types(alice) == []
    await heal(emulator)
    await fail(emulator, method="PUT|DELETE")
    reply = "/api/v1/reviews/111002/reply"
    assert_error(await alice.put(reply, params=PIER, json={"comment": "Hello"}), 502, "PROVIDER_API_ERROR")
    assert await types(alice) == []


async def test_a_request_that_is_repeated_with_its_idempotency_key_causes_one_event(alice: httpx.AsyncClient) -> None:
    headers = {"X-Idempotency-Key": "one-post-0123456789"}
    for _ in range(2):
        sent = await alice.post(POSTS, params=PIER, json={"summary": "Fresh bread"}, headers=headers)
        assert_ok(sent, 201)
    assert await types(alice) == ["post.created"]


async def test_the_quota_of_posts_causes_an_event_at_80_percent_and_at_its_end(
    alice: httpx.AsyncClient, services: Services, clock: FrozenClock
) -> None:
    limit, month = services.plans["pro"].monthly_posts, month_start(clock.now())
    usage = {"owner_id": 1, "month": month, "used": limit * 8 // 10 - 2}
    async with services.storage.write() as session:
        await session.execute(insert(tables.post_usage).values(usage))

    async def post() -> list[int]:
        assert_ok(await alice.post(POSTS, params=PIER, json={"summary": "Hello"}), 201)
        return [event["data"]["used"] for event in await read(alice, types="quota.warning")]

    assert await post() == []
    assert [await post(), await post()] == [[limit * 8 // 10]] * 2
    async with services.storage.write() as session:
        await session.execute(tables.post_usage.update().values(used=limit - 1))
    assert await post() == [limit * 8 // 10, limit]


async def test_each_channel_that_receives_the_type_gets_one_delivery(services: Services, plugin: Site) -> None:
    of_all = {"owner_id": 1, "kind": "webhook", "nonce": "n", "created_at": 0, "confirmed_at": 1, "types": ""}
    channels: list[dict[str, object]] = [
        {},
        {"types": ",key.revoked,"},
        {"types": ",key.rolled,key.revoked,"},
        {"disabled_at": 1},
        {"confirmed_at": None},
        {"owner_id": 2},
    ]
    async with services.storage.write() as session:
        for number, values in enumerate(channels, 1):
            row = of_all | {"id": number, "target": str(number), "target_digest": str(number)} | values
            await session.execute(insert(tables.channels).values(row))
    await credentials.roll(services, None, plugin.key["client_id"], KeyRoll())
    await keys.revoke(services, None, plugin.key["client_id"])
    query = select(tables.deliveries).where(tables.deliveries.c.owner_id == 1).order_by(tables.deliveries.c.id)
    async with services.storage.read() as session:
        found = (await session.execute(query)).all()
    assert [(row.channel_id, row.event_id) for row in found] == [(1, 2), (3, 2), (1, 3), (2, 3), (3, 3)]
    assert {(row.state, row.next_at == row.created_at == services.clock.now()) for row in found} == {("pending", True)}
