"""The audit trail: what is recorded, who may read it, page by page, and how long it is kept (D-61)."""

from typing import Any

import httpx
import pytest
from sqlalchemy import Table, func, select

from conftest import AsService, AsUser
from profilesvc.contract.audit import AuditQuery
from profilesvc.contract.errors import SERVICE_UNAVAILABLE
from profilesvc.domain.errors import ServiceError
from profilesvc.domain.time import FrozenClock, iso
from profilesvc.operations import housekeeping, operator
from profilesvc.services import audit, holds
from profilesvc.services import keys as key_service
from profilesvc.services.audit import PendingEvents
from profilesvc.services.context import Services
from profilesvc.storage import keys, tables
from support.api import ALICE, BOB, Site, assert_error, assert_ok, fields
from support.tokens import PATH as TOKEN
from support.tokens import grant

KEYS = "/api/v1/developer/credentials"


def path(site: Site, what: str = "/audit") -> str:
    return f"{KEYS}/{site.key['client_id']}{what}"


async def events(owner: httpx.AsyncClient, site: Site, **query: Any) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = assert_ok(await owner.get(path(site), params=query))["events"]
    return found


def names(found: list[dict[str, Any]]) -> list[str]:
    return [event["event"] for event in found]


async def rows_of(services: Services, table: Table) -> int:
    async with services.storage.read() as session:
        return int((await session.execute(select(func.count()).select_from(table))).scalar_one())


async def test_lists_changes_of_alerts_and_webhooks(alice: httpx.AsyncClient) -> None:
    """The URL of a chat is a secret, so only its host is in the trail."""
    alert = assert_ok(await alice.post("/api/v1/alerts", json={}), 201)
    assert_ok(await alice.patch(f"/api/v1/alerts/{alert['id']}", json={"reminders": True}))
    assert_ok(await alice.delete(f"/api/v1/alerts/{alert['id']}"))
    made = assert_ok(await alice.post("/api/v1/webhooks", json={"url": "https://hooks.example.com/secret"}), 201)
    path = f"/api/v1/webhooks/{made['id']}"
    assert_ok(await alice.patch(path, json={"enabled": False}))
    assert_ok(await alice.post(f"{path}/roll"))
    assert_ok(await alice.delete(path))
    found = assert_ok(await alice.get("/api/v1/audit"))["events"][::-1]
    of_alert = {"alert_id": alert["id"], "address": ALICE}
    of_webhook = {"webhook_id": made["id"], "host": "hooks.example.com"}
    assert [(event["event"], event["details"]) for event in found if event["event"] != "user.login"] == [
        ("alert.created", of_alert),
        ("alert.changed", of_alert | {"fields": ["reminders"]}),
        ("alert.deleted", of_alert),
        ("webhook.created", of_webhook),
        ("webhook.changed", of_webhook | {"fields": ["enabled"]}),
        ("webhook.rolled", of_webhook),
        ("webhook.deleted", of_webhook),
    ]


async def test_the_trail_of_a_key_lists_all_its_events_newest_first(
    alice: httpx.AsyncClient, plugin: Site, services: Services, clock: FrozenClock
) -> None:
    clock.advance(seconds=1)
    assert_ok(await alice.post(path(plugin, "/roll"), json={"overlap_seconds": 60}))
    for _ in range(2):
        assert_ok(await alice.post(path(plugin, "/deactivate")))
    for _ in range(2):
        assert_ok(await alice.post(path(plugin, "/reactivate")))
    await key_service.deactivate(services, plugin.key["client_id"], "security_concern")
    await key_service.reactivate(services, plugin.key["client_id"], roll=True)
    assert_ok(await alice.delete(path(plugin, "")))
    found = await events(alice, plugin)  # of a revoked key, too
    assert [(event["event"], event["actor"], event["details"]) for event in found] == [
        ("key.revoked", "user", {}),
        ("key.rolled", "operator", {"overlap_seconds": 0}),
        ("key.reactivated", "operator", {"reason": "security_concern"}),
        ("key.deactivated", "operator", {"reason": "security_concern"}),
        ("key.reactivated", "user", {"reason": "user_requested"}),
        ("key.deactivated", "user", {"reason": "user_requested"}),
        ("key.rolled", "user", {"overlap_seconds": 60}),
        (
            "token.issued",
            "key",
            {"permissions": ["business.read", "business.write"], "last_at": found[-2]["at"], "count": 1},
        ),
        ("key.created", "user", {"location": "locations/111"}),
    ]
    assert {event["at"] for event in found[:-2]} == {iso(clock.now())}
    assert {event["client_id"] for event in found} == {plugin.key["client_id"]}


async def test_an_event_has_the_network_and_the_request_id_but_no_secret(
    alice: httpx.AsyncClient, plugin: Site, clock: FrozenClock
) -> None:
    clock.advance(seconds=1)
    response = await alice.post(path(plugin, "/roll"), json={})
    rolled = assert_ok(response)
    answer = await alice.get(path(plugin))
    event = assert_ok(answer)["events"][0]
    assert event["ip_prefix"] == "127.0.0.0/24"
    assert event["request_id"] == response.headers["x-request-id"]
    for word in (rolled["client_secret"], plugin.key["client_secret"], plugin.tokens["access_token"]):
        assert word not in answer.text
    assert answer.headers["cache-control"] == "no-store"


async def test_only_the_owner_reads_the_trail_of_a_key(alice: httpx.AsyncClient, plugin: Site, as_user: AsUser) -> None:
    bob = await as_user(BOB)
    foreign, missing = await bob.get(path(plugin)), await bob.get(f"{KEYS}/svcid_1_1_x/audit")
    assert_error(foreign, 404, "NOT_FOUND")
    assert foreign.content == missing.content
    assert_error(await plugin.http.get(path(plugin)), 403, "AUTH_INSUFFICIENT_PERMISSIONS")


async def test_the_trail_of_a_key_is_read_in_pages(alice: httpx.AsyncClient, plugin: Site) -> None:
    for _ in range(3):
        assert_ok(await alice.post(path(plugin, "/deactivate")))
        assert_ok(await alice.post(path(plugin, "/reactivate")))
    whole = await events(alice, plugin)
    assert len(whole) == 8
    pages, before = [], None
    while True:
        query = {"limit": "3"} | ({} if before is None else {"before": before})
        page = assert_ok(await alice.get(path(plugin), params=query))
        assert page["limit"] == 3
        pages.append(page["events"])
        before = page["next_before"]
        if before is None:
            break
    assert [len(page) for page in pages] == [3, 3, 2]
    assert [event for page in pages for event in page] == whole
    assert assert_ok(await alice.get(path(plugin), params={"limit": "9999"}))["limit"] == 100
    for place in ("x", "-1", "", "1-" + "1" * 19, "1-1\n", "1-1-1", "1"):
        response = await alice.get(path(plugin), params={"before": place})
        assert fields(assert_error(response, 400, "VALIDATION_ERROR")) == ["before"]
    for limit in ("0", "x", "+1"):
        response = await alice.get(path(plugin), params={"limit": limit})
        assert fields(assert_error(response, 400, "VALIDATION_ERROR")) == ["limit"]


async def test_the_expiry_of_a_key_is_recorded_once(
    alice: httpx.AsyncClient, as_service: AsService, services: Services, clock: FrozenClock
) -> None:
    short = await as_service(expires_at="2026-01-03T00:00:00Z")
    await housekeeping.run_once(services)
    assert "key.expired" not in names(await events(alice, short))
    clock.advance(days=1)
    found = await events(alice, short)
    assert (found[0]["event"], found[0]["at"], found[0]["actor"]) == (
        "key.expired",
        "2026-01-03T00:00:00.000Z",
        "service",
    )
    await housekeeping.run_once(services)
    assert await events(alice, short) == found


async def test_an_owner_sees_the_events_of_their_own_keys_only(
    alice: httpx.AsyncClient, as_user: AsUser, as_service: AsService
) -> None:
    one, two = await as_service(), await as_service("locations/112")
    await as_service("locations/311")
    found = assert_ok(await alice.get("/api/v1/audit"))["events"]
    assert {event["client_id"] for event in found} == {one.key["client_id"], two.key["client_id"]}
    assert names(found).count("token.issued") == 2
    assert assert_ok(await (await as_user(BOB)).get("/api/v1/audit"))["events"] == []


async def test_the_operator_sees_the_events_of_all_owners(as_service: AsService, services: Services) -> None:
    await as_service()
    await as_service("locations/311")
    everything = (await audit.user_trail(services, None, AuditQuery())).events
    assert len({event.client_id for event in everything}) == 2


async def test_a_plan_and_an_invoice_record_an_event_for_every_key(
    alice: httpx.AsyncClient, as_service: AsService, services: Services, clock: FrozenClock
) -> None:
    first = await as_service()
    clock.advance(seconds=1)
    last = await as_service("locations/119")
    clock.advance(seconds=1)
    await operator.assign_plan(services, ALICE, "starter")
    await operator.assign_plan(services, ALICE, "pro")
    await holds.billing_event(services, ALICE, False, 1)
    await holds.billing_event(services, ALICE, False, 1)
    billed = ("key.deactivated", {"reason": "billing_issue"})
    assert [(event["event"], event["details"]) for event in (await events(alice, last))[:3]] == [
        billed,
        ("key.reactivated", {"reason": "plan_downgrade"}),
        ("key.deactivated", {"reason": "plan_downgrade"}),
    ]
    found = await events(alice, first)
    assert [(event["event"], event["details"]) for event in found[:1]] == [billed]
    assert names(found).count("key.deactivated") == 1


async def test_a_rejected_request_is_not_recorded(alice: httpx.AsyncClient, plugin: Site, services: Services) -> None:
    await key_service.deactivate(services, plugin.key["client_id"], "billing_issue")
    before = await events(alice, plugin)
    assert_error(await alice.post(path(plugin, "/roll"), json={}), 409, "CONFLICT")
    assert_error(await alice.post(path(plugin, "/reactivate")), 403, "AUTH_INSUFFICIENT_PERMISSIONS")
    assert await events(alice, plugin) == before


async def test_wrong_secrets_are_counted_by_key_network_and_hour(
    alice: httpx.AsyncClient, http: httpx.AsyncClient, plugin: Site, clock: FrozenClock, services: Services
) -> None:
    wrong, first = grant(plugin, client_secret="A" * 64), clock.advance(seconds=20)
    for _ in range(5):
        assert_error(await http.post(TOKEN, json=wrong), 401, "AUTH_INVALID_TOKEN")
    await services.part(PendingEvents).write(services)
    last = clock.advance(minutes=2)
    for _ in range(2):
        assert_error(await http.post(TOKEN, json=wrong), 401, "AUTH_INVALID_TOKEN")
    (event,) = [found for found in await events(alice, plugin) if found["event"] == "auth.failed"]
    assert event["at"] == iso(first)
    assert event["details"] == {"count": 7, "last_at": iso(last)}
    assert (event["actor"], event["ip_prefix"]) == ("client", "127.0.0.0/24")
    assert event["request_id"] is None  # there were many
    clock.advance(hours=1)
    checked = await http.post(
        "/api/v1/auth/validate-service-credentials", json={**plugin.credentials, "client_secret": "x"}
    )
    assert assert_ok(checked)["valid"] is False
    counts = [found["details"]["count"] for found in await events(alice, plugin) if found["event"] == "auth.failed"]
    assert counts == [1, 7]


@pytest.mark.in_process("fails a commit")
async def test_wrong_secrets_stay_counted_while_the_database_is_not_available(
    alice: httpx.AsyncClient,
    http: httpx.AsyncClient,
    plugin: Site,
    services: Services,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    await services.part(PendingEvents).write(services)

    async def commit(*_: Any) -> None:
        raise ServiceError(SERVICE_UNAVAILABLE)

    with monkeypatch.context() as outage:
        outage.setattr(services.storage, "commit", commit)
        for _ in range(2):
            assert_error(await http.post(TOKEN, json=grant(plugin, client_secret="A" * 64)), 401, "AUTH_INVALID_TOKEN")
            await services.part(PendingEvents).write(services)
    (event,) = [found for found in await events(alice, plugin) if found["event"] == "auth.failed"]
    assert event["details"]["count"] == 2


async def test_a_wrong_secret_is_listed_before_older_events(
    alice: httpx.AsyncClient, http: httpx.AsyncClient, plugin: Site, clock: FrozenClock
) -> None:
    clock.advance(seconds=1)
    assert_ok(await alice.post(path(plugin, "/roll"), json={"overlap_seconds": 60}))
    clock.advance(seconds=1)
    assert_error(await http.post(TOKEN, json=grant(plugin, client_secret="A" * 64)), 401, "AUTH_INVALID_TOKEN")
    found = await events(alice, plugin)
    assert names(found)[0] == "auth.failed"
    assert names(found)[-1] == "key.created"
    assert [event["at"] for event in found] == sorted((event["at"] for event in found), reverse=True)


@pytest.mark.in_process("writes what two processes have counted")
async def test_wrong_secrets_of_two_processes_are_one_event_from_first_to_last(
    alice: httpx.AsyncClient, plugin: Site, services: Services, clock: FrozenClock
) -> None:
    async with services.storage.read() as session:
        key = await keys.state(session, plugin.key["client_id"])
    assert key is not None
    early, late = audit.PendingEvents(), audit.PendingEvents()
    early.secret_failed(services, key)
    first = clock.now()
    last = clock.advance(minutes=1)
    late.secret_failed(services, key)
    for notes in (late, early):  # the one that started first writes last
        await notes.write(services)
    (event,) = [found for found in await events(alice, plugin) if found["event"] == "auth.failed"]
    assert (event["at"], event["details"]) == (iso(first), {"count": 2, "last_at": iso(last)})


async def test_a_wrong_secret_of_an_unknown_id_leaves_no_event(http: httpx.AsyncClient, services: Services) -> None:
    body = {"grant_type": "client_credentials", "client_id": "svcid_1_1_nobody", "client_secret": "A" * 64}
    assert_error(await http.post(TOKEN, json=body), 401, "AUTH_INVALID_TOKEN")
    await services.part(PendingEvents).write(services)
    assert (await audit.user_trail(services, None, AuditQuery())).events == []


async def test_refreshes_are_counted_per_day(
    http: httpx.AsyncClient, alice: httpx.AsyncClient, plugin: Site, clock: FrozenClock
) -> None:
    refresh_token, times = plugin.tokens["refresh_token"], []
    for _ in range(3):
        clock.advance(hours=9)
        times.append(iso(clock.now()))
        body = {"grant_type": "refresh_token", "refresh_token": refresh_token}
        refresh_token = assert_ok(await http.post(TOKEN, json=body))["refresh_token"]
    found = [event for event in await events(alice, plugin) if event["event"] == "token.refreshed"]
    assert [(event["at"], event["details"]) for event in found] == [
        (times[2], {"count": 1, "last_at": times[2]}),
        (times[0], {"count": 2, "last_at": times[1]}),
    ]


@pytest.mark.in_process("counts what the process has not written yet")
async def test_a_grant_costs_no_transaction_of_its_own(
    alice: httpx.AsyncClient, plugin: Site, services: Services, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(audit, "_COLLECT_SECONDS", 60)  # a slow machine must not write in between
    async with services.storage.read() as session:
        key = await keys.state(session, plugin.key["client_id"])
    assert key is not None
    await services.part(PendingEvents).write(services)
    before = await rows_of(services, tables.audit)
    for _ in range(20):
        services.part(PendingEvents).token_issued(services, key, ["business.read"])
        services.part(PendingEvents).secret_failed(services, key)
    assert await rows_of(services, tables.audit) == before
    found = await events(alice, plugin, limit="100")  # a reader sees all of them
    counts = [event["details"]["count"] for event in found if "count" in event["details"]]
    assert sorted(counts) == [1, 20, 20]  # the plugin's own grant came over a network
