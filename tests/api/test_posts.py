"""Changing and deleting posts over HTTP."""

import asyncio
from typing import Any

import httpx
import pytest

from conftest import ON_ONE_DATABASE, AsUser
from profilesvc.domain.time import FrozenClock
from profilesvc.services.context import Services
from support.api import CAROL, Site, assert_error, assert_ok, fields
from support.posts import PATH, PIER, calls, fail, names

WHOLE = "accounts/1/locations/111/localPosts/11107"


async def test_a_patch_changes_the_sent_fields_and_returns_the_whole_post(
    plugin: Site, emulator: httpx.AsyncClient
) -> None:
    before = assert_ok(await plugin.http.get(PATH, params=PIER))["localPosts"][-1]
    response = await plugin.http.patch(f"{PATH}/11101", params=PIER, json={"summary": "Spring blend"})
    changed = assert_ok(response)
    assert "accounts/" not in response.text
    assert changed == before | {
        "summary": "Spring blend",
        "state": "PROCESSING",
        "updateTime": "2026-01-02T03:04:05.678Z",
    }
    [call] = await calls(emulator, "PATCH")
    assert (call["query"], call["body"]) == ({"updateMask": "summary"}, {"summary": "Spring blend"})
    assert assert_ok(await plugin.http.get(PATH, params=PIER))["localPosts"][-1] == changed


async def test_a_patch_clears_a_field_with_null(alice: httpx.AsyncClient) -> None:
    path = f"{PATH}/locations%2F111%2FlocalPosts%2F11101"
    assert "callToAction" not in assert_ok(await alice.patch(path, params=PIER, json={"callToAction": None}))


async def test_a_button_that_an_offer_does_not_have_is_refused(
    alice: httpx.AsyncClient, emulator: httpx.AsyncClient
) -> None:
    body = {"callToAction": {"actionType": "SHOP", "url": "https://harbour.example"}}
    answer = await alice.patch(f"{PATH}/11104", params=PIER, json=body)
    assert fields(assert_error(answer, 400, "VALIDATION_ERROR")) == ["callToAction"]
    assert await calls(emulator, "PATCH") == []


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({}, ""),
        ({"state": "LIVE"}, ""),
        ({"media": []}, "media"),
        ({"sumary": "x"}, "sumary"),
        ({"summary": None}, "summary"),
        ({"summary": "x" * 1501}, "summary"),
    ],
)
@ON_ONE_DATABASE
async def test_a_patch_with_an_invalid_body_is_rejected(
    alice: httpx.AsyncClient, emulator: httpx.AsyncClient, body: dict[str, Any], field: str
) -> None:
    details = assert_error(await alice.patch(f"{PATH}/11101", params=PIER, json=body), 400, "VALIDATION_ERROR")
    assert fields(details) == [field]
    assert await calls(emulator, "PATCH") == []


async def test_a_patch_finds_a_post_that_was_just_created_elsewhere(
    alice: httpx.AsyncClient, services: Services
) -> None:
    await names(alice)
    post = {"topicType": "STANDARD", "summary": "Elsewhere"}
    made = await services.provider.create_post("accounts/1", "locations/111", post)
    path = f"{PATH}/{made['name'].rpartition('/')[2]}"
    assert assert_ok(await alice.patch(path, params=PIER, json={"summary": "Here"}))["summary"] == "Here"


async def test_a_patch_is_checked_against_the_post_at_the_provider(
    alice: httpx.AsyncClient, services: Services, clock: FrozenClock
) -> None:
    await names(alice)
    offer = {"topicType": "OFFER", "offer": {"couponCode": "TEA"}}
    await services.provider.patch_post("accounts/1", "locations/111", "11101", offer, list(offer))
    clock.advance(hours=1)
    body = {"offer": {"couponCode": "BREAD"}}
    assert assert_ok(await alice.patch(f"{PATH}/11101", params=PIER, json=body))["offer"] == body["offer"]


async def test_the_body_of_a_patch_is_checked_while_the_provider_is_down(
    alice: httpx.AsyncClient, emulator: httpx.AsyncClient, clock: FrozenClock
) -> None:
    await names(alice)
    clock.advance(hours=1)
    await fail(emulator)
    response = await alice.patch(f"{PATH}/11101", params=PIER, json={"sumary": "x"})
    assert fields(assert_error(response, 400, "VALIDATION_ERROR")) == ["sumary"]


async def test_a_patch_of_an_unknown_post_is_not_found(alice: httpx.AsyncClient) -> None:
    assert_error(await alice.patch(f"{PATH}/99", params=PIER, json={"summary": "x"}), 404, "NOT_FOUND")


@pytest.mark.parametrize(
    ("body", "field"),
    [({}, ""), ({"sumary": "x"}, "sumary"), ({"callToAction": {"actionType": "SHOP"}}, "callToAction.url")],
)
@ON_ONE_DATABASE
async def test_the_body_of_a_patch_is_checked_for_an_unknown_post_too(
    alice: httpx.AsyncClient, body: dict[str, Any], field: str
) -> None:
    details = assert_error(await alice.patch(f"{PATH}/99", params=PIER, json=body), 400, "VALIDATION_ERROR")
    assert fields(details) == [field]


async def test_a_patch_removes_a_post_that_was_deleted_elsewhere(alice: httpx.AsyncClient, services: Services) -> None:
    await names(alice)
    await services.provider.delete_post("accounts/1", "locations/111", "11107")
    assert_error(await alice.patch(f"{PATH}/11107", params=PIER, json={"summary": "x"}), 404, "NOT_FOUND")
    assert "11107" not in await names(alice)


async def test_a_patch_of_a_post_of_another_location_is_rejected(alice: httpx.AsyncClient) -> None:
    path = f"{PATH}/locations%2F112%2FlocalPosts%2F11101"
    details = assert_error(await alice.patch(path, params=PIER, json={"summary": "x"}), 400, "VALIDATION_ERROR")
    assert fields(details) == ["postId"]


async def test_a_patch_needs_a_plan_with_posts(as_user: AsUser, emulator: httpx.AsyncClient) -> None:
    carol = await as_user(CAROL)
    response = await carol.patch(f"{PATH}/1", params={"locationId": "311"}, json={"summary": "x"})
    assert_error(response, 403, "PLAN_RESTRICTION")
    assert await calls(emulator) == []


@pytest.mark.parametrize("warm", [True, False])
async def test_a_patch_fails_while_the_provider_is_down(
    alice: httpx.AsyncClient, emulator: httpx.AsyncClient, warm: bool
) -> None:
    if warm:
        await names(alice)
    await fail(emulator)
    response = await alice.patch(f"{PATH}/11101", params=PIER, json={"summary": "x"})
    assert assert_error(response, 502, "PROVIDER_API_ERROR")["reason"] == "unavailable"


@pytest.mark.parametrize("warm", [True, False])
async def test_a_post_is_deleted_whether_it_was_listed_before_or_not(alice: httpx.AsyncClient, warm: bool) -> None:
    if warm:
        await names(alice)
    assert assert_ok(await alice.delete(f"{PATH}/11107", params=PIER)) == {"deleted": True}
    assert "11107" not in await names(alice)
    assert_error(await alice.delete(f"{PATH}/11107", params=PIER), 404, "NOT_FOUND")


async def test_a_delete_removes_a_post_that_was_deleted_elsewhere(alice: httpx.AsyncClient, services: Services) -> None:
    await names(alice)
    await services.provider.delete_post("accounts/1", "locations/111", "11107")
    assert_error(await alice.delete(f"{PATH}/11107", params=PIER), 404, "NOT_FOUND")
    assert "11107" not in await names(alice)


async def test_a_delete_is_not_undone_by_a_patch_that_ends_after_it(
    alice: httpx.AsyncClient, emulator: httpx.AsyncClient
) -> None:
    await names(alice)
    slow = {"kind": "delay", "seconds": 0.3, "after": True, "match": {"method": "PATCH"}}
    await emulator.post("/__emulator/faults", json=slow)
    changing = asyncio.create_task(alice.patch(f"{PATH}/11107", params=PIER, json={"summary": "Late"}))
    while (await emulator.get("/__emulator/state")).json()["posts"][WHOLE]["summary"] != "Late":
        pass
    assert assert_ok(await alice.delete(f"{PATH}/11107", params=PIER)) == {"deleted": True}
    assert not changing.done()
    assert assert_ok(await changing)["summary"] == "Late"
    assert "11107" not in await names(alice)


async def test_a_plan_without_posts_may_still_delete_posts(as_user: AsUser, services: Services) -> None:
    carol, here = await as_user(CAROL), {"locationId": "locations/311"}
    post = {"topicType": "STANDARD", "summary": "From better days"}
    await services.provider.create_post("accounts/3", "locations/311", post)
    [ident] = await names(carol, **here)
    assert assert_ok(await carol.delete(f"{PATH}/{ident}", params=here)) == {"deleted": True}


async def test_a_delete_keeps_the_post_while_the_provider_is_down(
    alice: httpx.AsyncClient, emulator: httpx.AsyncClient
) -> None:
    await names(alice)
    await fail(emulator)
    response = await alice.delete(f"{PATH}/11107", params=PIER)
    assert assert_error(response, 502, "PROVIDER_API_ERROR")["retryable"] is True
    assert "11107" in await names(alice)
