"""Every status in the OpenAPI document occurs, for each operation, and fits its schema."""

import asyncio
from typing import Any

import httpx
import pytest
from quart import Quart
from sqlalchemy import update

from conftest import ON_ONE_DATABASE, AsService, Change
from profilesvc.api import request as request_body
from profilesvc.services import keys as key_service
from profilesvc.services.context import Services
from profilesvc.storage.tables import post_usage
from support.api import TOO_MANY_HEADERS, assert_error, unfinished
from support.parts import AWAY, NO_ROOM, Broken
from support.provider.drive import fail, heal
from support.surface import NEVER, NEW_KEY, PUBLIC, REQUESTS, Record, Surface


@pytest.fixture
async def surface(
    http: httpx.AsyncClient,
    app: Quart,
    alice: httpx.AsyncClient,
    as_service: AsService,
    services: Services,
    emulator: httpx.AsyncClient,
) -> Surface:
    record = Record(app.extensions["QUART_SCHEMA"].openapi_provider.schema())
    assert record.operations() - set(REQUESTS) == set(), (
        "operations without a row in REQUESTS of tests/support/surface.py"
    )
    sites = {"good": await as_service(), "held": await as_service()}
    await key_service.deactivate(services, sites["held"].key["client_id"], "billing_issue")
    http.event_hooks["response"].append(record)
    return Surface(http, record, alice, sites, emulator)


JSON = {"Content-Type": "application/json"}
# Another body than that of the request with the same idempotency key.
OTHER: dict[str, Any] = {
    "sync_profile": {"title": "Other"},
    "accept_google_update": {"updateMask": "title"},
    "reject_google_update": {"updateMask": "title"},
}
# A fault for each request without a body: in the query or an id.
MALFORMED: dict[str, dict[str, Any]] = {
    "get_connection_status": {"params": {"history": "x"}},
    "list_keys": {"params": {"include_revoked": "x"}},
    "list_locations": {"params": {"page": "0"}},
    "list_key_audit": {"params": {"before": "x"}},
    "list_key_requests": {"params": {"days": "0"}},
    "list_audit": {"params": {"limit": "0"}},
    "list_deliveries": {"params": {"limit": "0"}},
    "list_events": {"params": {"types": "unknown"}},
    "get_location": {"path": "/api/v1/external-business/locations/a b"},
    "refresh_verification": {"path": "/api/v1/external-business/locations/a b/refresh-verification"},
    "get_google_updated": {"path": "/api/v1/external-business/locations/a b/google-updated"},
    "list_posts": {"params": {}},
    "delete_post": {"params": {}},
    "list_reviews": {"params": {}},
    "get_review": {"params": {}},
    "delete_reply": {"params": {}},
    "compare_profile": {"path": "/api/v1/sync/comparison/a b"},
    "list_sync_history": {"params": {"limit": "x"}},
}


async def refusals_of_the_caller(surface: Surface) -> None:
    for name in surface.promising("401"):
        wrong: dict[str, Any] = {"body": {"grant_type": "client_credentials", "client_id": "x", "client_secret": "y"}}
        await surface.ask(name, token="", **(wrong if name in PUBLIC else {}))
    for name in surface.promising("403"):
        await surface.ask(name, site="held")


async def refusals_of_the_request(surface: Surface) -> None:
    for name in surface.promising("400"):
        malformed = {"content": b"{", "headers": JSON}
        unknown = {"params": {**(REQUESTS[name][3] or {}), "unknown": "1"}}
        await surface.ask(name, **MALFORMED.get(name, unknown if REQUESTS[name][2] is None else malformed))
    for name in surface.promising("413"):
        await surface.ask(name, content=b"x" * 300_000, headers=JSON)
    for name in surface.promising("415"):
        await surface.ask(name, content=b"{}", headers={"Content-Type": "text/plain"})
    for name in surface.promising("404"):
        path = REQUESTS[name][1].replace("/111", "/999").replace("CLIENT", "svcid_1_1_nobody")
        path = path.replace("WEBHOOK", "999").replace("DELIVERY", "999").replace("ALERT", "999").replace("LOGIN", "999")
        params = {**REQUESTS[name][3], **({"locationId": "999"} if {"posts", "reviews"} & set(path.split("/")) else {})}
        body: dict[str, Any] = {"body": {**NEW_KEY, "business_id": 999}} if name == "create_key" else {}
        await surface.ask(name, path=path, params=params, **body)


async def refusals_of_what_arrives(surface: Surface) -> None:
    for name in surface.promising("405"):
        await surface.ask(name, method="TRACE")
    for name in surface.promising("431"):
        await surface.ask(name, headers=TOO_MANY_HEADERS)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(request_body, "GRACE_SECONDS", 0.05)  # a deployment waits as long as ever, so all wait together
        slow = [surface.ask(name, content=unfinished(), headers=JSON) for name in surface.promising("408")]
        await asyncio.gather(*slow)


async def refusals_of_the_state(surface: Surface, emulator: httpx.AsyncClient, services: Services) -> None:
    await surface.ask("create_key", body={**NEW_KEY, "assigned_location_id": "114"})
    held = REQUESTS["roll_key"][1].replace("CLIENT", surface.client_id("held"))
    await surface.ask("roll_key", path=held)
    for enabled in (False, True):
        assert (await surface.ask("change_webhook", body={"enabled": enabled})).is_success
        for name in ("test_webhook", "resend_delivery", "recover_webhook"):
            assert (await surface.ask(name)).is_success is enabled
    for enabled in (False, True):
        assert (await surface.ask("change_alert", body={"enabled": enabled})).is_success
        assert (await surface.ask("test_alert")).is_success is enabled
    while (await surface.ask("create_alert")).is_success:
        pass  # until there are too many
    for _ in range(10):
        assert (await surface.ask("delete_alert")).is_success
    await surface.ask("switch_sync", path="/api/v1/external-business/locations/113/sync")
    await surface.ask("sync_profile", path="/api/v1/sync/112")
    for decision in ("accept", "reject"):
        for location in ("112", "113"):  # switched off, not verified
            path = f"/api/v1/external-business/locations/{location}/google-updated/{decision}"
            await surface.ask(f"{decision}_google_update", path=path)
    for name in surface.promising("422"):
        for body in (
            REQUESTS[name][2],
            OTHER.get(name, {"summary": "Other"}),
        ):
            await surface.ask(name, body=body, headers={"X-Idempotency-Key": "used"})
    await fail(emulator, "delay", method="POST", seconds=0.3, times=1)
    running: dict[str, Any] = {"headers": {"X-Idempotency-Key": "running"}}
    await asyncio.gather(*(surface.ask("create_post", **running) for _ in range(2)))
    for used in (1_000, 0):  # the month's posts, and free ones again
        async with services.storage.write() as session:
            await session.execute(update(post_usage).values(used=used))
        await surface.ask("create_post")


async def failures_behind(surface: Surface, emulator: httpx.AsyncClient) -> None:
    """The provider fails; the posts of 112 were never read, so that no cache answers for them."""
    await fail(emulator)
    for name in surface.promising("502"):
        other: dict[str, Any] = {"params": {"locationId": "112"}} if name == "list_posts" else {}
        await surface.ask(name, **other)
        await heal(emulator)
        await fail(emulator)
    await heal(emulator)


async def failures_within(surface: Surface, change: Change) -> None:
    parts: dict[str, dict[str, Any]] = {"503": {"database": AWAY}, "500": {"storage": Broken()}}
    for status, part in parts.items():
        change(**part)
        for name in surface.promising(status):
            await surface.ask(name)
    change()


async def too_many(surface: Surface, change: Change) -> None:
    change(limits=NO_ROOM)
    for name in surface.promising("429"):
        assert_error(await surface.ask(name), 429, "RATE_LIMITED")
    change()


@pytest.mark.slow
@ON_ONE_DATABASE
async def test_every_documented_status_occurs_and_fits_its_schema(
    surface: Surface,
    emulator: httpx.AsyncClient,
    change: Change,
    services: Services,
) -> None:
    await refusals_of_the_caller(surface)
    await refusals_of_the_request(surface)
    await refusals_of_what_arrives(surface)
    await refusals_of_the_state(surface, emulator, services)
    await failures_behind(surface, emulator)
    await failures_within(surface, change)
    await too_many(surface, change)
    for name in REQUESTS:  # last, as the owner's requests use things up
        assert (await surface.ask(name)).is_success, name
    promised = surface.record.promised() - NEVER
    assert promised - surface.record.seen == set(), "these statuses are documented and were not returned"
    assert surface.record.seen - promised == set(), "these statuses were returned and are not documented"
