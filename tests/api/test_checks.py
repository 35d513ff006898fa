"""The background check: what changes at the provider is found without a feed, a subscription or a reader."""

import asyncio
from collections import Counter
from dataclasses import replace
from typing import Any

import httpx
import pytest
from sqlalchemy import select, update

from conftest import AsService
from profilesvc.domain.time import FrozenClock, iso
from profilesvc.operations.feed import readings
from profilesvc.provider.remote import RemoteProvider
from profilesvc.services.access import require_location
from profilesvc.services.context import Caller, Services
from profilesvc.services.feed import profiles
from profilesvc.services.insight import overview
from profilesvc.settings import NotificationSettings, ProviderSettings
from profilesvc.storage import tables
from support.api import assert_ok
from support.provider.drive import calls, document, drift, fail, forget_calls, heal, no_faults
from support.provider.feed import FEED
from support.waiting import until_async

PIER, STATION = "locations/111", "locations/112"
pytestmark = pytest.mark.in_process("runs the rounds itself")


async def pass_time(services: Services, clock: FrozenClock, minutes: int = 181) -> None:
    """Let an interval pass, and as many rounds follow as it takes to check what is due."""
    clock.advance(minutes=minutes)
    for _ in range(3):
        await readings.run_once(services)
        clock.advance(minutes=1)


async def published(services: Services) -> list[tuple[str, str]]:
    query = select(tables.events).where(tables.events.c.location_name.is_not(None)).order_by(tables.events.c.id)
    async with services.storage.read() as session:
        rows = (await session.execute(query)).all()
    return [
        (row.type, row.location_name) for row in rows if row.type.partition(".")[0] in ("profile", "review", "post")
    ]


async def paths(emulator: httpx.AsyncClient) -> list[str]:
    return [call["path"].removeprefix("/v4/accounts/1/").removeprefix("/v1/") for call in await calls(emulator, "GET")]


def with_settings(services: Services, *, feed: NotificationSettings | None = None, **values: int) -> Services:
    provider = ProviderSettings.model_validate({**services.settings.provider.model_dump(), **values})
    changes = {"provider": provider, "notifications": feed or services.settings.notifications}
    return replace(services, settings=services.settings.model_copy(update=changes))


async def of_keys_only(services: Services, *names: str) -> None:
    """Let only these locations have live keys."""
    async with services.storage.write() as session:
        gone = tables.keys.c.location_name.not_in(names)
        await session.execute(update(tables.keys).where(gone).values(revoked_at=1))


async def test_drift_is_published_once_per_change(
    services: Services, as_service: AsService, emulator: httpx.AsyncClient, clock: FrozenClock
) -> None:
    """Without a channel or a reader."""
    site = await as_service(PIER)
    body = {"websiteUri": "https://harbour.example/new"}
    assert_ok(await site.http.post("/api/v1/sync/111", json=body))
    await of_keys_only(services, PIER)
    await pass_time(services, clock)
    before = await published(services)
    for number in range(3):
        await drift(emulator, locations={PIER: {"websiteUri": f"https://harbour.example/{number}"}})
        await pass_time(services, clock)
        await pass_time(services, clock)
    assert (await published(services))[len(before) :] == [("profile.drifted", PIER)] * 3


@pytest.mark.parametrize("slow", [{"method": "GET"}, {"method": "PATCH", "after": True}])
async def test_a_sync_during_a_check_is_no_drift(
    services: Services, as_service: AsService, emulator: httpx.AsyncClient, clock: FrozenClock, slow: dict[str, Any]
) -> None:
    """The check waits for the provider while a sync runs, or it ends while the sync waits for the response."""
    site = await as_service(PIER)
    assert_ok(await site.http.post("/api/v1/sync/111", json={"title": "Old title"}))
    clock.advance(hours=1)
    location = await require_location(services, Caller(1, services.plans["agency"], frozenset()), PIER)

    async def check() -> None:
        await profiles.refresh(services, location)

    async def sync() -> None:
        assert_ok(await site.http.post("/api/v1/sync/111", json={"title": "New title"}))

    first, second = (sync, check) if "after" in slow else (check, sync)
    await fail(emulator, "delay", seconds=0.5, **slow, times=1)
    slower = asyncio.create_task(first())
    await until_async(lambda: no_faults(emulator), "the slower one to reach the provider", every=0)
    await second()
    await slower
    assert (await document(emulator, PIER))["title"] == "New title"
    assert ("profile.drifted", PIER) not in await published(services)


async def test_google_edits_are_published_once_per_change(
    services: Services, as_service: AsService, emulator: httpx.AsyncClient, clock: FrozenClock
) -> None:
    await as_service(PIER)
    await of_keys_only(services, PIER)
    await pass_time(services, clock)
    for title in ("Harbour", "Harbour", "Harbour Café"):
        await drift(emulator, google_updated={PIER: {"title": title}})
        await pass_time(services, clock)
        await pass_time(services, clock)
    assert (await published(services)).count(("profile.drifted", PIER)) == 2
    await drift(emulator, google_updated={PIER: {}})
    await pass_time(services, clock)
    await drift(emulator, google_updated={PIER: {"title": "Harbour Café"}})
    await pass_time(services, clock)
    assert (await published(services)).count(("profile.drifted", PIER)) == 3, "it was gone meanwhile"


@pytest.mark.parametrize(
    ("differing", "pending"),
    [
        ("phoneNumbers.primaryPhone", "phoneNumbers"),
        ("phoneNumbers", "phoneNumbers.primaryPhone"),
        ("websiteUri,phoneNumbers", "phoneNumbers, websiteUri"),
    ],
)
async def test_own_edits_in_review_are_no_drift(
    services: Services,
    as_service: AsService,
    emulator: httpx.AsyncClient,
    clock: FrozenClock,
    monkeypatch: pytest.MonkeyPatch,
    differing: str,
    pending: str,
) -> None:
    """The masks may name a message or a part of it, as for the states of edits in the comparison."""
    await as_service(PIER)
    await of_keys_only(services, PIER)
    await drift(emulator, google_updated={PIER: {"title": "Harbour"}})

    async def updated(*_: object) -> dict[str, Any]:
        return {"location": {"title": "Harbour"}, "diffMask": differing, "pendingMask": pending}

    monkeypatch.setattr(RemoteProvider, "google_updated", updated)
    await pass_time(services, clock)
    assert ("profile.drifted", PIER) not in await published(services)


async def test_google_edits_show_in_reads_that_happen_anyway(
    services: Services, as_service: AsService, alice: httpx.AsyncClient, emulator: httpx.AsyncClient, clock: FrozenClock
) -> None:
    await drift(emulator, google_updated={PIER: {"title": "Harbour"}})
    for _ in range(3):
        clock.advance(minutes=2)
        await forget_calls(emulator)
        assert_ok(await alice.get(f"/api/v1/external-business/{PIER}"))
    assert await paths(emulator) == [PIER], "one more call for each change, not for each read"
    assert await published(services) == [("profile.drifted", PIER)]


async def test_reviews_and_posts_are_found(
    services: Services, as_service: AsService, emulator: httpx.AsyncClient, clock: FrozenClock
) -> None:
    await as_service(PIER)
    await of_keys_only(services, PIER)
    await pass_time(services, clock)
    at = iso(clock.now())
    review = {"starRating": "FIVE", "createTime": at, "updateTime": at}
    await drift(emulator, reviews={f"accounts/1/{PIER}/reviews/7001": review})
    await drift(emulator, posts={f"accounts/1/{PIER}/localPosts/11112": {"state": "REJECTED"}})
    await pass_time(services, clock)
    assert Counter(await published(services)) == Counter([("post.rejected", PIER), ("review.created", PIER)])


async def test_only_locations_with_a_live_key_are_checked(
    services: Services, as_service: AsService, emulator: httpx.AsyncClient, clock: FrozenClock
) -> None:
    await as_service(PIER)
    await of_keys_only(services)
    await pass_time(services, clock)
    assert await calls(emulator) == []
    await as_service(STATION)
    await pass_time(services, clock)
    assert set(await paths(emulator)) == {STATION, f"{STATION}/localPosts", f"{STATION}/reviews"}


async def test_budget_is_kept_and_the_longest_unchecked_come_first(
    services: Services, as_service: AsService, emulator: httpx.AsyncClient, clock: FrozenClock
) -> None:
    for name in (PIER, STATION):
        await as_service(name)
    await of_keys_only(services, PIER, STATION)
    sparing = with_settings(services, readings_per_minute=2)
    clock.advance(hours=4)
    rounds = []
    for _ in range(5):
        await forget_calls(emulator)
        clock.advance(minutes=1)
        await readings.run_once(sparing)
        await readings.run_once(sparing)
        rounds.append(await paths(emulator))
    assert [len(each) for each in rounds] == [2, 2, 2, 0, 0]
    found = [path for each in rounds for path in each]
    assert len(set(found)) == 6
    first, second = found[:3], found[3:]
    assert len({path.split("/")[1] for path in first}) == len({path.split("/")[1] for path in second}) == 1
    clock.advance(minutes=90)
    await forget_calls(emulator)
    await readings.run_once(services)
    assert await calls(emulator) == [], "the interval has not passed"


async def test_failure_of_the_provider_is_repeated_later(
    services: Services, as_service: AsService, emulator: httpx.AsyncClient, clock: FrozenClock
) -> None:
    await as_service(PIER)
    await of_keys_only(services, PIER)
    await fail(emulator, status=503, times=100)
    await pass_time(services, clock)
    await heal(emulator)
    await forget_calls(emulator)
    await readings.run_once(services)
    assert await calls(emulator) == []
    clock.advance(minutes=6)
    await readings.run_once(services)
    assert await paths(emulator) == [PIER, f"{PIER}/localPosts", f"{PIER}/reviews"]


async def test_feed_leaves_profiles_and_reviews_for_a_day(
    services: Services, as_service: AsService, emulator: httpx.AsyncClient, clock: FrozenClock
) -> None:
    await as_service(PIER)
    await of_keys_only(services, PIER)
    announced = with_settings(services, feed=FEED)
    await pass_time(announced, clock)
    await forget_calls(emulator)
    await pass_time(announced, clock)
    assert await paths(emulator) == [f"{PIER}/localPosts"]
    await pass_time(announced, clock, 25 * 60)
    assert (await paths(emulator))[1:] == [PIER, f"{PIER}/localPosts", f"{PIER}/reviews"]


async def test_dashboard_sees_when_a_location_was_checked(
    services: Services, as_service: AsService, emulator: httpx.AsyncClient, clock: FrozenClock
) -> None:
    await as_service(PIER)
    await drift(emulator, locations={PIER: {"websiteUri": "https://harbour.example/elsewhere"}})
    await pass_time(services, clock)
    owner: Any = Caller(1, services.plans["pro"], frozenset())
    site = next(each for each in await overview.sites(services, owner) if each.row.name == PIER)
    assert 0 <= clock.now() - site.checked_at <= 3 * 60_000
    assert "websiteUri" in site.drift
