"""Listing posts over HTTP: the cache, its age, paging."""

import asyncio
import hashlib
from typing import Any

import httpx
import pytest
from itsdangerous import Signer

from conftest import ON_ONE_DATABASE, AsService, AsUser
from profilesvc.contract.posts import PostList
from profilesvc.domain.time import FrozenClock
from profilesvc.fixtures import load_world
from profilesvc.provider.remote import RemoteProvider
from profilesvc.services.context import Services
from support.api import BOB, assert_error, assert_ok, fields
from support.cases.hostile import b64
from support.posts import BIKES, PATH, PIER, calls, fail, names


def at_the_provider(location: str) -> list[dict[str, Any]]:
    """The posts of a location in the demo data as the service returns them, newest first."""
    posts = next(entry["posts"] for entry in load_world()["locations"] if entry["profile"]["name"] == location)
    ours = [{**post, "name": post["name"].partition("/")[2].partition("/")[2]} for post in posts]
    return sorted(ours, key=lambda post: str(post["createTime"]), reverse=True)


async def test_the_list_has_the_posts_of_the_provider_unchanged(alice: httpx.AsyncClient) -> None:
    response = await alice.get(PATH, params=PIER)
    data = assert_ok(response)
    assert data == {"localPosts": at_the_provider("locations/111"), "nextPageToken": ""}
    assert "accounts/" not in response.text
    assert "x-data-age" not in response.headers
    PostList.model_validate(data)


async def test_a_location_without_posts_has_an_empty_list(alice: httpx.AsyncClient) -> None:
    data = assert_ok(await alice.get(PATH, params={"locationId": "112"}))
    assert data == {"localPosts": [], "nextPageToken": ""}


async def test_a_service_token_that_may_read_lists_posts(as_service: AsService) -> None:
    site = await as_service(requested=["business.read"])
    assert len(await names(site.http)) == 12


async def test_the_provider_is_read_again_after_the_maximum_age(
    as_user: AsUser, emulator: httpx.AsyncClient, clock: FrozenClock
) -> None:
    bob = await as_user(BOB)
    for seconds, readings in ((0, 1), (60, 1), (0.001, 2)):
        clock.advance(seconds=seconds)
        assert len(await names(bob, **BIKES)) == 3
        assert len(await calls(emulator)) == readings


async def test_a_post_in_review_is_read_again_after_five_seconds(
    alice: httpx.AsyncClient, emulator: httpx.AsyncClient, clock: FrozenClock
) -> None:
    await names(alice)
    change = {"posts": {"accounts/1/locations/111/localPosts/11112": {"state": "REJECTED"}}}
    await emulator.put("/__emulator/state", json=change)
    for seconds, state in ((5, "PROCESSING"), (0.001, "REJECTED")):
        clock.advance(seconds=seconds)
        newest = assert_ok(await alice.get(PATH, params=PIER))["localPosts"][0]
        assert newest["state"] == state


async def test_the_list_shows_posts_created_and_deleted_elsewhere(
    alice: httpx.AsyncClient, services: Services, clock: FrozenClock
) -> None:
    await names(alice)
    post = {"topicType": "STANDARD", "summary": "Made in another tool"}
    made = await services.provider.create_post("accounts/1", "locations/111", post)
    await services.provider.delete_post("accounts/1", "locations/111", "11107")
    clock.advance(seconds=61)
    seen = await names(alice)
    assert seen[0] == made["name"].rpartition("/")[2]
    assert "11107" not in seen
    assert len(seen) == 12


async def test_the_list_is_the_cache_with_its_age_while_the_provider_is_down(
    alice: httpx.AsyncClient, emulator: httpx.AsyncClient, clock: FrozenClock
) -> None:
    await names(alice)
    clock.advance(seconds=75)
    await fail(emulator)
    response = await alice.get(PATH, params=PIER)
    assert len(assert_ok(response)["localPosts"]) == 12
    assert response.headers["x-data-age"] == "75"
    await emulator.delete("/__emulator/faults")
    assert "x-data-age" not in (await alice.get(PATH, params=PIER)).headers


async def test_the_list_fails_while_the_provider_is_down_and_was_never_read(
    alice: httpx.AsyncClient, emulator: httpx.AsyncClient
) -> None:
    await fail(emulator)
    details = assert_error(await alice.get(PATH, params=PIER), 502, "PROVIDER_API_ERROR")
    assert (details["reason"], details["retryable"], details["provider_status"]) == ("unavailable", True, 503)


async def test_the_provider_is_read_once_for_many_callers(
    alice: httpx.AsyncClient, emulator: httpx.AsyncClient
) -> None:
    assert [len(page) for page in await asyncio.gather(*[names(alice) for _ in range(20)])] == [12] * 20
    assert len(await calls(emulator)) == 1


@pytest.mark.parametrize("state", ["LIVE\x00", "X" * 300, 7], ids=["NUL", "long", "number"])
@pytest.mark.in_process("replaces the provider")
async def test_a_state_that_a_database_cannot_store_is_returned_unchanged(
    alice: httpx.AsyncClient, clock: FrozenClock, monkeypatch: pytest.MonkeyPatch, state: object
) -> None:
    post = {"name": "accounts/1/locations/111/localPosts/1", "state": state}

    async def odd(*_: object) -> list[dict[str, object]]:
        return [post]

    monkeypatch.setattr(RemoteProvider, "posts", odd)
    clock.advance(seconds=61)
    listed = assert_ok(await alice.get(PATH, params=PIER))["localPosts"]
    assert listed == [{**post, "name": "locations/111/localPosts/1"}]


async def test_the_pages_have_every_post_once_while_new_ones_arrive(
    alice: httpx.AsyncClient, emulator: httpx.AsyncClient, clock: FrozenClock
) -> None:
    seen: list[str] = []
    token, size = "", 5
    while True:
        page = assert_ok(await alice.get(PATH, params={**PIER, "pageSize": size, "pageToken": token}))
        seen += [post["name"].rpartition("/")[2] for post in page["localPosts"]]
        assert_ok(await alice.post(PATH, params=PIER, json={"summary": "News"}), 201)
        clock.advance(minutes=5)
        token, size = page["nextPageToken"], size - 1  # the page size may change between pages
        if not token:
            break
    assert seen == [str(number) for number in range(11112, 11100, -1)]
    assert len(await calls(emulator)) == 1, "only the first page reads the provider"


@pytest.mark.in_process("replaces the provider")
async def test_the_pages_have_posts_with_impossible_times(
    alice: httpx.AsyncClient, clock: FrozenClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    times = ["0001-01-01T00:00:00Z", "1969-12-31T23:59:59Z", "9999-12-31T23:59:59Z"]
    found = [
        {"name": f"accounts/1/locations/111/localPosts/{number}", "createTime": time}
        for number, time in enumerate(times)
    ]

    async def odd(*_: object) -> list[dict[str, str]]:
        return found

    monkeypatch.setattr(RemoteProvider, "posts", odd)
    clock.advance(seconds=61)
    listed, token = list[str](), ""
    while token or not listed:
        data = assert_ok(await alice.get(PATH, params={**PIER, "pageSize": 1, "pageToken": token}))
        listed += [post["createTime"] for post in data["localPosts"]]
        token = data["nextPageToken"]
    assert sorted(listed) == times


async def test_posts_of_the_same_millisecond_are_ordered_by_name(alice: httpx.AsyncClient) -> None:
    made = [assert_ok(await alice.post(PATH, params=PIER, json={"summary": "Now"}), 201) for _ in range(3)]
    listed = assert_ok(await alice.get(PATH, params={**PIER, "pageSize": 2}))
    query = {**PIER, "pageSize": 1, "pageToken": listed["nextPageToken"]}
    listed["localPosts"] += assert_ok(await alice.get(PATH, params=query))["localPosts"]
    assert [post["name"] for post in listed["localPosts"]] == sorted((post["name"] for post in made), reverse=True)


@pytest.mark.parametrize(("size", "count"), [(1, 1), (12, 12), (101, 12), (100000, 12)])
@ON_ONE_DATABASE
async def test_a_page_size_beyond_the_maximum_is_accepted(alice: httpx.AsyncClient, size: int, count: int) -> None:
    assert len(await names(alice, pageSize=size)) == count


async def test_a_page_has_a_hundred_posts_at_most_and_fifty_by_default(
    as_user: AsUser, services: Services, emulator: httpx.AsyncClient
) -> None:
    bob = await as_user(BOB)
    for _ in range(100):
        post = {"topicType": "STANDARD", "summary": "Many"}
        await services.provider.create_post("accounts/2", "locations/211", post)
    assert len(await names(bob, **BIKES)) == 50
    assert len(await names(bob, **BIKES, pageSize=103)) == 100


@pytest.mark.parametrize("size", ["0", "-1", "1.5", "ten", "1e2", "9999999999", ""])
@ON_ONE_DATABASE
async def test_an_invalid_page_size_is_rejected(alice: httpx.AsyncClient, size: str) -> None:
    details = assert_error(await alice.get(PATH, params={**PIER, "pageSize": size}), 400, "VALIDATION_ERROR")
    assert fields(details) == ["pageSize"]


async def test_a_page_token_that_was_edited_or_is_of_another_list_is_rejected(
    alice: httpx.AsyncClient, as_user: AsUser
) -> None:
    token = assert_ok(await alice.get(PATH, params={**PIER, "pageSize": 1}))["nextPageToken"]
    bob = await as_user(BOB)
    edited = token[:-1] + ("A" if token[-1] != "A" else "B")
    bad = ["x", "AAAA" * 10, "é", token[:-1], token[1:], edited, f"{token}=", f" {token}", "a" * 50_000]
    for client, query in [(alice, PIER), *[(alice, {"locationId": "112"}), (bob, BIKES)]]:
        for tried in bad if query is PIER else [token]:
            response = await client.get(PATH, params={**query, "pageToken": tried})
            assert fields(assert_error(response, 400, "VALIDATION_ERROR")) == ["pageToken"]


@pytest.mark.parametrize(
    ("path", "listed", "place"),
    [(PATH, "posts", "1767323045678.11101"), ("/api/v1/reviews", "reviews by updateTime desc", "anything")],
)
async def test_a_page_token_sealed_with_a_guessable_key_is_rejected(
    alice: httpx.AsyncClient, path: str, listed: str, place: str
) -> None:
    for key in (b"", b"\0" * 32, b"page token", b"pageToken"):
        salt = f"page token\n{listed}\nlocations/111"
        forger = Signer(key, salt=salt, key_derivation="hmac", digest_method=hashlib.sha256)
        token = forger.sign(b64(place.encode())).decode()
        response = await alice.get(path, params={**PIER, "pageToken": token})
        assert fields(assert_error(response, 400, "VALIDATION_ERROR")) == ["pageToken"]


@pytest.mark.parametrize("location", [None, "", "locations/", "accounts/1/locations/2", "locations/1/localPosts/2"])
@ON_ONE_DATABASE
async def test_an_invalid_location_is_rejected(alice: httpx.AsyncClient, location: str | None) -> None:
    query = {} if location is None else {"locationId": location}
    details = assert_error(await alice.get(PATH, params=query), 400, "VALIDATION_ERROR")
    assert fields(details) == ["locationId"]
