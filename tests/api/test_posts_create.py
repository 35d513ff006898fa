"""Creating posts over HTTP: the answer, plan and quota, the provider's refusals, idempotency."""

import asyncio
from typing import Any

import httpx
import pytest
from sqlalchemy import delete, insert, update

from conftest import AsUser
from profilesvc.contract.posts import Post
from profilesvc.domain.time import FrozenClock, month_start
from profilesvc.services.context import Services
from profilesvc.settings import ProviderSettings, Settings
from profilesvc.storage import post_usage as usage
from profilesvc.storage import tables
from profilesvc.storage.tables import events, idempotency, post_usage
from support.api import ALICE, BOB, CAROL, Site, assert_error, assert_ok, fields
from support.effort import effort
from support.posts import BIKES, PATH, PIER, calls, fail, names

LIMIT = 1_000  # posts a month on the plan `pro`
CROWD = effort(50, 200)
POST = {"summary": "Fresh bread from six", "callToAction": {"actionType": "ORDER", "url": "https://harbour.example/o"}}
KEY = {"X-Idempotency-Key": "one"}


async def create(client: httpx.AsyncClient, *, body: Any = POST, **options: Any) -> httpx.Response:
    """Create a post at locations/111 unless `params` names another."""
    return await client.post(PATH, json=body, **{"params": PIER, **options})


async def spend(services: Services, used: int, user_id: int = 1) -> None:
    """Let a user have created posts this month."""
    month = month_start(services.clock.now())
    async with services.storage.write() as session:
        await session.execute(insert(post_usage).values(owner_id=user_id, month=month, used=used))


async def spend_rest(services: Services) -> None:
    """Count posts of Alice until the quota of this month is used up."""
    async with services.storage.write() as session:
        await session.execute(update(post_usage).values(used=LIMIT))


async def spent(services: Services) -> int:
    """The posts that count against Alice's quota."""
    async with services.storage.read() as session:
        return (await usage.find(session, 1, month_start(services.clock.now()))).used


async def test_a_new_post_is_returned_whole_and_in_review(plugin: Site) -> None:
    response = await create(plugin.http)
    data = assert_ok(response, 201)
    assert "accounts/" not in response.text
    assert Post.model_validate(data).name == data["name"]
    ident = data["name"].removeprefix("locations/111/localPosts/")
    assert ident.isdigit()
    assert data == POST | {
        "name": data["name"],
        "topicType": "STANDARD",
        "state": "PROCESSING",
        "createTime": "2026-01-02T03:04:05.678Z",
        "updateTime": "2026-01-02T03:04:05.678Z",
        "searchUrl": f"https://search.example/p/{ident}",
    }
    assert assert_ok(await plugin.http.get(PATH, params=PIER))["localPosts"][0] == data


async def test_the_location_header_has_the_address_of_the_new_post(plugin: Site) -> None:
    """Also to a repeat; the path is the one that changes and deletes it."""
    first = await create(plugin.http, headers=KEY)
    ident = assert_ok(first, 201)["name"].rpartition("/")[2]
    assert first.headers["location"] == f"{PATH}/{ident}?locationId=locations/111"
    assert (await create(plugin.http, headers=KEY)).headers["location"] == first.headers["location"]
    changed = await plugin.http.patch(first.headers["location"], json={"summary": "Changed"})
    assert assert_ok(changed)["summary"] == "Changed"
    assert "location" not in changed.headers
    assert_ok(await plugin.http.delete(first.headers["location"]))


async def test_a_new_post_is_processing_even_if_the_provider_was_faster(
    alice: httpx.AsyncClient, emulator: httpx.AsyncClient, clock: FrozenClock
) -> None:
    await emulator.put("/__emulator/state", json={"switches": {"review_seconds": 0}})
    assert assert_ok(await create(alice), 201)["state"] == "PROCESSING"
    clock.advance(seconds=6)
    assert assert_ok(await alice.get(PATH, params=PIER))["localPosts"][0]["state"] == "LIVE"


@pytest.mark.parametrize("topic", ["STANDARD", "EVENT", "OFFER", "ALERT"])
async def test_a_new_post_needs_only_the_required_fields(alice: httpx.AsyncClient, topic: str) -> None:
    body = {"summary": POST["summary"], "topicType": topic}
    assert assert_ok(await create(alice, body=body), 201)["topicType"] == topic


async def test_an_invalid_body_is_rejected_before_the_plan_is_checked(
    services: Services, as_user: AsUser, emulator: httpx.AsyncClient
) -> None:
    for client, location in ((await as_user(ALICE), "111"), (await as_user(CAROL), "311")):
        body = {"summary": "", "colour": "red", "callToAction": {"actionType": "BOOK"}}
        response = await create(client, body=body, params={"locationId": location})
        problems = fields(assert_error(response, 400, "VALIDATION_ERROR"))
        assert set(problems) == {"summary", "colour", "callToAction.url"}
    assert (await calls(emulator, "POST"), await spent(services)) == ([], 0)


async def test_A141_the_plan_is_checked_before_the_quota(services: Services, as_user: AsUser) -> None:
    await spend(services, 5, user_id=3)
    response = await create(await as_user(CAROL), params={"locationId": "311"})
    assert_error(response, 403, "PLAN_RESTRICTION")


async def test_a_quota_that_is_used_up_rejects_posts_until_the_month_ends(
    plugin: Site, services: Services, emulator: httpx.AsyncClient, clock: FrozenClock
) -> None:
    await spend(services, LIMIT)
    response = await create(plugin.http)
    assert assert_error(response, 429, "QUOTA_EXCEEDED") == {
        "limit": LIMIT,
        "used": LIMIT,
        "resets_at": "2026-02-01T00:00:00.000Z",
    }
    seconds = int(response.headers["retry-after"])
    assert await calls(emulator, "POST") == []
    clock.advance(seconds=seconds - 1)
    assert_error(await create(plugin.http), 429, "QUOTA_EXCEEDED")
    clock.advance(seconds=1)
    assert_ok(await create(plugin.http), 201)


async def test_A140_simultaneous_posts_do_not_exceed_the_quota(
    alice: httpx.AsyncClient, services: Services, emulator: httpx.AsyncClient
) -> None:
    await spend(services, LIMIT - 5)
    answers = await asyncio.gather(*[create(alice) for _ in range(CROWD)])
    statuses = [answer.status_code for answer in answers]
    assert (statuses.count(201), statuses.count(429)) == (5, CROWD - 5)
    assert (len(await calls(emulator, "POST")), await spent(services)) == (5, LIMIT)


async def test_A140_simultaneous_posts_that_the_provider_rejects_give_the_quota_back(
    alice: httpx.AsyncClient, services: Services, emulator: httpx.AsyncClient
) -> None:
    await spend(services, LIMIT - 5)
    await fail(emulator, times=1000, status=400)
    answers = [answer.status_code for answer in await asyncio.gather(*[create(alice) for _ in range(50)])]
    assert set(answers) <= {429, 502}
    assert answers.count(502) >= 5
    assert await spent(services) == LIMIT - 5


@pytest.mark.parametrize(
    ("fault", "reason", "retryable"),
    [
        ({"status": 400}, "rejected", False),
        ({"status": 401}, "unavailable", False),
        ({"status": 403}, "rejected", False),
        ({"status": 429}, "rate_limited", True),
        ({"status": 500}, "unavailable", True),
        ({"status": 503}, "unavailable", True),
        ({"kind": "broken_body"}, "unavailable", True),
        ({"kind": "huge"}, "unavailable", False),
        ({"kind": "redirect"}, "unavailable", False),
    ],
)
async def test_A142_a_failure_gives_the_quota_back_unless_the_post_may_exist(
    alice: httpx.AsyncClient,
    services: Services,
    emulator: httpx.AsyncClient,
    fault: dict[str, Any],
    reason: str,
    retryable: bool,
) -> None:
    await fail(emulator, **fault)
    response = await create(alice)
    details = assert_error(response, 502, "PROVIDER_API_ERROR")
    assert (details["reason"], details["retryable"]) == (reason, retryable)
    assert "emulator" not in response.text
    assert await spent(services) == (fault.get("kind") in {"broken_body", "huge"})
    await emulator.delete("/__emulator/faults")
    assert_ok(await create(alice), 201)


async def test_a_rejection_by_the_provider_names_the_field(
    alice: httpx.AsyncClient, emulator: httpx.AsyncClient
) -> None:
    await emulator.put("/__emulator/state", json={"switches": {"strict": True}})
    response = await create(alice, body={**POST, "topicType": "EVENT"})
    details = assert_error(response, 502, "PROVIDER_API_ERROR")
    assert (details["reason"], details["provider_status"]) == ("rejected", 400)
    assert (details["provider_code"], details["fields"]) == ("INVALID_ARGUMENT", ["event"])
    assert " at event: " in response.json()["error"]["message"]


class TestTimeout:
    @pytest.fixture
    def settings(self, settings: Settings) -> Settings:
        return settings.model_copy(update={"provider": ProviderSettings(timeout_seconds=0.3)})

    async def test_a_post_that_may_exist_after_a_timeout_stays_counted(
        self, alice: httpx.AsyncClient, services: Services, emulator: httpx.AsyncClient
    ) -> None:
        await fail(emulator, kind="delay", seconds=2)
        details = assert_error(await create(alice), 502, "PROVIDER_API_ERROR")
        assert (details["reason"], details["retryable"]) == ("timeout", True)
        assert await spent(services) == 1


async def test_a_repeat_replays_the_first_response(
    alice: httpx.AsyncClient, services: Services, emulator: httpx.AsyncClient
) -> None:
    first, second = [await create(alice, headers=KEY) for _ in range(2)]
    assert assert_ok(first, 201) == assert_ok(second, 201)
    assert "idempotency-replayed" not in first.headers
    assert second.headers["idempotency-replayed"] == "true"
    assert (len(await calls(emulator, "POST")), await spent(services)) == (1, 1)


async def test_an_idempotency_key_with_another_body_is_rejected(alice: httpx.AsyncClient) -> None:
    assert_ok(await create(alice, headers=KEY), 201)
    assert_error(await create(alice, body={"summary": "Other"}, headers=KEY), 422, "IDEMPOTENCY_KEY_REUSED")


async def test_an_idempotency_key_is_separate_for_each_location_and_caller(
    alice: httpx.AsyncClient, plugin: Site, as_user: AsUser
) -> None:
    answers = [await create(client, headers=KEY) for client in (alice, plugin.http)]
    answers.append(await create(alice, params={"locationId": "112"}, headers=KEY))
    answers.append(await create(await as_user(BOB), params=BIKES, headers=KEY))
    assert len({assert_ok(answer, 201)["name"] for answer in answers}) == 4


async def test_a_correctable_error_is_not_stored_under_an_idempotency_key(
    alice: httpx.AsyncClient, services: Services
) -> None:
    assert_error(await create(alice, body={}, headers=KEY), 400, "VALIDATION_ERROR")
    await spend(services, LIMIT)
    assert_error(await create(alice, headers=KEY), 429, "QUOTA_EXCEEDED")
    async with services.storage.write() as session:
        await usage.settle(session, 1, month_start(services.clock.now()), given_back=1)
    assert_ok(await create(alice, headers=KEY), 201)


async def test_a_repeat_replays_a_final_rejection_and_retries_a_temporary_one(
    alice: httpx.AsyncClient, emulator: httpx.AsyncClient
) -> None:
    await fail(emulator, times=1, status=503)
    assert_error(await create(alice, headers=KEY), 502, "PROVIDER_API_ERROR")
    await fail(emulator, times=1, status=400)
    refused, replayed = [await create(alice, headers=KEY) for _ in range(2)]
    assert assert_error(refused, 502, "PROVIDER_API_ERROR") == assert_error(replayed, 502, "PROVIDER_API_ERROR")
    assert replayed.headers["idempotency-replayed"] == "true"


async def test_A133_a_repeat_finds_the_post_of_an_attempt_that_never_ended(
    alice: httpx.AsyncClient, services: Services, emulator: httpx.AsyncClient
) -> None:
    media = [{"mediaFormat": "PHOTO", "sourceUrl": "https://harbour.example/bread.jpg"}]
    first = assert_ok(await create(alice, body={**POST, "media": media}, headers=KEY), 201)
    month = str(month_start(services.clock.now()))
    async with services.storage.write() as session:  # as if the process had died before it could store the post
        await session.execute(update(idempotency).values(status=None, answer=month, lease_until=0))
        await session.execute(delete(tables.posts).where(tables.posts.c.document.contains(first["name"])))
        await session.execute(delete(events).where(events.c.type == "post.created"))
    again = await create(alice, body={**POST, "media": media}, headers=KEY)
    assert assert_ok(again, 201) == first
    assert "idempotency-replayed" not in again.headers
    assert (len(await calls(emulator, "POST")), await spent(services)) == (1, 1)
    assert len(await names(alice)) == 13


async def test_a_repeat_needs_no_quota_for_a_post_that_was_counted_before(
    alice: httpx.AsyncClient, services: Services, emulator: httpx.AsyncClient, clock: FrozenClock
) -> None:
    await spend(services, LIMIT - 1)
    for after in (False, True):  # the request is lost, then the response
        await fail(emulator, times=1, kind="disconnect", after=after, match={"path": "/v4", "method": "POST"})
        assert_error(await create(alice, headers=KEY), 502, "PROVIDER_API_ERROR")
        clock.advance(seconds=1)
    assert_ok(await create(alice, headers=KEY), 201)
    assert await spent(services) == LIMIT
    assert len(await names(alice)) == 13


async def test_a_repeat_counts_a_post_that_exists_although_the_provider_failed(
    alice: httpx.AsyncClient, services: Services, emulator: httpx.AsyncClient, clock: FrozenClock
) -> None:
    await fail(emulator, times=1, status=502, after=True, match={"path": "/v4", "method": "POST"})
    assert_error(await create(alice, headers=KEY), 502, "PROVIDER_API_ERROR")
    assert await spent(services) == 0
    await spend_rest(services)
    clock.advance(seconds=1)
    assert_ok(await create(alice, headers=KEY), 201)
    assert await spent(services) == LIMIT + 1
    assert len(await names(alice)) == 13


async def test_a_repeat_does_not_find_the_post_of_another_request(
    alice: httpx.AsyncClient, emulator: httpx.AsyncClient, clock: FrozenClock
) -> None:
    await fail(emulator, times=1, kind="disconnect", match={"path": "/v4", "method": "POST"})
    assert_error(await create(alice, headers=KEY), 502, "PROVIDER_API_ERROR")
    clock.advance(seconds=1)
    other = assert_ok(await create(alice), 201)
    assert assert_ok(await create(alice, headers=KEY), 201)["name"] != other["name"]
    assert len(await names(alice)) == 14


async def test_a_repeat_does_not_find_an_earlier_post_that_was_read_again(
    alice: httpx.AsyncClient, emulator: httpx.AsyncClient, clock: FrozenClock
) -> None:
    other = assert_ok(await create(alice), 201)
    clock.advance(seconds=1)
    await fail(emulator, times=1, kind="disconnect", match={"path": "/v4", "method": "POST"})
    assert_error(await create(alice, headers=KEY), 502, "PROVIDER_API_ERROR")
    clock.advance(hours=1)
    await names(alice)
    assert assert_ok(await create(alice, headers=KEY), 201)["name"] != other["name"]
