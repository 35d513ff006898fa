"""The emulator's own surface: what the provider's format says, checked by plain HTTP."""

from typing import Any

import httpx
import pytest

from support.provider.rig import Rig

PIER, BOOKS, POSTS = "locations/111", "locations/114", "/v4/accounts/1/locations/111/localPosts"


def violation(answer: httpx.Response) -> tuple[str, str]:
    assert answer.status_code == 400, answer.text
    error = answer.json()["error"]
    assert (error["code"], error["status"]) == (400, "INVALID_ARGUMENT")
    first = error["details"][0]["fieldViolations"][0]
    return first["field"], first["description"]


@pytest.mark.parametrize("path", ["/v1/accounts", f"/v1/{PIER}", f"/v1/{PIER}/verifications", POSTS])
async def test_bearer_is_required(emulator: Rig, path: str) -> None:
    for header in ({"Authorization": ""}, {"Authorization": "Bearer wrong"}, {"Authorization": "Basic x"}):
        answer = await emulator.http.get(path, headers=header)
        assert answer.status_code == 401
        assert answer.json()["error"]["status"] == "UNAUTHENTICATED"


async def test_token_expires_by_the_clock(emulator: Rig) -> None:
    emulator.clock.advance(seconds=3598)
    assert (await emulator.read(PIER)).status_code == 200
    emulator.clock.advance(seconds=1)
    assert (await emulator.read(PIER)).status_code == 401


@pytest.mark.parametrize(
    ("form", "error"),
    [
        ({"grant_type": "password"}, "unsupported_grant_type"),
        ({"grant_type": "refresh_token", "client_id": "x"}, "invalid_grant"),
    ],
)
async def test_rejected_refresh_has_the_oauth_shape(emulator: Rig, form: dict[str, Any], error: str) -> None:
    answer = await emulator.http.post("/token", data=form)
    assert (answer.status_code, answer.json()["error"]) == (400, error)


@pytest.mark.parametrize(
    "path",
    [
        "/v1/nothing",
        "/v2/accounts",
        "/v4/locations/111/localPosts",
        f"/v1/{PIER}/voiceOfMerchantState",
        f"/v1/{PIER}:googleUpdated",
        "/",
    ],
)
async def test_unknown_path_returns_html(emulator: Rig, path: str) -> None:
    answer = await emulator.http.get(path)
    assert answer.status_code == 404
    assert answer.headers["Content-Type"].startswith("text/html")


async def test_wrong_method_returns_html(emulator: Rig) -> None:
    assert "<html" in (await emulator.http.delete("/v1/accounts")).text


@pytest.mark.parametrize(
    "path",
    [
        "/v1/locations/9?readMask=title",
        "/v1/accounts/9/locations?readMask=title",
        f"{POSTS}/9",
        "/v4/accounts/1/locations/9/localPosts",
    ],
)
async def test_unknown_name_returns_json(emulator: Rig, path: str) -> None:
    answer = await emulator.http.get(path)
    assert answer.status_code == 404
    assert answer.json()["error"] == {
        "code": 404,
        "message": "Requested entity was not found.",
        "status": "NOT_FOUND",
    }


@pytest.mark.parametrize("path", [f"/v1/{PIER}", f"/v1/{PIER}:getGoogleUpdated", "/v1/accounts/1/locations"])
@pytest.mark.parametrize("mask", ["", "*", "attributes", "businessHours", "title,locationState", "labels.x", "title,"])
async def test_bad_read_mask_is_rejected(emulator: Rig, path: str, mask: str) -> None:
    answer = await emulator.http.get(path, params={"readMask": mask} if mask else {})
    said = "Invalid field mask provided" if mask else "Field is required"
    assert violation(answer) == ("read_mask", said)


async def test_read_mask_trims(emulator: Rig) -> None:
    answer = await emulator.read(PIER, "title,storefront_address.region_code,metadata.placeId,relationshipData")
    assert answer.json() == {
        "title": "Harbour Coffee, Pier",
        "storefrontAddress": {"regionCode": "JP"},
        "metadata": {"placeId": "ChIJ-example-111"},
    }


@pytest.mark.parametrize(
    "mask", ["", "name", "metadata", "languageCode", "openInfo.canReopen", "serviceArea.regionCode", "nope", "*"]
)
async def test_bad_update_mask_is_rejected(emulator: Rig, mask: str) -> None:
    answer = await emulator.patch(PIER, {"title": "x"}, mask)
    said = "Invalid field mask provided" if mask else "Field is required"
    assert violation(answer) == ("update_mask", said)


async def test_both_phones_travel_together_in_strict_mode_only(emulator: Rig) -> None:
    body = {"phoneNumbers": {"primaryPhone": "+81 45-555-0000"}}
    answer = await emulator.patch(PIER, body, "phoneNumbers.primaryPhone")
    assert answer.json()["phoneNumbers"]["additionalPhones"] == ["+81 45-555-0110"]
    await emulator.put_state(switches={"strict": True})
    assert violation(await emulator.patch(PIER, body, "phoneNumbers.primaryPhone"))[0] == "update_mask"
    assert (await emulator.patch(PIER, body, "phoneNumbers")).json()["phoneNumbers"] == body["phoneNumbers"]


@pytest.mark.parametrize(
    ("body", "field", "word"),
    [
        ({"locationName": "x"}, "location", "locationName"),
        ({"openInfo": {"mood": 1}}, "location.open_info", "mood"),
        ({"openInfo": {"status": "AJAR"}}, "location.open_info.status", "AJAR"),
        ({"title": 5}, "location.title", "string"),
        ({"regularHours": {"periods": [{"openTime": "09:00"}]}}, "location.regular_hours.periods.open_time", ""),
    ],
)
async def test_bad_body_is_rejected(emulator: Rig, body: dict[str, Any], field: str, word: str) -> None:
    named, said = violation(await emulator.patch(PIER, body, "title"))
    assert named == field
    assert word in said


@pytest.mark.parametrize("content", [b"{", b"[1]", b"\xff", b'{"latlng": {"latitude": NaN}}', b"[" * 100_000])
async def test_body_that_is_no_json_object_is_rejected(emulator: Rig, content: bytes) -> None:
    answer = await emulator.http.patch(f"/v1/{PIER}?updateMask=title", content=content)
    assert answer.status_code == 400
    assert "Invalid JSON payload" in answer.json()["error"]["message"]


async def test_snake_case_and_unmasked_output_only_fields_are_accepted(emulator: Rig) -> None:
    body = {"website_uri": "https://new.harbour.example/", "metadata": {"placeId": "forged"}}
    answer = await emulator.patch(PIER, body, "website_uri")
    assert answer.json()["websiteUri"] == "https://new.harbour.example/"
    assert answer.json()["metadata"]["placeId"] == "ChIJ-example-111"


async def test_validate_only_stores_nothing(emulator: Rig) -> None:
    query = {"updateMask": "title", "validateOnly": "true"}
    answer = await emulator.http.patch(f"/v1/{PIER}", params=query, json={"title": "New"})
    assert (answer.status_code, answer.json()) == (200, {})
    assert (await emulator.read(PIER, "title")).json()["title"] == "Harbour Coffee, Pier"
    assert violation(await emulator.http.patch(f"/v1/{PIER}", params=query, json={}))[0] == "title"


async def test_address_needs_its_region(emulator: Rig) -> None:
    body = {"storefrontAddress": {"addressLines": ["1 Pier"]}}
    assert violation(await emulator.patch(PIER, body, "storefrontAddress"))[0] == "storefront_address.region_code"


@pytest.mark.parametrize(
    ("body", "mask", "reason"),
    [
        ({}, "storefrontAddress", "ADDRESS_REMOVAL_NOT_ALLOWED"),
        ({"storefrontAddress": {"regionCode": "US"}}, "storefrontAddress", "ADDRESS_EDIT_CHANGES_COUNTRY"),
        ({"latlng": {"latitude": 1.5, "longitude": 2}}, "latlng", "LAT_LNG_UPDATES_NOT_PERMITTED"),
        ({"profile": {"description": "x" * 751}}, "profile", "STRING_TOO_LONG"),
        ({}, "regularHours", "SPECIAL_HOURS_SET_WITHOUT_REGULAR_HOURS"),
        (
            {"serviceArea": {"places": {"placeInfos": [{"placeId": f"{n}"} for n in range(21)]}}},
            "serviceArea",
            "TOO_MANY_ENTRIES",
        ),
    ],
)
async def test_business_rules_hold_in_strict_mode_only(
    emulator: Rig, body: dict[str, Any], mask: str, reason: str
) -> None:
    await emulator.put_state(switches={"strict": True})
    answer = await emulator.patch(PIER, body, mask)
    assert answer.status_code == 400
    assert answer.json()["error"]["details"][0]["reason"] == reason
    await emulator.put_state(switches={"strict": False})
    assert (await emulator.patch(PIER, body, mask)).status_code == 200


async def test_query_tolerates_the_standard_parameters_and_rejects_unknown_ones(emulator: Rig) -> None:
    standard = {"alt": "json", "prettyPrint": "false", "$.xgafv": "2", "read_mask": "title"}
    assert (await emulator.http.get(f"/v1/{PIER}", params=standard)).status_code == 200
    assert violation(await emulator.http.get(f"/v1/{PIER}?readMask=title&page=2"))[0] == "page"


async def test_pages_follow_their_tokens(emulator: Rig) -> None:
    seen, query = [], {"readMask": "name", "pageSize": "2"}
    while True:
        answer = (await emulator.http.get("/v1/accounts/-/locations", params=query)).json()
        seen += [place["name"] for place in answer["locations"]]
        if "nextPageToken" not in answer:
            break
        query["pageToken"] = answer["nextPageToken"]
    assert seen == [f"locations/{n}" for n in (111, 112, 113, 114, 119, 211, 219, 311)]
    stolen = {"pageToken": query["pageToken"]}
    assert violation(await emulator.http.get("/v1/accounts", params=stolen))[0] == "page_token"
    assert violation(await emulator.http.get("/v1/accounts?pageToken=%00"))[0] == "page_token"


@pytest.mark.parametrize("size", ["0", "-1", "x", "1.5", ""])
async def test_bad_page_size_is_rejected(emulator: Rig, size: str) -> None:
    assert violation(await emulator.http.get("/v1/accounts", params={"pageSize": size}))[0] == "page_size"


async def test_page_goes_on_behind_its_last_item_when_items_come_and_go(emulator: Rig) -> None:
    first = (await emulator.http.get(POSTS, params={"pageSize": "3"})).json()
    await emulator.http.post(POSTS, json={"topicType": "STANDARD", "summary": "newer"})
    await emulator.http.delete(f"/v4/{first['localPosts'][2]['name']}")
    query = {"pageSize": "100", "pageToken": first["nextPageToken"]}
    rest = (await emulator.http.get(POSTS, params=query)).json()["localPosts"]
    assert len(rest) == 9
    assert not {post["name"] for post in rest} & {post["name"] for post in first["localPosts"]}


async def test_empty_list_is_an_empty_message(emulator: Rig) -> None:
    assert (await emulator.http.get("/v4/accounts/1/locations/114/localPosts")).json() == {}


async def test_consumers_version_shows_the_providers_change_until_the_merchant_decides(emulator: Rig) -> None:
    await emulator.put_state(google_updated={BOOKS: {"title": "Harbour Bookshop"}})
    assert (await emulator.read(BOOKS, "title,metadata.hasGoogleUpdated")).json() == {
        "title": "Harbour Books",
        "metadata": {"hasGoogleUpdated": True},
    }
    url = f"/v1/{BOOKS}:getGoogleUpdated?readMask=title"
    assert (await emulator.http.get(url)).json() == {"location": {"title": "Harbour Bookshop"}, "diffMask": "title"}
    await emulator.patch(BOOKS, {"title": "Harbour Books & Prints"}, "title")
    assert (await emulator.http.get(url)).json() == {"location": {"title": "Harbour Books & Prints"}}
