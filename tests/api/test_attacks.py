"""Attacks that worked once, each as the attacker would try it again."""

from typing import Any

import httpx
import pytest

from conftest import AsService
from profilesvc.domain.time import FrozenClock
from profilesvc.operations import housekeeping
from profilesvc.services.context import Services
from support.api import Site, assert_error, assert_ok, fields
from support.provider.drive import calls, drift, fail, heal

KEYS = "/api/v1/developer/credentials"
POSTS = "/api/v1/posts?locationId=111"
NEW_KEY = {"name": "Site", "business_id": 10, "assigned_location_id": "locations/111"}


@pytest.mark.parametrize("end", ["9999-12-31T23:59:59-23:59", "9999-12-31T23:59:59.999999999-00:01"])
async def test_an_expiry_beyond_every_clock_is_rejected_or_harmless(alice: httpx.AsyncClient, end: str) -> None:
    details = assert_error(await alice.post(KEYS, json={**NEW_KEY, "expires_at": end}), 400, "VALIDATION_ERROR")
    assert fields(details) == ["expires_at"]
    assert assert_ok(await alice.get(KEYS, params={"include_revoked": "true"})) == {"credentials": []}


async def test_a_token_does_not_outlive_its_key(
    as_service: AsService, http: httpx.AsyncClient, clock: FrozenClock
) -> None:
    site = await as_service(expires_at="2026-01-02T04:04:05.678Z")
    assert (site.tokens["expires_in"], site.tokens["refresh_expires_in"]) == (3600, 3600)


async def lost(plugin: Site, emulator: httpx.AsyncClient, post: dict[str, Any]) -> None:
    """The provider makes the post; its answer is lost."""
    await fail(emulator, "disconnect", method="POST", after=True)
    answer = await plugin.http.post(POSTS, json=post, headers={"X-Idempotency-Key": "k"})
    assert_error(answer, 502, "PROVIDER_API_ERROR")
    await heal(emulator)


async def count(plugin: Site, clock: FrozenClock, summary: str) -> int:
    clock.advance(minutes=2)
    listed = assert_ok(await plugin.http.get(POSTS + "&pageSize=100"))["localPosts"]
    return sum(post.get("summary") == summary for post in listed)


@pytest.mark.parametrize("between", ["provider limits the reading back", "nothing"])
async def test_a_lost_response_never_makes_two_posts(
    plugin: Site, emulator: httpx.AsyncClient, clock: FrozenClock, between: str
) -> None:
    midnight = {"startDate": {"year": 2026, "month": 2, "day": 1}, "startTime": {"hours": 0}}
    schedule = {**midnight, "endDate": {"year": 2026, "month": 2, "day": 1}, "endTime": {"hours": 3}}
    post = {"topicType": "EVENT", "summary": "Night", "event": {"title": "Night", "schedule": schedule}}
    await lost(plugin, emulator, post)
    clock.advance(hours=13)
    if between != "nothing":
        await fail(emulator, status=429, method="GET", times=30)
        answer = await plugin.http.post(POSTS, json=post, headers={"X-Idempotency-Key": "k"})
        assert_error(answer, 502, "PROVIDER_API_ERROR")
        await heal(emulator)
    assert_ok(await plugin.http.post(POSTS, json=post, headers={"X-Idempotency-Key": "k"}), 201)
    assert await count(plugin, clock, "Night") == 1


async def test_a_retry_does_not_adopt_an_older_post(
    plugin: Site, emulator: httpx.AsyncClient, clock: FrozenClock
) -> None:
    post = {"summary": "Happy hour"}
    first = assert_ok(await plugin.http.post(POSTS, json=post), 201)
    clock.advance(seconds=1)
    await fail(emulator, "disconnect", method="POST")
    answer = await plugin.http.post(POSTS, json=post, headers={"X-Idempotency-Key": "k"})
    assert_error(answer, 502, "PROVIDER_API_ERROR")
    await heal(emulator)
    second = assert_ok(await plugin.http.post(POSTS, json=post, headers={"X-Idempotency-Key": "k"}), 201)
    assert second["name"] != first["name"]


async def test_our_own_failed_login_is_not_a_final_rejection(plugin: Site, emulator: httpx.AsyncClient) -> None:
    await fail(emulator, status=401, times=30)
    body, headers = {"summary": "Later"}, {"X-Idempotency-Key": "k"}
    assert_error(await plugin.http.post(POSTS, json=body, headers=headers), 502, "PROVIDER_API_ERROR")
    await heal(emulator)
    assert_ok(await plugin.http.post(POSTS, json=body, headers=headers), 201)


async def test_unknown_fields_do_not_accumulate(as_service: AsService) -> None:
    site = await as_service("locations/211")
    for turn in range(4):
        junk = {f"junk_{turn}_{number}": "x" * 1000 for number in range(150)}
        assert_ok(await site.http.post("/api/v1/sync/211", json=junk))
    assert len((await site.http.get("/api/v1/sync/comparison/211")).content) < 400_000


async def test_a_dot_in_a_name_does_not_hide_a_difference(as_service: AsService) -> None:
    site = await as_service("locations/114", business_id=11)
    assert_ok(await site.http.post("/api/v1/sync/114", json={"phoneNumbers.primaryPhone": 1}))
    comparison = assert_ok(await site.http.get("/api/v1/sync/comparison/114"))
    assert [difference["field"] for difference in comparison["differences"]] == ["phoneNumbers.primaryPhone"]


async def test_a_failed_verification_in_a_sync_is_in_the_history(plugin: Site, emulator: httpx.AsyncClient) -> None:
    await drift(emulator, voice_of_merchant={"locations/111": {"waitForVoiceOfMerchant": {}}})
    await fail(emulator, status=503, times=30, match={"path": ".*VoiceOfMerchantState"})
    assert_error(await plugin.http.post("/api/v1/sync/111", json={"title": "x"}), 502, "PROVIDER_API_ERROR")
    newest = assert_ok(await plugin.http.get("/api/v1/sync/history/111"))["history"][0]
    assert newest["status"] == "failed"
    assert await calls(emulator, "PATCH") == []


async def test_old_idempotency_keys_are_deleted(plugin: Site, services: Services, clock: FrozenClock) -> None:
    from sqlalchemy import func, select

    from profilesvc.storage.tables import idempotency

    for value in ("a", "b"):
        assert_ok(await plugin.http.post("/api/v1/sync/111", json={"title": "x"}, headers={"X-Idempotency-Key": value}))
        clock.advance(hours=49)
        await housekeeping.run_once(services)
    async with services.storage.read() as session:
        assert (await session.execute(select(func.count()).select_from(idempotency))).scalar_one() == 0
