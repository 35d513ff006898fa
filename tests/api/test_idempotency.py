"""Idempotency keys over HTTP, on the sync route: once, replayed, refused (D-40, rows A126 to A136)."""

import asyncio
from typing import Any

import httpx
import pytest
from sqlalchemy import func, select, update

from conftest import AsService, AsUser
from profilesvc.contract.keys import KeyCreate, KeyCreated
from profilesvc.domain.permissions import ALL
from profilesvc.domain.time import FrozenClock
from profilesvc.services import credentials
from profilesvc.services import keys as key_service
from profilesvc.services.context import Caller, Services
from profilesvc.services.idempotency import LEASE, Claim
from profilesvc.storage.tables import idempotency, keys
from support.api import BOB, Site, assert_error, assert_ok, fields
from support.fleet.processes import in_process
from support.provider.drive import calls, fail, heal

SYNC, HISTORY = "/api/v1/sync/111", "/api/v1/sync/history/111"
JSON = {"Content-Type": "application/json"}
BODY: dict[str, Any] = {"title": "New", "phoneNumbers": {"primaryPhone": "+81 45-555-0188"}, "wifi": True}


async def push(
    client: httpx.AsyncClient, value: str = "k1", body: Any = None, path: str = SYNC, name: str = "X-Idempotency-Key"
) -> httpx.Response:
    return await client.post(path, json=BODY if body is None else body, headers={name: value})


async def entries(client: httpx.AsyncClient) -> int:
    return len(assert_ok(await client.get(HISTORY))["history"])


async def stored(services: Services) -> int:
    async with services.storage.read() as session:
        return int((await session.execute(select(func.count()).select_from(idempotency))).scalar_one())


async def test_A126_a_retry_gets_the_first_response(
    plugin: Site, emulator: httpx.AsyncClient, clock: FrozenClock
) -> None:
    first = await push(plugin.http)
    assert "idempotency-replayed" not in first.headers
    clock.advance(minutes=5)
    before = await entries(plugin.http)
    reordered = b'{ "wifi":true,\n"phoneNumbers" : {"primaryPhone":"+81 45-555-0188"}, "title":"New" }'
    for again in [
        await push(plugin.http),
        await push(plugin.http, name="Idempotency-Key"),
        await push(plugin.http, path="/api/v1/sync/locations%2F111"),
        await plugin.http.post(SYNC, content=reordered, headers={**JSON, "X-Idempotency-Key": "k1"}),
    ]:
        assert again.content == first.content
        assert (again.status_code, again.headers["idempotency-replayed"]) == (200, "true")
        assert again.headers["content-type"] == "application/json"
    assert len(await calls(emulator, "PATCH")) == 1
    assert await entries(plugin.http) == before  # a replay adds no entry (D-86)


async def test_a_skipped_sync_is_replayed_too(plugin: Site) -> None:
    first, again = [await push(plugin.http, body={"wifi": 1}) for _ in range(2)]
    assert assert_ok(first)["status"] == "skipped"
    assert again.content == first.content


async def test_without_a_key_every_request_runs(plugin: Site) -> None:
    first, again = [assert_ok(await plugin.http.post(SYNC, json=BODY)) for _ in range(2)]
    assert first["syncId"] != again["syncId"]


async def test_A127_another_body_under_the_same_key(plugin: Site, emulator: httpx.AsyncClient) -> None:
    assert_ok(await push(plugin.http))
    for other in ({**BODY, "title": "Newer"}, {**BODY, "extra": None}, {"title": "New"}, {**BODY, "wifi": 1}):
        assert_error(await push(plugin.http, body=other), 422, "IDEMPOTENCY_KEY_REUSED")
    assert len(await calls(emulator, "PATCH")) == 1


async def test_A128_many_at_once_run_once(plugin: Site, emulator: httpx.AsyncClient) -> None:
    await fail(emulator, "delay", method="PATCH", seconds=0.2, times=1)
    answers = await asyncio.gather(*(push(plugin.http) for _ in range(40)))
    good = [answer for answer in answers if answer.status_code == 200]
    assert len({answer.content for answer in good}) == 1
    for answer in answers:
        if answer.status_code != 200:
            assert_error(answer, 409, "IDEMPOTENCY_IN_PROGRESS")
            assert answer.headers["retry-after"] == "1"
    assert len(await calls(emulator, "PATCH")) == 1
    assert sum("idempotency-replayed" not in answer.headers for answer in good) == 1


async def test_A129_an_invalid_idempotency_key_is_rejected(plugin: Site, services: Services) -> None:
    bad: list[list[tuple[str, bytes]]] = [
        [(name, value)]
        for name in ("X-Idempotency-Key", "Idempotency-Key")
        for value in (
            b"",
            b"x" * 256,
            b"a b",
            "é".encode(),
            b"\xff",
            *in_process(b"a\x01b"),
            b"a\tb",
            *in_process(b"\x7f"),
        )
    ]
    bad += [
        [("X-Idempotency-Key", b"a"), ("X-Idempotency-Key", b"b")],
        [("X-Idempotency-Key", b"a"), ("X-Idempotency-Key", b"a")],
        [("X-Idempotency-Key", b"a"), ("Idempotency-Key", b"b")],
        [("X-Idempotency-Key", b"a"), ("Idempotency-Key", b"")],
    ]
    for headers in bad:
        response = await plugin.http.post(SYNC, json=BODY, headers=[(n.encode(), v) for n, v in headers])
        details = assert_error(response, 400, "VALIDATION_ERROR")
        assert fields(details) == ["X-Idempotency-Key"], headers
        assert details["errors"][0]["in"] == "header"
    assert await stored(services) == 0
    both = {"X-Idempotency-Key": "same", "Idempotency-Key": "same"}
    assert_ok(await plugin.http.post(SYNC, json=BODY, headers=both))
    assert_ok(await push(plugin.http, "x" * 255))


async def test_A130_other_callers_and_locations_are_unrelated(
    plugin: Site, as_service: AsService, as_user: AsUser, alice: httpx.AsyncClient
) -> None:
    other_key, bob = await as_service(), await as_user(BOB)
    for client, path in [
        (plugin.http, SYNC),
        (other_key.http, SYNC),
        (alice, SYNC),
        (alice, "/api/v1/sync/114"),
        (bob, "/api/v1/sync/211"),
    ]:
        response = await push(client, body={"title": f"Title of {path}"}, path=path)
        assert_ok(response)
        assert "idempotency-replayed" not in response.headers


async def test_A131_a_correctable_error_is_not_stored(
    plugin: Site, alice: httpx.AsyncClient, services: Services
) -> None:
    assert_error(await push(plugin.http, body={"title": 5}), 400, "VALIDATION_ERROR")
    assert_error(await push(plugin.http, body={}), 400, "VALIDATION_ERROR")
    switch = "/api/v1/external-business/locations/111/sync"
    assert_ok(await alice.patch(switch, json={"syncEnabled": False}))
    assert_error(await push(plugin.http, body={"title": "Other"}), 409, "SYNC_DISABLED")
    assert await stored(services) == 0
    assert_ok(await alice.patch(switch, json={"syncEnabled": True}))
    response = await push(plugin.http)
    assert_ok(response)
    assert "idempotency-replayed" not in response.headers


async def test_a_final_rejection_of_the_provider_is_replayed(plugin: Site, emulator: httpx.AsyncClient) -> None:
    await fail(emulator, method="PATCH", status=400, message="no such title", times=1)
    first, again = await push(plugin.http), await push(plugin.http)
    details = assert_error(first, 502, "PROVIDER_API_ERROR")
    assert details["retryable"] is False
    assert again.content == first.content
    assert (again.status_code, again.headers["idempotency-replayed"]) == (502, "true")
    assert len(await calls(emulator, "PATCH")) == 1
    assert_ok(await push(plugin.http, "another"))


async def test_an_outage_of_the_provider_is_not_stored(plugin: Site, emulator: httpx.AsyncClient) -> None:
    for fault in ({"status": 503}, {"status": 429}, {"kind": "disconnect"}):
        await fail(emulator, **fault)
        details = assert_error(await push(plugin.http), 502, "PROVIDER_API_ERROR")
        assert details["retryable"] is True
        await heal(emulator)
    response = await push(plugin.http)
    assert assert_ok(response)["status"] == "success"
    assert "idempotency-replayed" not in response.headers


async def test_after_an_outage_the_request_may_be_corrected(plugin: Site, emulator: httpx.AsyncClient) -> None:
    await fail(emulator, status=503)
    assert_error(await push(plugin.http), 502, "PROVIDER_API_ERROR")
    await heal(emulator)
    corrected = {"websiteUri": "https://harbour.example/corrected"}
    assert assert_ok(await push(plugin.http, body=corrected))["fieldsUpdated"] == ["websiteUri"]
    assert_error(await push(plugin.http), 422, "IDEMPOTENCY_KEY_REUSED")


async def test_an_attempt_with_an_unknown_effect_keeps_its_body(plugin: Site, emulator: httpx.AsyncClient) -> None:
    await fail(emulator, "disconnect", method="PATCH", after=True)
    assert_error(await push(plugin.http), 502, "PROVIDER_API_ERROR")
    await heal(emulator)
    assert_error(await push(plugin.http, body={"title": "Another"}), 422, "IDEMPOTENCY_KEY_REUSED")


async def test_A132_a_retry_after_a_lost_response_has_one_effect(plugin: Site, emulator: httpx.AsyncClient) -> None:
    """The patch took place and its answer was lost, retries too: the repeat finds nothing left to change."""
    await fail(emulator, "disconnect", method="PATCH", after=True)
    assert_error(await push(plugin.http), 502, "PROVIDER_API_ERROR")
    sent = len(await calls(emulator, "PATCH"))
    await heal(emulator)
    assert assert_ok(await push(plugin.http))["status"] == "success"
    assert len(await calls(emulator, "PATCH")) == sent


async def test_A134_a_replay_needs_the_right_to_the_operation(
    plugin: Site, alice: httpx.AsyncClient, services: Services
) -> None:
    first = await push(plugin.http)
    client = plugin.key["client_id"]
    async with services.storage.write() as session:
        await session.execute(update(keys).values(permissions="business.read"))
    assert_error(await push(plugin.http), 403, "AUTH_INSUFFICIENT_PERMISSIONS")
    async with services.storage.write() as session:
        await session.execute(update(keys).values(permissions="business.read business.write"))
    await key_service.deactivate(services, client, "billing_issue")
    details = assert_error(await push(plugin.http), 403, "AUTH_INSUFFICIENT_PERMISSIONS")
    assert details["deactivation_reason"] == "billing_issue"
    await key_service.reactivate(services, client)
    assert (await push(plugin.http)).content == first.content
    assert_ok(await alice.delete(f"/api/v1/developer/credentials/{client}"))
    assert_error(await push(plugin.http), 401, "AUTH_INVALID_TOKEN")


async def test_A135_is_deleted_after_a_day(plugin: Site, clock: FrozenClock) -> None:
    first = await push(plugin.http)
    clock.advance(hours=23, minutes=59)
    assert (await push(plugin.http)).content == first.content
    clock.advance(minutes=2)
    anew = await push(plugin.http, body={"title": "Newer"})
    assert "idempotency-replayed" not in anew.headers
    assert assert_ok(anew)["fieldsUpdated"] == ["title"]
    assert (await push(plugin.http, body={"title": "Newer"})).content == anew.content


async def test_A136_the_value_is_opaque(plugin: Site) -> None:
    for number, value in enumerate(("'OR/**/1=1--", "../x", "%00", "{{7*7}}", "k1,k2", '"quoted"', "\\")):
        body = {"title": f"T{number}"}
        first, again = await push(plugin.http, value, body), await push(plugin.http, value, body)
        assert_ok(first)
        assert again.content == first.content


async def test_other_routes_ignore_the_header(alice: httpx.AsyncClient) -> None:
    """Replaying the creation of a key would need its stored secret (D-40)."""
    body = {"name": "Site", "business_id": 10, "assigned_location_id": "locations/111"}
    made = [await push(alice, body=body, path="/api/v1/developer/credentials") for _ in range(2)]
    assert len({assert_ok(answer, 201)["client_id"] for answer in made}) == 2


async def test_a_crash_leaves_no_key_that_the_same_form_creates_again(
    services: Services, clock: FrozenClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The secret of the first one would have been lost."""
    owner = Caller(1, services.plans["pro"], frozenset(ALL))
    body = KeyCreate(name="Site", business_id=10, assigned_location_id="locations/111")

    async def killed(*_args: object) -> None:
        raise RuntimeError("killed")

    with monkeypatch.context() as crash:
        crash.setattr(Claim, "finish", killed)
        with pytest.raises(RuntimeError):
            await credentials.create_once(services, owner, body, "form-1")
    clock.advance(milliseconds=LEASE)
    made = await credentials.create_once(services, owner, body, "form-1")
    assert isinstance(made, KeyCreated)
    assert await credentials.create_once(services, owner, body, "form-1") == made.client_id
    async with services.storage.read() as session:
        assert (await session.execute(select(keys.c.client_id))).scalars().all() == [made.client_id]
