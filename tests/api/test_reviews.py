"""Reviews over HTTP: read live, replied to, refused."""

from typing import Any

import httpx
import pytest

from conftest import ON_ONE_DATABASE, AsService, AsUser, Change
from profilesvc.contract.provider.review import ReviewReply
from profilesvc.contract.reviews import ReviewDetail, ReviewList
from profilesvc.domain.time import FrozenClock
from profilesvc.fixtures import load_world
from profilesvc.services.context import Services
from support.api import BOB, CAROL, Site, assert_error, assert_ok, fields
from support.browser.dashboard import Browser
from support.parts import Odd
from support.posts import calls, fail
from support.provider.feed import FEED

PATH = "/api/v1/reviews"
PIER = {"locationId": "locations/111"}
REPLY = f"{PATH}/111002/reply"


def at_the_provider() -> list[dict[str, Any]]:
    """The reviews of locations/111 in the demo data with our names, last changed first."""
    found = load_world()["reviews"]["locations/111"]
    return [{**review, "name": review["name"].removeprefix("accounts/1/")} for review in found]


async def test_the_list_has_the_reviews_of_the_provider_unchanged(plugin: Site) -> None:
    response = await plugin.http.get(PATH, params=PIER)
    data = assert_ok(response)
    assert data["reviews"] == at_the_provider()
    assert (data["averageRating"], data["totalReviewCount"], data["nextPageToken"]) == (3.8, 5, "")
    assert "accounts/" not in response.text
    ReviewList.model_validate(data)


async def test_a_location_without_reviews_has_an_empty_list(alice: httpx.AsyncClient) -> None:
    data = assert_ok(await alice.get(PATH, params={"locationId": "119"}))
    assert data == {"reviews": [], "nextPageToken": ""}


@pytest.mark.parametrize(
    ("order", "stars"),
    [({}, "FIVE FOUR TWO FIVE THREE"), ({"orderBy": "rating desc"}, "FIVE FIVE FOUR THREE TWO")],
)
async def test_the_pages_have_every_review_in_order(
    alice: httpx.AsyncClient, order: dict[str, str], stars: str
) -> None:
    seen, token, size = [], "", 2
    while True:
        query: dict[str, str | int] = {**PIER, **order, "pageSize": size, "pageToken": token}
        page = assert_ok(await alice.get(PATH, params=query))
        assert page["totalReviewCount"] == 5
        seen += [review["starRating"] for review in page["reviews"]]
        token, size = page["nextPageToken"], 1
        if not token:
            break
    assert seen == stars.split()


async def test_a_page_size_beyond_fifty_is_reduced(alice: httpx.AsyncClient, emulator: httpx.AsyncClient) -> None:
    assert_ok(await alice.get(PATH, params={**PIER, "pageSize": "51"}))
    assert [call["query"]["pageSize"] for call in await calls(emulator)] == ["50"]


async def test_a_page_token_of_another_list_is_rejected(alice: httpx.AsyncClient) -> None:
    token = assert_ok(await alice.get(PATH, params={**PIER, "pageSize": 1}))["nextPageToken"]
    elsewhere = {"locationId": "114", "pageToken": token}
    for query in [elsewhere, *[{**PIER, "pageToken": bad} for bad in ("x", token[:-2], f"{token}=", "é", " ")]]:
        assert fields(assert_error(await alice.get(PATH, params=query), 400, "VALIDATION_ERROR")) == ["pageToken"]
    reordered = {**PIER, "pageToken": token, "orderBy": "rating"}
    assert_error(await alice.get(PATH, params=reordered), 400, "VALIDATION_ERROR")


@pytest.mark.parametrize(("name", "bad"), [("pageSize", "0"), ("orderBy", "mood"), ("locationId", "a b")])
@ON_ONE_DATABASE
async def test_an_invalid_query_parameter_is_rejected(alice: httpx.AsyncClient, name: str, bad: str) -> None:
    response = await alice.get(PATH, params={**PIER, name: bad})
    assert fields(assert_error(response, 400, "VALIDATION_ERROR")) == [name]


@pytest.mark.parametrize("page", [{"reviews": 5}, {"reviews": [5]}, {"reviews": [{"name": "locations/112/reviews/1"}]}])
async def test_an_invalid_page_is_a_failure_of_the_provider(
    alice: httpx.AsyncClient, change: Change, page: dict[str, Any]
) -> None:
    change(provider=Odd(page))
    details = assert_error(await alice.get(PATH, params=PIER), 502, "PROVIDER_API_ERROR")
    assert (details["reason"], details["retryable"]) == ("unavailable", True)


@pytest.mark.parametrize("odd", [None, True, "4.5", [4.5], {"value": 4.5}])
async def test_totals_that_are_no_numbers_are_left_out(
    alice: httpx.AsyncClient, browser: Browser, change: Change, odd: object
) -> None:
    change(provider=Odd({"averageRating": odd, "totalReviewCount": odd}))
    assert assert_ok(await alice.get(PATH, params=PIER)) == {"reviews": [], "nextPageToken": ""}
    assert (await browser.http.get("/dashboard/sites/111/reviews")).status_code == 200


@pytest.mark.parametrize(
    "page", [{"reviews": None}, {"reviews": [5]}, {"reviews": [{"name": "locations/112/reviews/1"}]}]
)
async def test_an_invalid_page_is_not_kept_for_a_day_by_the_change_feed(
    alice: httpx.AsyncClient, change: Change, services: Services, page: dict[str, Any]
) -> None:
    settings = services.settings.model_copy(update={"notifications": FEED})
    change(provider=Odd(page), settings=settings)
    assert_error(await alice.get(PATH, params=PIER), 502, "PROVIDER_API_ERROR")
    change(settings=settings)
    assert assert_ok(await alice.get(PATH, params=PIER))["reviews"] == at_the_provider()


async def test_an_odd_reply_is_returned_unchanged_by_the_change_feed(
    alice: httpx.AsyncClient, change: Change, services: Services
) -> None:
    page = {"reviews": [{"name": "accounts/1/locations/111/reviews/1", "reviewReply": "Thanks"}]}
    change(provider=Odd(page), settings=services.settings.model_copy(update={"notifications": FEED}))
    for _ in range(2):
        [review] = assert_ok(await alice.get(PATH, params=PIER))["reviews"]
        assert review == {"name": "locations/111/reviews/1", "reviewReply": "Thanks"}


@pytest.mark.parametrize("name", ["111002", "locations/111/reviews/111002", "locations%2F111%2Freviews%2F111002"])
async def test_a_review_is_read_by_its_id_or_name(alice: httpx.AsyncClient, name: str) -> None:
    review = assert_ok(await alice.get(f"{PATH}/{name}", params=PIER))
    assert review == at_the_provider()[1]
    ReviewDetail.model_validate(review)


@pytest.mark.parametrize(
    "name", ["a b", "1;2", "%00", "x" * 201, "locations/112/reviews/1", "accounts/1/locations/111/reviews/1"]
)
@ON_ONE_DATABASE
async def test_an_invalid_name_of_a_review_is_rejected(alice: httpx.AsyncClient, name: str) -> None:
    details = assert_error(await alice.get(f"{PATH}/{name}", params=PIER), 400, "VALIDATION_ERROR")
    assert fields(details) == ["reviewId"]


async def test_an_unknown_review_is_not_found(alice: httpx.AsyncClient) -> None:
    for response in (
        await alice.get(f"{PATH}/9", params=PIER),
        await alice.put(f"{PATH}/9/reply", params=PIER, json={"comment": "Thanks"}),
        await alice.delete(f"{PATH}/9/reply", params=PIER),
    ):
        assert_error(response, 404, "NOT_FOUND")


async def test_a_reply_is_set_replaced_reviewed_and_deleted(
    plugin: Site, emulator: httpx.AsyncClient, clock: FrozenClock
) -> None:
    for comment in ("Thank you, Owen.", "Danke, Owen! 港"):
        said = assert_ok(await plugin.http.put(REPLY, params=PIER, json={"comment": comment}))
        assert said == {
            "comment": comment,
            "updateTime": "2026-01-02T03:04:05.678Z",
            "reviewReplyState": "PENDING",
        }
        ReviewReply.model_validate(said)
    assert [call["body"] for call in await calls(emulator, "PUT")][-1] == {"comment": "Danke, Owen! 港"}
    clock.advance(seconds=20)
    read = assert_ok(await plugin.http.get(f"{PATH}/111002", params=PIER))["reviewReply"]
    assert (read["comment"], read["reviewReplyState"]) == ("Danke, Owen! 港", "APPROVED")
    again = {**read, "comment": "As it was read"}  # what only the provider writes is ignored
    assert assert_ok(await plugin.http.put(REPLY, params=PIER, json=again))["comment"] == "As it was read"
    assert assert_ok(await plugin.http.delete(REPLY, params=PIER)) == {"deleted": True}
    assert "reviewReply" not in assert_ok(await plugin.http.get(f"{PATH}/111002", params=PIER))
    assert_error(await plugin.http.delete(REPLY, params=PIER), 404, "NOT_FOUND")


@pytest.mark.parametrize(
    ("body", "wrong"),
    [
        ({}, ["comment"]),
        ({"comment": None}, ["comment"]),
        ({"comment": ""}, ["comment"]),
        ({"comment": " \n"}, ["comment"]),
        ({"comment": 5}, ["comment"]),
        ({"comment": "NUL\x00"}, ["comment"]),
        ({"comment": "é" * 2048 + "x"}, ["comment"]),
        ({"comment": "x", "colour": "red"}, ["colour"]),
        ({"colour": {"deep": 1}}, ["colour", "comment"]),
    ],
)
@ON_ONE_DATABASE
async def test_an_invalid_reply_is_rejected(
    alice: httpx.AsyncClient, emulator: httpx.AsyncClient, body: dict[str, Any], wrong: list[str]
) -> None:
    response = await alice.put(REPLY, params=PIER, json=body)
    assert fields(assert_error(response, 400, "VALIDATION_ERROR")) == wrong
    assert await calls(emulator, "PUT") == []


async def test_a_reply_may_be_4096_bytes_long(alice: httpx.AsyncClient) -> None:
    comment = "é" * 2048
    assert assert_ok(await alice.put(REPLY, params=PIER, json={"comment": comment}))["comment"] == comment


async def test_a_caller_needs_the_plan_the_permission_and_the_location(
    as_user: AsUser, as_service: AsService, emulator: httpx.AsyncClient
) -> None:
    carol, here = await as_user(CAROL), {"locationId": "locations/311"}
    assert_error(await carol.put(f"{PATH}/1/reply", params=here, json={}), 400, "VALIDATION_ERROR")
    for response in (
        await carol.get(PATH, params=here),
        await carol.get(f"{PATH}/1", params=here),
        await carol.put(f"{PATH}/1/reply", params=here, json={"comment": "x"}),
        await carol.delete(f"{PATH}/1/reply", params=here),
    ):
        assert_error(response, 403, "PLAN_RESTRICTION")
    assert_error(await (await as_user(BOB)).get(PATH, params=PIER), 404, "NOT_FOUND")
    reader = await as_service(requested=["business.read"])
    assert_ok(await reader.http.get(PATH, params=PIER))
    response = await reader.http.put(REPLY, params=PIER, json={"comment": "x"})
    assert_error(response, 403, "AUTH_INSUFFICIENT_PERMISSIONS")
    assert await calls(emulator, "PUT") == []


async def test_a_failure_of_the_provider_is_a_502(alice: httpx.AsyncClient, emulator: httpx.AsyncClient) -> None:
    unverified = assert_error(await alice.get(PATH, params={"locationId": "113"}), 502, "PROVIDER_API_ERROR")
    assert (unverified["reason"], unverified["provider_code"]) == ("rejected", "FAILED_PRECONDITION")
    await fail(emulator)
    response = await alice.get(PATH, params=PIER)
    assert assert_error(response, 502, "PROVIDER_API_ERROR")["reason"] == "unavailable"
    assert "x-data-age" not in response.headers
