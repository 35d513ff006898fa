"""The emulator's profiles: filters, reviews of edits, oddities, limits."""

import pytest

from profilesvc.fixtures import load_world
from support.provider.rig import Rig, refusal

PIER, RENTALS = "locations/111", "locations/219"
HYBRID, CUSTOMERS_ONLY = "CUSTOMER_AND_BUSINESS_LOCATION", "CUSTOMER_LOCATION_ONLY"
PLACES = {"placeInfos": [{"placeId": "ChIJ-example-kiel", "placeName": "Kiel, Deutschland"}]}
LATLNG = {place["profile"]["name"]: place["profile"].get("latlng") for place in load_world()["locations"]}


async def listed(rig: Rig, **query: str) -> list[str]:
    params = {"readMask": "name", **query}
    answer = await rig.http.get("/v1/accounts/-/locations", params=params)
    assert answer.status_code == 200, answer.text
    names = [place["name"].removeprefix("locations/") for place in answer.json().get("locations", [])]
    assert answer.json().get("totalSize") == (len(names) or None if "filter" in query else None)
    return names


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ('title="harbour coffee"', ["111", "112", "113"]),
        ('title="HARB"', []),
        ('title:"arb"', ["111", "112", "113", "114", "119"]),
        ('categories="bakery"', ["111"]),
        ('phone_numbers.primary_phone="+81455550111"', ["111"]),
        ('storefront_address.region_code="JP" AND title:"air"', ["113"]),
        ('storefrontAddress.regionCode="GB" OR storefrontAddress.regionCode="DE"', ["211", "219"]),
        ('title:"marsh" AND (storefront_address.region_code="DE")', ["219"]),
        ('metadata.place_id="ChIJ-example-311"', ["311"]),
        ('openInfo.status="OPEN" AND title="dental"', ["311"]),
        ('labels="nothing"', []),
        ('storeCode="nothing"', []),
    ],
)
async def test_a_filter_finds_the_locations(emulator: Rig, text: str, names: list[str]) -> None:
    assert await listed(emulator, filter=text) == names


async def test_a_filter_by_distance_finds_the_locations(emulator: Rig) -> None:
    latlng = LATLNG[PIER]
    assert latlng
    near = f"distance(latlng, geopoint({latlng['latitude']}, {latlng['longitude']}))<200"
    assert "111" in await listed(emulator, filter=near)
    assert await listed(emulator, filter="distance(latlng, geopoint(-80, 0))<1000.5") == []


@pytest.mark.parametrize(
    "text",
    [
        "title",
        'mood="x"',
        'title="x" AND',
        '(title="x"',
        'title="x")',
        'title="x" OR storeCode="y"',
        'title="x" title="y"',
        "distance(latlng, geopoint(1.1.1, 0))<5",
        "(" * 5000,
    ],
)
async def test_filter_that_is_not_understood_is_rejected(emulator: Rig, text: str) -> None:
    answer = await emulator.http.get("/v1/accounts/-/locations", params={"readMask": "name", "filter": text})
    assert refusal(answer)[0] == "filter"


async def test_order_is_by_title_or_store_code(emulator: Rig) -> None:
    titles = ["311", "114", "113", "111", "112", "119", "211", "219"]
    assert await listed(emulator, orderBy="title") == titles
    assert await listed(emulator, orderBy="title desc") == titles[::-1]
    assert len(await listed(emulator, orderBy="store_code desc, title")) == 8
    answer = await emulator.http.get("/v1/accounts/-/locations", params={"readMask": "name", "orderBy": "mood"})
    assert refusal(answer)[0] == "order_by"


async def test_pages_go_on_in_their_order_and_reject_a_token_of_another(emulator: Rig) -> None:
    query = {"readMask": "name", "pageSize": "3", "orderBy": "title desc"}
    first = (await emulator.http.get("/v1/accounts/-/locations", params=query)).json()
    assert await listed(emulator, pageSize="3", orderBy="title desc", pageToken=first["nextPageToken"]) == [
        "112",
        "111",
        "113",
    ]
    stolen = {**query, "pageToken": first["nextPageToken"], "orderBy": "title"}
    answer = await emulator.http.get("/v1/accounts/-/locations", params=stolen)
    assert refusal(answer)[0] == "page_token"


async def test_edit_in_review_is_the_merchants_already_and_not_yet_the_consumers(emulator: Rig) -> None:
    await emulator.put_state(switches={"edit_review_seconds": 60})
    await emulator.patch(PIER, {"title": "One", "labels": ["new"]}, "title,labels")
    await emulator.patch(PIER, {"title": "Two"}, "title")
    place = (await emulator.read(PIER, "title,metadata.hasPendingEdits")).json()
    assert place == {"title": "Two", "metadata": {"hasPendingEdits": True}}
    url = f"/v1/{PIER}:getGoogleUpdated?readMask=title"
    seen = (await emulator.http.get(url)).json()
    assert seen["location"] == {"title": "Harbour Coffee, Pier"}
    assert seen["pendingMask"] == seen["diffMask"] == "labels,title"
    emulator.clock.advance(seconds=60)
    assert (await emulator.http.get(url)).json() == {"location": {"title": "Two"}}
    assert (await emulator.read(PIER, "metadata.hasPendingEdits")).json() == {"metadata": {}}


async def test_closed_and_stale_fields_cannot_be_edited(emulator: Rig) -> None:
    await emulator.put_state(blocked={PIER: {"title": "THROTTLED", "websiteUri": "STALE_DATA"}})
    assert refusal(await emulator.patch(PIER, {"title": "x"}, "title")) == ("THROTTLED", "title")
    body = {"websiteUri": "https://x.example/"}
    assert refusal(await emulator.patch(PIER, body, "websiteUri")) == ("STALE_DATA", "website_uri")
    assert (await emulator.patch(PIER, {"labels": ["x"]}, "labels")).status_code == 200
    await emulator.http.get(f"/v1/{PIER}:getGoogleUpdated?readMask=title")
    assert (await emulator.patch(PIER, body, "websiteUri")).status_code == 200
    assert refusal(await emulator.patch(PIER, {"title": "x"}, "title"))[0] == "THROTTLED"


async def test_new_name_may_cost_the_voice_of_merchant_without_a_word(emulator: Rig) -> None:
    await emulator.put_state(switches={"reverify": True})
    await emulator.patch(PIER, {"labels": ["x"]}, "labels")
    assert (await emulator.patch(PIER, {"title": "New"}, "title")).json()["metadata"]["hasVoiceOfMerchant"]
    state = (await emulator.http.get(f"/v1/{PIER}/VoiceOfMerchantState")).json()
    assert state == {"hasBusinessAuthority": True, "verify": {}}
    assert "hasVoiceOfMerchant" not in (await emulator.read(PIER, "metadata")).json()["metadata"]


async def test_half_a_service_area_behaves_as_oddly_as_the_providers(emulator: Rig) -> None:
    area = {"serviceArea": {"businessType": HYBRID, "places": PLACES}}
    await emulator.put_state(switches={"strict": True})
    alone = await emulator.patch(RENTALS, area, "serviceArea.businessType")
    assert refusal(alone) == ("service_area.places", "Field is required")
    assert refusal(await emulator.patch(PIER, area, "serviceArea.places"))[0] == "service_area"
    assert (await emulator.patch(RENTALS, area, "serviceArea.places")).json()["serviceArea"] == area["serviceArea"]
    silently = (await emulator.patch(RENTALS, area, "serviceArea")).json()
    assert silently["serviceArea"]["businessType"] == CUSTOMERS_ONLY
    address = (await emulator.read(RENTALS, "storefrontAddress")).json()
    whole = (await emulator.patch(RENTALS, {**area, **address}, "serviceArea,storefrontAddress")).json()
    assert whole["serviceArea"]["businessType"] == HYBRID
    only = {"serviceArea": {**area["serviceArea"], "businessType": CUSTOMERS_ONLY}, **address}
    moved = (await emulator.patch(RENTALS, only, "serviceArea,storefrontAddress")).json()
    assert "storefrontAddress" not in moved
    assert "latlng" not in moved


async def test_quotas_are_per_profile_and_per_api_and_a_minute_long(emulator: Rig) -> None:
    await emulator.put_state(switches={"edits_per_minute": 10, "requests_per_minute": 30})
    for number in range(10):
        assert (await emulator.patch(PIER, {"title": f"{number}"}, "title")).status_code == 200
    error = (await emulator.patch(PIER, {"title": "x"}, "title")).json()["error"]
    assert (error["code"], error["status"], error["details"][0]["reason"]) == (
        429,
        "RESOURCE_EXHAUSTED",
        "RATE_LIMIT_EXCEEDED",
    )
    assert (await emulator.patch(RENTALS, {"title": "x"}, "title")).status_code == 200
    for _ in range(18):
        assert (await emulator.read(PIER)).status_code == 200
    error = (await emulator.read(PIER)).json()["error"]
    assert error["details"][0]["metadata"]["service"] == "mybusinessbusinessinformation.googleapis.com"
    assert (await emulator.http.get("/v1/accounts")).status_code == 200
    await emulator.http.post("/__emulator/clock", json={"advance_seconds": 60})
    assert (await emulator.patch(PIER, {"title": "x"}, "title")).status_code == 200


async def test_clock_can_be_set(emulator: Rig) -> None:
    answer = await emulator.http.post("/__emulator/clock", json={"now": "2026-03-04T04:00:00Z"})
    assert answer.json() == {"now": "2026-03-04T04:00:00.000Z"}
    assert (await emulator.http.post("/__emulator/clock", json={"now": "noon"})).status_code == 400
