"""Why a site is not connected: the status, the dashboard, events and mails give the same reason."""

from collections.abc import Awaitable, Callable
from typing import Any

import httpx
import pytest
from sqlalchemy import insert, select

from profilesvc.contract.events import EventOwner, PublishedEvent
from profilesvc.delivery.messages import story
from profilesvc.domain.time import FrozenClock
from profilesvc.services.context import Services
from profilesvc.services.insight.request_log import RequestLog
from profilesvc.storage.events import Subject
from profilesvc.storage.tables import keys
from profilesvc.storage.tables.insight import request_log
from support.api import Site, assert_ok
from support.browser.dashboard import Browser
from support.database.statement_counts import sent_by
from support.fleet.deployment import KEYS, TOKEN

pytestmark = pytest.mark.in_process("writes the log of requests at once")
HEARTBEAT = "/api/v1/api-keys/heartbeat"
VALIDATE = "/api/v1/auth/validate-service-credentials"
Send = Callable[[httpx.AsyncClient, dict[str, str]], Awaitable[httpx.Response]]


async def status(alice: httpx.AsyncClient, services: Services, client_id: str) -> dict[str, Any]:
    await services.part(RequestLog).write(services)
    await services.background.settle()
    found: dict[str, Any] = assert_ok(await alice.get(f"/api/v1/api-keys/{client_id}/status"))
    return found


@pytest.fixture
async def key(alice: httpx.AsyncClient) -> dict[str, str]:
    """A key that was never used, for a location without another one."""
    body = {"name": "New", "business_id": 10, "assigned_location_id": "locations/112"}
    made = assert_ok(await alice.post(KEYS, json=body), 201)
    return {name: made[name] for name in ("client_id", "client_secret")}


WRONG: dict[str, Send] = {
    "json": lambda http, pair: http.post(TOKEN, json={"grant_type": "client_credentials", **pair}),
    "form": lambda http, pair: http.post("/oauth2/token", data={"grant_type": "client_credentials", **pair}),
    "basic": lambda http, pair: http.post(
        "/oauth2/token", data={"grant_type": "client_credentials"}, auth=(pair["client_id"], pair["client_secret"])
    ),
    "validate": lambda http, pair: http.post(VALIDATE, json=pair),
}


@pytest.mark.parametrize("send", WRONG.values(), ids=WRONG)
async def test_wrong_secret_is_known_within_seconds(
    http: httpx.AsyncClient,
    alice: httpx.AsyncClient,
    browser: Browser,
    services: Services,
    clock: FrozenClock,
    key: dict[str, str],
    send: Send,
) -> None:
    found = await status(alice, services, key["client_id"])
    assert (found["reason_hint"], found.get("reason_at")) == ("never_connected", None)
    for _ in range(3):
        clock.advance(seconds=1)
        await send(http, {**key, "client_secret": "wrong"})
    found = await status(alice, services, key["client_id"])
    assert (found["reason_hint"], found["reason_at"]) == ("secret_rejected", "2026-01-02T03:04:08.678Z")
    for path in ("/dashboard", "/dashboard/sites/112", f"/dashboard/keys/{key['client_id']}"):
        page = (await browser.http.get(path)).text
        assert "A wrong secret was sent on" in page, path
        assert "Never connected. Paste" not in page
    granted = assert_ok(await http.post(TOKEN, json={"grant_type": "client_credentials", **key}))
    clock.advance(seconds=1)
    assert_ok(await http.post(HEARTBEAT, json={}, headers={"Authorization": f"Bearer {granted['access_token']}"}))
    assert (await status(alice, services, key["client_id"]))["reason_hint"] is None


@pytest.mark.parametrize("overlap", [0, 3600])
async def test_site_whose_secret_was_rolled_is_not_simply_online(
    alice: httpx.AsyncClient, plugin: Site, browser: Browser, services: Services, clock: FrozenClock, overlap: int
) -> None:
    client_id = plugin.credentials["client_id"]
    assert_ok(await plugin.http.post(HEARTBEAT, json={}))
    clock.advance(minutes=1)
    assert_ok(await alice.post(f"{KEYS}/{client_id}/roll", json={"overlap_seconds": overlap}))
    found = await status(alice, services, client_id)
    assert found["connection_status"] == "online"
    if overlap:
        assert found["reason_hint"] is None
        return
    assert (found["reason_hint"], found["reason_at"]) == ("secret_changed", "2026-01-02T03:05:05.678Z")
    clock.advance(minutes=1)
    assert (await plugin.http.post(HEARTBEAT, json={})).status_code == 401
    assert (await status(alice, services, client_id))["reason_hint"] == "secret_changed"
    page = (await browser.http.get("/dashboard/sites/111")).text
    assert "Credentials rejected" in page
    assert "The key got a new secret on" in page


async def test_a_site_that_is_online_and_sends_a_revoked_token(
    alice: httpx.AsyncClient, plugin: Site, services: Services, clock: FrozenClock
) -> None:
    assert_ok(await plugin.http.post(HEARTBEAT, json={}))
    clock.advance(minutes=1)
    revoked = {"token": plugin.tokens["access_token"]}
    client = plugin.credentials["client_id"], plugin.credentials["client_secret"]
    assert (await plugin.http.post("/oauth2/revoke", data=revoked, auth=client)).status_code == 200
    assert (await plugin.http.post(HEARTBEAT, json={})).status_code == 401
    found = await status(alice, services, plugin.credentials["client_id"])
    assert (found["connection_status"], found["reason_hint"]) == ("online", "token_revoked")


async def test_the_reason_is_read_by_itself_unless_the_site_is_plainly_online(
    alice: httpx.AsyncClient, plugin: Site, services: Services, clock: FrozenClock
) -> None:
    path = f"/api/v1/api-keys/{plugin.credentials['client_id']}/status"
    assert_ok(await plugin.http.post(HEARTBEAT, json={}))
    reads = []
    for hours in (0, 3):
        clock.advance(hours=hours)
        await services.background.drain()
        with sent_by(services) as sent:
            assert_ok(await alice.get(path))
        reads.append(sent.reads)
    (online,), (idle, reason) = reads
    assert online == idle
    assert "secrets.expires_at" in reason
    assert "secrets.expires_at" not in online


@pytest.mark.parametrize(("others", "hint"), [(999, "secret_rejected"), (1_000, "never_connected")])
async def test_only_the_last_entries_of_a_log_are_searched(
    alice: httpx.AsyncClient, services: Services, key: dict[str, str], others: int, hint: str
) -> None:
    now, wanted = services.clock.now(), keys.c.client_id == key["client_id"]
    async with services.storage.write() as session:
        of_key = (
            (await session.execute(select(keys.c.owner_id, keys.c.id.label("key_id")).where(wanted))).one()._asdict()
        )
        rejected = {
            **of_key,
            "at": now - 1,
            "id": "1",
            "method": "POST",
            "route": "/x",
            "status": 401,
            "duration_ms": 0,
        }
        rows = [{**rejected, "reason": "wrong_secret"}]
        rows += [{**rejected, "at": now + at, "status": 429, "reason": None} for at in range(others)]
        await session.execute(insert(request_log), rows)
    assert (await status(alice, services, key["client_id"]))["reason_hint"] == hint


@pytest.mark.parametrize(
    ("hint", "advice"),
    [
        ("was_online", "Is the site online, is the plugin active, and does its cron run?"),
        ("secret_changed", "The secret of the API key was replaced on 2026-01-02 03:05 UTC. Enter the new one"),
        ("token_revoked", "A revoked token of the site was rejected on 2026-01-02 03:05 UTC."),
        ("secret_rejected", "A wrong secret was sent on 2026-01-02 03:05 UTC."),
        ("origin_not_allowed", "A page of a domain that the API key does not allow used it on 2026-01-02 03:05 UTC."),
        ("deactivated", "The API key is deactivated."),
    ],
)
@pytest.mark.parametrize("kind", ["connection.offline", "connection.idle", "connection.never_connected"])
def test_message_gives_the_reason_that_is_known(kind: Any, hint: str, advice: str) -> None:
    connection = {"last_heartbeat_at": None, "reason_hint": hint, "reason_at": "2026-01-02T03:05:05.678Z"}
    data, at = {"connection": connection}, "2026-01-02T04:00:00.000Z"
    event = PublishedEvent(id="1", type=kind, created_at=at, owner=EventOwner(id=1), data=data)
    found = story(event, Subject()).advice
    if kind == "connection.never_connected" and hint == "was_online":
        advice = "Is the key entered in the plugin?"
    assert found.startswith(advice)
