"""Events of reviews and posts: what a reading publishes, and which locations the schedule reads."""

import asyncio
import contextlib
from dataclasses import replace
from typing import Any

import httpx
import pytest
from sqlalchemy import select

from conftest import AsUser
from profilesvc.bootstrap import Runtime, open_services
from profilesvc.contract.errors import SERVICE_UNAVAILABLE
from profilesvc.contract.json import JsonObject
from profilesvc.domain.entropy import SeededEntropy
from profilesvc.domain.errors import ServiceError
from profilesvc.domain.time import HOUR, FrozenClock, iso
from profilesvc.operations.feed import readings
from profilesvc.provider.breaker import FAILURES
from profilesvc.provider.port import ProviderError
from profilesvc.provider.remote import RemoteProvider
from profilesvc.services import access
from profilesvc.services.context import AllowedLocation, Caller, Services
from profilesvc.services.jobs import run_once
from profilesvc.services.notify import alerts
from profilesvc.services.reviews import reviews
from profilesvc.settings import ProviderSettings
from profilesvc.storage import tables
from profilesvc.storage.notify import channels
from support.api import CAROL, assert_ok
from support.jobs import job_named
from support.posts import PATH as POSTS
from support.posts import PIER
from support.provider.drive import calls, drift, fail, forget_calls, heal

REVIEWS, EVENTS, ALERTS, HOOKS = "/api/v1/reviews", "/api/v1/events", "/api/v1/alerts", "/api/v1/webhooks"
SUBSCRIBED = ["review.created", "review.updated"]
pytestmark = pytest.mark.in_process("runs the rounds itself")


async def write(
    emulator: httpx.AsyncClient, ident: str, at: int, location: str = "locations/111", **fields: Any
) -> None:
    """Let a customer write a review, or change it if there is one with this id."""
    review = {"starRating": "FIVE", "createTime": iso(at), "updateTime": iso(at), **fields}
    await drift(emulator, reviews={f"accounts/1/{location}/reviews/{ident}": review})


async def published(services: Services) -> list[tuple[str, str]]:
    """The type and the review or post of each event of the first owner."""
    query = select(tables.events).where(tables.events.c.owner_id == 1).order_by(tables.events.c.id)
    async with services.storage.read() as session:
        rows = (await session.execute(query)).all()
    return [(row.type, row.data.partition("localPosts/")[2][:5] or _review_of(row.data)) for row in rows]


def _review_of(data: str) -> str:
    return data.partition("/reviews/")[2].partition('"')[0]


async def subscribe(owner: httpx.AsyncClient, *types: str) -> JsonObject:
    alert: JsonObject = assert_ok(
        await owner.post(ALERTS, json={"immediate": list(types) or SUBSCRIBED, "daily": []}), 201
    )
    return alert


async def of_alice(services: Services, name: str = "locations/111") -> AllowedLocation:
    return await access.require_location(services, Caller(1, services.plans["pro"], frozenset()), name)


async def pass_time(services: Services, clock: FrozenClock, minutes: int = 61) -> None:
    clock.advance(minutes=minutes)
    await readings.run_once(services)


Pages = dict[str, list[tuple[str, int]]]  # by page token: ids and hours, 0 for none


def _listing(pages: Pages) -> Any:
    """A provider's list of reviews, which ends with its last page."""
    tokens = [*pages, ""]

    async def listed(*_: object, page_token: str = "", **__: object) -> JsonObject:
        times = {
            ident: {"updateTime": iso(hour * HOUR), "createTime": iso(hour * HOUR)} if hour else {}
            for ident, hour in pages[page_token]
        }
        found = [{"name": f"accounts/1/locations/111/reviews/{ident}", **each} for ident, each in times.items()]
        return {"reviews": found, "nextPageToken": tokens[tokens.index(page_token) + 1]}

    return listed


async def test_the_first_reading_publishes_nothing_and_later_ones_publish_changes(
    services: Services, alice: httpx.AsyncClient, emulator: httpx.AsyncClient, clock: FrozenClock
) -> None:
    assert_ok(await alice.get(REVIEWS, params=PIER))
    assert await published(services) == []
    clock.advance(minutes=1)
    await write(emulator, "7001", clock.now(), comment="Lovely.")
    for _ in range(2):
        assert_ok(await alice.get(REVIEWS, params=PIER))
    assert await published(services) == [("review.created", "7001")]
    clock.advance(minutes=1)
    await write(emulator, "111002", clock.now(), createTime="2025-11-01T00:00:00Z", starRating="ONE")
    await write(emulator, "7001", clock.now(), createTime=iso(clock.now() - 60_000), starRating="TWO")
    for _ in range(2):
        assert_ok(await alice.get(REVIEWS, params=PIER))
    assert (await published(services))[1:] == [("review.updated", "111002"), ("review.updated", "7001")]
    event = assert_ok(await alice.get(EVENTS))["events"][0]
    assert event["data"]["location_id"] == "locations/111"
    assert event["data"]["review"]["name"] == "locations/111/reviews/7001"
    assert event["data"]["review"]["comment"] == "Lovely."


async def test_a_reading_publishes_the_first_review_of_a_location(
    services: Services, alice: httpx.AsyncClient, emulator: httpx.AsyncClient, clock: FrozenClock
) -> None:
    place = {"locationId": "119"}
    assert assert_ok(await alice.get(REVIEWS, params=place))["reviews"] == []
    await write(emulator, "1", clock.now(), "locations/119")
    assert_ok(await alice.get(REVIEWS, params=place))
    assert await published(services) == [("review.created", "1")]


async def test_a_reading_publishes_a_review_that_appears_late(
    services: Services, alice: httpx.AsyncClient, emulator: httpx.AsyncClient, clock: FrozenClock
) -> None:
    """The provider shows a review after it has checked it, with the time at which it was written."""
    assert_ok(await alice.get(REVIEWS, params=PIER))
    await write(emulator, "7001", clock.now())
    assert_ok(await alice.get(REVIEWS, params=PIER))
    await write(emulator, "7002", clock.now() - 86_400_000 * 400)
    assert_ok(await alice.get(REVIEWS, params=PIER))
    assert await published(services) == [("review.created", "7001"), ("review.created", "7002")]


async def test_a_page_that_cannot_show_all_news_publishes_nothing(
    services: Services, alice: httpx.AsyncClient, emulator: httpx.AsyncClient, clock: FrozenClock
) -> None:
    assert_ok(await alice.get(REVIEWS, params=PIER))
    for number in range(3):
        await write(emulator, f"700{number}", clock.now() + number)
    page = assert_ok(await alice.get(REVIEWS, params={**PIER, "pageSize": 2}))
    assert_ok(await alice.get(REVIEWS, params={**PIER, "pageSize": 2, "pageToken": page["nextPageToken"]}))
    assert_ok(await alice.get(REVIEWS, params={**PIER, "orderBy": "rating"}))
    assert await published(services) == []
    assert_ok(await alice.get(REVIEWS, params={**PIER, "pageSize": 4}))
    assert await published(services) == [("review.created", f"700{number}") for number in range(3)]


@pytest.mark.slow
async def test_a_reading_publishes_more_than_a_page_of_reviews(
    services: Services, emulator: httpx.AsyncClient, clock: FrozenClock
) -> None:
    location = await of_alice(services)
    assert await reviews.read(services, location) == 1
    expected = []
    for number in range(120):
        await write(emulator, f"8{number:03}", clock.now() + number)
        expected.append(("review.created", f"8{number:03}"))
    await forget_calls(emulator)
    assert await reviews.read(services, location) == len(await calls(emulator, "GET")) == 3
    assert await published(services) == expected
    assert await reviews.read(services, location) == 1
    # One that is older than the stored ones was seen before, although its time is not stored.
    await write(emulator, "8001", clock.now() + 500, createTime=iso(clock.now() + 1))
    assert await reviews.read(services, location) == 1
    assert (await published(services))[120:] == [("review.updated", "8001")]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("first", "then"),
    [
        ({"": [], "2": [("old", 1)]}, {"": [("old", 1)]}),
        ({"": [("newest", 2), ("odd", 0)], "2": [("old", 1)]}, {"": [("newest", 2), ("old", 1)]}),
        ({"": [("newest", 2), ("odd", 0)]}, {"": [("newest", 2), ("old", 1), ("odd", 1)]}),
    ],
    ids=["an empty page first", "a review without times", "a review without times on the only page"],
)
async def test_a_reading_publishes_no_old_review_after_an_odd_page(
    services: Services, alice: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch, first: Pages, then: Pages
) -> None:
    await subscribe(alice)
    location = await of_alice(services)
    for pages in (first, then, {"": [("new", 3), *then[""]]}):
        monkeypatch.setattr(RemoteProvider, "reviews", _listing(pages))
        await reviews.read(services, location)
    assert await published(services) == [("review.created", "new")]


async def test_several_processes_publish_each_review_once(
    services: Services, emulator: httpx.AsyncClient, clock: FrozenClock, database: str
) -> None:
    location = await of_alice(services)
    await reviews.read(services, location)
    runtime = Runtime(clock, SeededEntropy("other"))
    async with contextlib.AsyncExitStack() as stack:
        processes = [services]
        if database == "postgres":
            other = await stack.enter_async_context(open_services(services.settings, runtime))
            processes = [services, replace(other, provider=services.provider)]
        for number in range(20):
            await write(emulator, f"90{number:02}", clock.now() + number)
            await asyncio.gather(*(reviews.read(process, location) for process in processes * 2))
    assert await published(services) == [("review.created", f"90{number:02}") for number in range(20)]


async def test_reviews_are_listed_while_the_mark_of_a_reading_cannot_be_stored(
    services: Services, alice: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def unavailable(*_: object) -> bool:
        raise ServiceError(SERVICE_UNAVAILABLE)

    with monkeypatch.context() as patched:
        patched.setattr("profilesvc.storage.reviews.readings.see", unavailable)
        assert len(assert_ok(await alice.get(REVIEWS, params=PIER))["reviews"]) == 5


async def test_the_schedule_reads_locations_of_subscribed_owners(
    services: Services,
    alice: httpx.AsyncClient,
    as_user: AsUser,
    emulator: httpx.AsyncClient,
    clock: FrozenClock,
) -> None:
    await pass_time(services, clock)
    assert await calls(emulator) == []
    await subscribe(alice)
    carol = await as_user(CAROL)  # her plan has no reviews
    await subscribe(carol)
    await pass_time(services, clock)
    paths = [call["path"] for call in await calls(emulator, "GET")]
    assert paths
    assert all(path.endswith("/reviews") for path in paths)
    assert len(paths) == len(set(paths))
    assert {path.partition("/locations/")[2][0] for path in paths} == {"1"}, "of Alice"
    await write(emulator, "7001", clock.now())
    await forget_calls(emulator)
    await pass_time(services, clock, minutes=30)
    assert (await calls(emulator), await published(services)) == ([], [])
    await pass_time(services, clock, minutes=31)
    assert len(await calls(emulator, "GET")) == len(paths)
    assert await published(services) == [("review.created", "7001")]
    assert assert_ok(await carol.get(EVENTS))["events"] == []


async def test_the_schedule_reads_for_a_webhook_of_all_types(
    services: Services, alice: httpx.AsyncClient, emulator: httpx.AsyncClient, clock: FrozenClock
) -> None:
    now = clock.now()
    values: dict[str, Any] = {"kind": "webhook", "target": "x", "nonce": "n", "created_at": now}
    async with services.storage.write() as session:
        await channels.add(session, 1, "digest", confirmed_at=now, types="", **values)
    await pass_time(services, clock)
    assert {call["path"].rpartition("/")[2] for call in await calls(emulator, "GET")} == {"reviews", "localPosts"}


async def test_the_schedule_stops_when_the_owner_unsubscribes(
    services: Services, alice: httpx.AsyncClient, emulator: httpx.AsyncClient, clock: FrozenClock
) -> None:
    alert = await subscribe(alice)
    await pass_time(services, clock)
    async with services.storage.read() as session:
        row = await channels.find(session, 1, alert["id"], alerts.ALERTS.kinds)
    assert row is not None
    await alerts.unsubscribe(services, row)
    await write(emulator, "7001", clock.now())
    await forget_calls(emulator)
    await pass_time(services, clock)
    assert (await calls(emulator), await published(services)) == ([], [])
    assert_ok(await alice.patch(f"{ALERTS}/{alert['id']}", json={"enabled": True}))
    await pass_time(services, clock)
    assert await published(services) == [("review.created", "7001")]


async def test_the_schedule_finds_posts_that_were_rejected_or_deleted(
    services: Services, alice: httpx.AsyncClient, emulator: httpx.AsyncClient, clock: FrozenClock
) -> None:
    """Without a caller who lists them."""
    assert_ok(await alice.post(ALERTS, json={}), 201)  # by default it has rejected posts
    await drift(emulator, switches={"review_seconds": 20, "reject_phrase": "casino"})
    await pass_time(services, clock)
    bad = assert_ok(await alice.post(POSTS, params=PIER, json={"summary": "Visit our casino"}), 201)["name"]
    await pass_time(services, clock)
    await services.provider.delete_post("accounts/1", "locations/111", bad.rpartition("/")[2])
    await pass_time(services, clock)
    found = [kind for kind, _ in await published(services) if kind.startswith("post.") and kind != "post.created"]
    assert found == ["post.rejected", "post.deleted_at_provider"]


async def test_the_schedule_leaves_the_quota_to_callers(
    services: Services,
    alice: httpx.AsyncClient,
    emulator: httpx.AsyncClient,
    clock: FrozenClock,
) -> None:
    """A round sends as many requests as the setting has, and reads the longest unread first."""
    await subscribe(alice)
    sparing = replace(services, settings=_with(services, readings_per_minute=3))
    seen: list[str] = []
    for _ in range(3):
        await forget_calls(emulator)
        await pass_time(sparing, clock, minutes=1)
        await readings.run_once(sparing)  # in the same minute, as another process does
        paths = [call["path"] for call in await calls(emulator, "GET")]
        assert len(paths) <= 3
        seen += paths
    assert len(seen) == len(set(seen)) > 3
    await forget_calls(emulator)
    await pass_time(replace(services, settings=_with(services, readings_per_minute=0)), clock)
    assert await calls(emulator) == []


async def test_the_schedule_skips_a_location_that_the_provider_no_longer_has(
    services: Services, alice: httpx.AsyncClient, emulator: httpx.AsyncClient, clock: FrozenClock
) -> None:
    await subscribe(alice)
    await pass_time(services, clock)
    body = {"kind": "status", "times": 9, "status": 404, "match": {"path": ".*/locations/111/reviews.*"}}
    assert (await emulator.post("/__emulator/faults", json=body)).status_code == 200
    await write(emulator, "7001", clock.now(), "locations/119")
    await pass_time(services, clock)
    assert await published(services) == [("review.created", "7001")]
    await forget_calls(emulator)
    await pass_time(services, clock, minutes=2)
    assert await calls(emulator) == [], "it is read again after the interval, not before"


async def test_the_schedule_waits_while_the_provider_is_down(
    services: Services,
    alice: httpx.AsyncClient,
    emulator: httpx.AsyncClient,
    clock: FrozenClock,
) -> None:
    await subscribe(alice)
    await pass_time(services, clock)
    await write(emulator, "7001", clock.now())
    await forget_calls(emulator)
    down = _Down()
    broken = replace(services, provider=down)  # type: ignore[arg-type]
    clock.advance(minutes=60)
    asked = []
    for _ in range(3):
        await pass_time(broken, clock, minutes=1)
        asked.append(down.asked)
    assert asked == [3, 4, 4], "three failures end a round, and none is repeated within five minutes"
    await pass_time(services, clock, minutes=6)
    assert await published(services) == [("review.created", "7001")]


async def test_the_schedule_waits_while_the_breaker_is_open(
    services: Services, alice: httpx.AsyncClient, emulator: httpx.AsyncClient, clock: FrozenClock
) -> None:
    await subscribe(alice)
    await pass_time(services, clock)
    await write(emulator, "7001", clock.now())
    locations = [await of_alice(services, f"locations/11{digit}") for digit in (1, 2, 3)]
    await fail(emulator, "disconnect", times=100)
    clock.advance(minutes=61)
    for number in range(FAILURES):
        with pytest.raises(ProviderError):
            await reviews.read(services, locations[number % len(locations)])
    await forget_calls(emulator)
    await readings.run_once(services)
    assert await calls(emulator) == []
    await heal(emulator)
    await pass_time(services, clock, minutes=6)
    assert await published(services) == [("review.created", "7001")]


async def test_several_processes_read_a_location_once_a_minute(
    services: Services, alice: httpx.AsyncClient, emulator: httpx.AsyncClient, clock: FrozenClock
) -> None:
    await subscribe(alice)
    clock.advance(hours=2)
    await asyncio.gather(*(run_once(services, job_named("readings")) for _ in range(4)))
    paths = [call["path"] for call in await calls(emulator, "GET")]
    assert len(paths) == len(set(paths)) > 0


class _Down:
    """A provider that does not respond."""

    def __init__(self) -> None:
        self.asked = 0

    def for_owner(self, _owner_id: int) -> "_Down":
        return self

    async def reviews(self, *_: object, **__: object) -> JsonObject:
        self.asked += 1
        raise ProviderError("unavailable", retryable=True, reached=False)


def _with(services: Services, **values: int) -> Any:
    provider = ProviderSettings.model_validate({**services.settings.provider.model_dump(), **values})
    return services.settings.model_copy(update={"provider": provider})
