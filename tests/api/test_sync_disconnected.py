"""Syncs of a location that its owner disconnects, and connects again, while they run (D-87, D-110)."""

import asyncio
from typing import Any

import httpx
import pytest
from sqlalchemy import select, update

from api.interleave import run_after, run_before
from profilesvc.domain.time import FrozenClock
from profilesvc.provider import remote
from profilesvc.services import access, idempotency, sync
from profilesvc.services.context import Services
from profilesvc.storage import tables
from profilesvc.storage.tables import locations
from support.api import assert_error, assert_ok
from support.browser.dashboard import Browser
from support.provider.consent import BAKERY, CONNECTIONS, add_dana, connected, imported
from support.provider.drive import calls, forget_calls
from support.syncs import COMPARISON, SYNC, history

pytestmark = pytest.mark.in_process("runs other requests between the steps of one")
NUMBER = BAKERY.rpartition("/")[2]
LOCATION = f"/api/v1/external-business/locations/{NUMBER}"
# The steps of a sync, each with the object and the name of the function before which other requests run.
BEFORE_THE_LEASE = "the lease", idempotency, "run_once"
BEFORE_THE_PROVIDER = "the provider", sync, "provider_at"
BEFORE_THE_CALL = "the call", remote.RemoteProvider, "location"
BEFORE_THE_END = "the end", sync, "_finish"


class Login:
    """A login of Alice that reaches a location with sync switched on."""

    def __init__(self, browser: Browser, alice: httpx.AsyncClient) -> None:
        self._browser, self._alice = browser, alice
        self.number = 0

    async def connect(self) -> None:
        self.number = await connected(self._browser, self._alice)
        await imported(self._alice, self.number, locations=[BAKERY], business_id=10)
        assert_ok(await self._alice.patch(f"{LOCATION}/sync", json={"syncEnabled": True}))

    async def disconnect(self) -> None:
        assert_ok(await self._alice.delete(f"{CONNECTIONS}/{self.number}"))

    async def reconnect(self) -> None:
        await self.disconnect()
        await self.connect()


@pytest.fixture
async def login(browser: Browser, alice: httpx.AsyncClient, emulator: httpx.AsyncClient) -> Login:
    await add_dana(emulator)
    made = Login(browser, alice)
    await made.connect()
    return made


async def lease_of(services: Services) -> str | None:
    async with services.storage.read() as session:
        query = select(locations.c.sync_lease).where(locations.c.name == BAKERY)
        lease: str | None = (await session.execute(query)).scalar_one()
    return lease


@pytest.mark.slow
@pytest.mark.parametrize("headers", [{}, {"X-Idempotency-Key": "once"}], ids=["no key", "a key"])
@pytest.mark.parametrize("is_back", [False, True], ids=["disconnected", "connected again"])
@pytest.mark.parametrize("step", [BEFORE_THE_PROVIDER, BEFORE_THE_CALL, BEFORE_THE_END], ids=lambda step: step[0])
async def test_sync_that_runs_is_not_found_and_leaves_nothing(
    login: Login,
    alice: httpx.AsyncClient,
    services: Services,
    monkeypatch: pytest.MonkeyPatch,
    step: tuple[str, object, str],
    is_back: bool,
    headers: dict[str, str],
) -> None:
    run_before(monkeypatch, *step[1:], login.reconnect if is_back else login.disconnect)
    response = await alice.post(f"{SYNC}/{NUMBER}", json={"title": "Overtaken"}, headers=headers)
    assert_error(response, 404, "NOT_FOUND")
    assert await lease_of(services) is None
    if not is_back:
        await login.connect()
    assert [entry["direction"] for entry in await history(alice, NUMBER)] == ["pull"]
    assert assert_ok(await alice.get(f"{COMPARISON}/{NUMBER}"))["lastSync"] == {}
    assert_ok(await alice.post(f"{SYNC}/{NUMBER}", json={"title": "Afterwards"}, headers=headers))
    assert await lease_of(services) is None


@pytest.mark.parametrize("headers", [{}, {"X-Idempotency-Key": "once"}], ids=["no key", "a key"])
async def test_sync_after_the_disconnection_leaves_no_lease(
    login: Login,
    alice: httpx.AsyncClient,
    services: Services,
    emulator: httpx.AsyncClient,
    monkeypatch: pytest.MonkeyPatch,
    headers: dict[str, str],
) -> None:
    run_before(monkeypatch, *BEFORE_THE_LEASE[1:], login.disconnect)
    await forget_calls(emulator)
    assert_error(await alice.post(f"{SYNC}/{NUMBER}", json={"title": "Late"}, headers=headers), 404, "NOT_FOUND")
    assert await lease_of(services) is None
    assert await calls(emulator, "PATCH") == []
    async with services.storage.read() as session:
        assert (await session.execute(select(tables.idempotency.c.scope))).all() == []


async def test_sync_that_has_waited_for_another_one_is_not_found(
    login: Login, alice: httpx.AsyncClient, services: Services, clock: FrozenClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    held = {"sync_lease": "another process", "sync_lease_until": clock.now() + 60_000}
    async with services.storage.write() as session:
        await session.execute(update(locations).where(locations.c.name == BAKERY).values(held))
    run_before(monkeypatch, asyncio, "sleep", login.disconnect)
    assert_error(await alice.post(f"{SYNC}/{NUMBER}", json={"title": "Waited"}), 404, "NOT_FOUND")


async def test_import_ends_a_lease_from_before_the_disconnection_only(
    login: Login, alice: httpx.AsyncClient, services: Services, clock: FrozenClock
) -> None:
    held = {"sync_lease": "another process", "sync_lease_until": clock.now() + 60_000}
    async with services.storage.write() as session:
        await session.execute(update(locations).where(locations.c.name == BAKERY).values(held))
    await imported(alice, login.number, locations=[BAKERY])
    assert await lease_of(services) == "another process"  # its sync still runs
    await login.disconnect()
    async with services.storage.write() as session:  # as versions before did
        await session.execute(update(locations).where(locations.c.name == BAKERY).values(held))
    await login.connect()
    assert await lease_of(services) is None


async def test_sync_whose_lease_has_expired_does_not_undo_a_later_one(
    login: Login, alice: httpx.AsyncClient, clock: FrozenClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def overtake() -> None:
        clock.advance(minutes=10)
        assert_ok(await alice.post(f"{SYNC}/{NUMBER}", json={"title": "Second"}))

    run_before(monkeypatch, *BEFORE_THE_END[1:], overtake)
    assert_error(await alice.post(f"{SYNC}/{NUMBER}", json={"title": "First"}), 409, "CONFLICT")
    assert assert_ok(await alice.get(f"{COMPARISON}/{NUMBER}"))["source"]["title"] == "Second"


OTHERS: dict[str, tuple[str, str, Any]] = {
    "switch": ("PATCH", f"{LOCATION}/sync", {"syncEnabled": True}),
    "switch off": ("PATCH", f"{LOCATION}/sync", {"syncEnabled": False}),
    "verification": ("POST", f"{LOCATION}/refresh-verification", None),
    "location": ("GET", LOCATION, None),
    "comparison": ("GET", f"{COMPARISON}/{NUMBER}", None),
    "preview": ("POST", f"{SYNC}/{NUMBER}?validateOnly=true", {"title": "T"}),
    "posts": ("GET", f"/api/v1/posts?locationId={NUMBER}", None),
    "post": ("POST", f"/api/v1/posts?locationId={NUMBER}", {"summary": "Late"}),
    "reviews": ("GET", f"/api/v1/reviews?locationId={NUMBER}", None),
}


@pytest.mark.parametrize("request_", OTHERS.values(), ids=OTHERS)
async def test_other_requests_do_not_find_a_location_that_was_disconnected_after_they_were_admitted(
    login: Login, alice: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch, request_: tuple[str, str, Any]
) -> None:
    method, path, body = request_
    run_after(monkeypatch, access, "require_location", login.disconnect)
    assert_error(await alice.request(method, path, json=body), 404, "NOT_FOUND")
