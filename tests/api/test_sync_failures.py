"""Syncs that fail at the provider, and syncs that wait for each other (D-83, D-87)."""

import asyncio
from typing import Any

import httpx
import pytest
from sqlalchemy import update

from conftest import client_of
from profilesvc.bootstrap import Runtime, create_app
from profilesvc.domain.time import FrozenClock
from profilesvc.services import sync, tokens
from profilesvc.services.context import Services
from profilesvc.settings import ProviderSettings, Settings
from profilesvc.storage.tables import locations
from support.api import ALICE, Site, assert_error, assert_ok
from support.provider.drive import calls, drift, fail, forget_calls, heal, no_faults
from support.syncs import COMPARISON, PIER, SYNC, history
from support.waiting import until_async


@pytest.mark.parametrize(
    ("method", "fault", "told"),
    [
        ("PATCH", {"status": 400, "message": "no"}, ("rejected", False)),
        ("PATCH", {"status": 503}, ("unavailable", True)),
        ("GET", {"status": 429}, ("rate_limited", True)),
        ("GET", {"kind": "disconnect"}, ("unavailable", True)),
    ],
)
async def test_A142_a_failed_sync_is_a_502_and_stays_in_the_history(
    alice: httpx.AsyncClient,
    emulator: httpx.AsyncClient,
    method: str,
    fault: dict[str, Any],
    told: tuple[str, bool],
) -> None:
    await fail(emulator, method=method, **fault)
    details = assert_error(await alice.post(f"{SYNC}/111", json={"title": "T"}), 502, "PROVIDER_API_ERROR")
    assert (details["reason"], details["retryable"]) == told
    failed = (await history(alice))[0]
    assert (failed["status"], failed["fieldsUpdated"], failed["direction"]) == ("failed", 0, "push")
    await heal(emulator)
    comparison = assert_ok(await alice.get(f"{COMPARISON}/111"))
    is_desired = told[0] != "rejected"  # what the provider could not take stays the desired state (D-84)
    assert comparison["source"]["title"] == ("T" if is_desired else "Harbour Coffee, Pier")
    assert comparison["lastSync"]["title"] == "Harbour Coffee, Pier"
    assert [difference["field"] for difference in comparison["differences"]] == (["title"] if is_desired else [])
    assert_ok(await alice.post(f"{SYNC}/111", json={"title": "T"}))  # and the turn was given back
    assert assert_ok(await alice.get(f"{COMPARISON}/111"))["differences"] == []


async def test_a_skipped_sync_succeeds_while_the_provider_fails(
    alice: httpx.AsyncClient, emulator: httpx.AsyncClient
) -> None:
    await fail(emulator)
    assert assert_ok(await alice.post(f"{SYNC}/111", json={"unknown": 1}))["status"] == "skipped"


async def test_a_second_sync_waits_for_the_lease(
    alice: httpx.AsyncClient, plugin: Site, emulator: httpx.AsyncClient
) -> None:
    await fail(emulator, "delay", method="PATCH", seconds=0.3, times=1)
    await forget_calls(emulator)
    first = alice.post(f"{SYNC}/111", json={"title": "First"})
    second = plugin.http.post(f"{SYNC}/111", json={"title": "Second"})
    for answer in await asyncio.gather(first, second):
        assert assert_ok(answer)["fieldsUpdated"] == ["title"]
    seen = [call["method"] for call in await calls(emulator) if call["path"] != "/token"]
    assert seen == ["GET", "PATCH", "GET", "PATCH"]


async def test_a_lease_that_is_not_released_is_a_conflict(
    alice: httpx.AsyncClient, services: Services, clock: FrozenClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sync, "LOCK_WAIT_SECONDS", 0.1)
    held = {"sync_lease": "another process", "sync_lease_until": clock.now() + 60_000}
    async with services.storage.write() as session:
        await session.execute(update(locations).where(locations.c.name == PIER).values(held))
    response = await alice.post(f"{SYNC}/111", json={"title": "T"})
    assert_error(response, 409, "CONFLICT")
    assert int(response.headers["retry-after"]) >= 1
    assert_ok(await alice.post(f"{SYNC}/114", json={"title": "T"}))  # another location does not wait
    clock.advance(seconds=60)  # the holder has ended
    assert_ok(await alice.post(f"{SYNC}/111", json={"title": "T"}))


@pytest.mark.in_process("waits for the held call")
class TestPatience:
    """With the longest `timeout_seconds` a sync may take two minutes."""

    @pytest.fixture
    def settings(self, settings: Settings) -> Settings:
        return settings.model_copy(update={"provider": ProviderSettings(timeout_seconds=60)})

    @pytest.mark.parametrize(
        ("method", "path", "code"),
        [("PATCH", f"{SYNC}/111", "CONFLICT"), ("POST", "/api/v1/posts?locationId=111", "IDEMPOTENCY_IN_PROGRESS")],
    )
    async def test_no_other_operation_takes_over_from_one_that_waits_for_the_provider(
        self,
        alice: httpx.AsyncClient,
        emulator: httpx.AsyncClient,
        clock: FrozenClock,
        monkeypatch: pytest.MonkeyPatch,
        method: str,
        path: str,
        code: str,
    ) -> None:
        monkeypatch.setattr(sync, "LOCK_WAIT_SECONDS", 0.1)
        body = {"summary": "Once"} if method == "POST" else {"title": "Once"}
        keys = {"X-Idempotency-Key": "one"} if method == "POST" else {}
        await fail(emulator, "hold", method=method, times=1)
        first = asyncio.create_task(alice.post(path, json=body, headers=keys))
        await until_async(lambda: no_faults(emulator), "the provider to hold the call")
        clock.advance(seconds=115)
        assert_error(await alice.post(path, json=body, headers=keys), 409, code)
        await heal(emulator)
        assert (await first).is_success


async def test_A142_a_provider_that_does_not_respond_in_time(settings: Settings, world: Runtime) -> None:
    impatient = settings.model_copy(update={"provider": ProviderSettings(timeout_seconds=0.2)})
    app = create_app(impatient, world)
    async with app.test_app():
        services: Services = app.extensions["profilesvc"]
        assert world.emulator is not None
        transport = httpx.ASGITransport(app=world.emulator)  # type: ignore[arg-type]
        async with (
            httpx.AsyncClient(transport=transport, base_url="http://emulator") as emulator,
            client_of(app, await tokens.user_token(services, ALICE)) as alice,
        ):
            await fail(emulator, "delay", method="GET", seconds=2)
            details = assert_error(await alice.post(f"{SYNC}/111", json={"title": "T"}), 502, "PROVIDER_API_ERROR")
            assert (details["reason"], details["retryable"]) == ("timeout", True)
            assert (await history(alice))[0]["status"] == "failed"


async def test_A138_a_location_that_lost_its_verification_meanwhile(plugin: Site, emulator: httpx.AsyncClient) -> None:
    """The profile already shows the loss before the verification is read again."""
    await drift(emulator, voice_of_merchant={"locations/111": {"complyWithGuidelines": {}}})
    details = assert_error(
        await plugin.http.post("/api/v1/sync/111", json={"title": "New"}), 409, "LOCATION_NOT_VERIFIED"
    )
    assert details == {"verificationState": "SUSPENDED"}
    location = assert_ok(await plugin.http.get("/api/v1/external-business/locations"))["locations"][0]
    assert (location["locationState"], location["syncEnabled"]) == ({"isVerified": False}, False)
