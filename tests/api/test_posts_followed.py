"""Posts followed to their end (D-76): what the provider makes of them shows up here, by itself."""

import asyncio
import contextlib
from dataclasses import replace
from typing import Any

import httpx
import pytest
from quart import Quart

from conftest import ON_POSTGRES, AsUser, client_of
from profilesvc.bootstrap import Runtime, create_app
from profilesvc.domain.entropy import SeededEntropy
from profilesvc.domain.time import FrozenClock
from profilesvc.provider.port import Provider
from profilesvc.services import posts, tokens
from profilesvc.services.access import require_location
from profilesvc.services.context import Caller, Services
from profilesvc.settings import Settings
from profilesvc.storage import posts as stored_posts
from support.api import ALICE, BOB, assert_ok
from support.browser.dashboard import Browser
from support.posts import BIKES, PATH, PIER, calls, fail, names
from support.provider.consent import BAKERY, add_dana, connected, imported
from support.provider.drive import drift, no_faults
from support.waiting import until_async


async def listed(client: httpx.AsyncClient) -> dict[str, dict[str, Any]]:
    """The posts of the list now, by name."""
    return {post["name"]: post for post in assert_ok(await client.get(PATH, params=PIER))["localPosts"]}


async def states(client: httpx.AsyncClient, *made: dict[str, Any]) -> list[str]:
    found = await listed(client)
    return [found[post["name"]]["state"] for post in made]


async def create(client: httpx.AsyncClient, **post: Any) -> dict[str, Any]:
    made: dict[str, Any] = assert_ok(await client.post(PATH, params=PIER, json=post), 201)
    return made


async def test_a_review_ends_as_live_or_rejected(
    alice: httpx.AsyncClient, emulator: httpx.AsyncClient, clock: FrozenClock
) -> None:
    await drift(emulator, switches={"review_seconds": 20, "reject_phrase": "casino"})
    good, bad = await create(alice, summary="Fresh bread"), await create(alice, summary="Visit our casino")
    assert [good["state"], bad["state"]] == ["PROCESSING", "PROCESSING"]
    clock.advance(seconds=19)
    assert await states(alice, good, bad) == ["PROCESSING", "PROCESSING"]
    clock.advance(seconds=6)
    assert await states(alice, good, bad) == ["LIVE", "REJECTED"]
    path = f"{PATH}/{bad['name'].rpartition('/')[2]}"
    changed = assert_ok(await alice.patch(path, params=PIER, json={"summary": "Visit our bakery"}))
    assert changed["state"] == "PROCESSING"
    clock.advance(seconds=26)
    assert await states(alice, good, bad) == ["LIVE", "LIVE"]


async def test_a_scheduled_post_waits_and_goes_live(alice: httpx.AsyncClient, clock: FrozenClock) -> None:
    post = await create(alice, summary="Soon", scheduledTime="2026-01-02T04:00:00Z")
    assert post["state"] == "PROCESSING"
    clock.advance(seconds=30)
    assert await states(alice, post) == ["SCHEDULED"]
    clock.advance(hours=1)
    assert await states(alice, post) == ["LIVE"]


async def test_one_refresh_at_a_time_for_a_location_however_many_ask(
    alice: httpx.AsyncClient, as_user: AsUser, emulator: httpx.AsyncClient, clock: FrozenClock
) -> None:
    bob = await as_user(BOB)
    for client, query in ((alice, PIER), (bob, BIKES)):
        await names(client, **query)
    clock.advance(seconds=61)
    slow = {"kind": "delay", "seconds": 0.2, "times": 2, "match": {"method": "GET", "path": "/v4"}}
    assert (await emulator.post("/__emulator/faults", json=slow)).is_success
    before = len(await calls(emulator))
    pages = await asyncio.gather(*(names(alice) for _ in range(30)), *(names(bob, **BIKES) for _ in range(30)))
    assert {len(page) for page in pages} == {12, 3}
    assert len(await calls(emulator)) - before == 2


async def test_the_next_list_has_changes_that_were_made_elsewhere(
    alice: httpx.AsyncClient, services: Services, emulator: httpx.AsyncClient, clock: FrozenClock
) -> None:
    await names(alice)
    post = {"topicType": "STANDARD", "summary": "Made elsewhere"}
    made = await services.provider.create_post("accounts/1", "locations/111", post)
    await services.provider.delete_post("accounts/1", "locations/111", "11101")
    await drift(emulator, posts={"accounts/1/locations/111/localPosts/11102": {"summary": "Edited elsewhere"}})
    clock.advance(seconds=61)
    found = await listed(alice)
    assert found[made["name"].removeprefix("accounts/1/")]["summary"] == "Made elsewhere"
    assert "locations/111/localPosts/11101" not in found
    assert found["locations/111/localPosts/11102"]["summary"] == "Edited elsewhere"


class Halting:
    """A provider whose next list of posts is read, and then held back until `gate` opens."""

    def __init__(self, provider: Provider) -> None:
        self._provider = provider
        self.read, self.gate = asyncio.Event(), asyncio.Event()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._provider, name)

    def for_owner(self, _owner_id: int) -> "Halting":
        return self

    async def posts(self, account: str, location: str) -> list[dict[str, Any]]:
        found = await self._provider.posts(account, location)
        self.read.set()
        await self.gate.wait()
        return found


@pytest.mark.in_process("holds the provider's client half way")
async def test_a_list_that_was_read_before_a_deletion_does_not_bring_the_post_back(
    alice: httpx.AsyncClient, app: Quart, services: Services
) -> None:
    halting = Halting(services.provider)
    app.extensions["profilesvc"] = replace(services, provider=halting)
    first = asyncio.create_task(names(alice))
    await halting.read.wait()
    deleting = asyncio.create_task(alice.delete(f"{PATH}/11107", params=PIER))
    await asyncio.wait([deleting], timeout=0.1)
    halting.gate.set()
    assert assert_ok(await deleting) == {"deleted": True}
    await first
    assert "11107" not in await names(alice)


async def test_a_list_that_is_read_during_a_deletion_does_not_report_another_one(
    alice: httpx.AsyncClient, emulator: httpx.AsyncClient, clock: FrozenClock
) -> None:
    await names(alice)
    clock.advance(hours=1)
    await fail(emulator, kind="delay", seconds=0.5, times=1, match={"path": "/v4", "method": "GET"})
    reading = asyncio.create_task(names(alice))
    await until_async(lambda: no_faults(emulator), "the reading to reach the provider", every=0)
    assert_ok(await alice.delete(f"{PATH}/11107", params=PIER))
    await reading
    events = assert_ok(await alice.get("/api/v1/events", params={"types": "post.deleted,post.deleted_at_provider"}))
    assert [(event["type"], "summary" in event["data"]["post"]) for event in events["events"]] == [
        ("post.deleted", True)
    ]


@pytest.mark.in_process("has two processes of its own")
@ON_POSTGRES
async def test_a_list_read_by_another_process_does_not_bring_the_post_back(
    alice: httpx.AsyncClient, app: Quart, services: Services, settings: Settings, clock: FrozenClock
) -> None:
    halting = Halting(services.provider)
    app.extensions["profilesvc"] = replace(services, provider=halting)
    other = create_app(settings, Runtime(clock, SeededEntropy("other")))
    async with other.test_app(), client_of(other, await tokens.user_token(services, ALICE)) as elsewhere:
        first = asyncio.create_task(names(alice))
        await halting.read.wait()
        deleting = asyncio.create_task(elsewhere.delete(f"{PATH}/11107", params=PIER))
        await asyncio.wait([deleting], timeout=0.2)
        halting.gate.set()
        assert assert_ok(await deleting) == {"deleted": True}
        await first
        assert "11107" not in await names(alice)


@pytest.mark.in_process("pauses a transaction")
@ON_POSTGRES
async def test_a_creation_and_a_reading_at_once_do_not_lock_each_other_out(
    alice: httpx.AsyncClient,
    browser: Browser,
    emulator: httpx.AsyncClient,
    services: Services,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The reading sees the post before the creation has stored it, and stores it while the creation is about to."""
    await add_dana(emulator)
    await imported(alice, await connected(browser, alice), locations=[BAKERY])
    caller = Caller(1, services.plans["pro"], frozenset())
    location = await require_location(services, caller, BAKERY)
    is_stored, put, replace = asyncio.Event(), stored_posts.put, stored_posts.replace

    async def replace_and_report(*args: Any) -> Any:
        reading = await replace(*args)
        is_stored.set()
        return reading

    async def put_later(*args: Any) -> None:
        reading.append(asyncio.create_task(posts.reread(services, location)))
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(is_stored.wait(), 0.5)
        await put(*args)

    reading: list[asyncio.Task[None]] = []
    monkeypatch.setattr(stored_posts, "replace", replace_and_report)
    monkeypatch.setattr(stored_posts, "put", put_later)
    assert_ok(await alice.post(PATH, params={"locationId": BAKERY}, json={"summary": "Bread"}), 201)
    await reading[0]
