"""The lists of a profile: categories, kinds of hours, services and areas are added, changed and removed."""

from typing import Any

import httpx
import pytest

from conftest import ON_ONE_DATABASE
from profilesvc.services.context import Services
from support.api import Site, assert_ok
from support.browser.dashboard import Browser
from support.provider.drive import calls, document, drift, fail, forget_calls, heal
from support.syncs import store_source

PIER = "locations/111"
PROFILE = "/dashboard/sites/111/profile"
DAY = {"openDay": "MONDAY", "openTime": {"hours": 9}, "closeDay": "MONDAY", "closeTime": {"hours": 17}}
FREE = {
    "freeFormServiceItem": {
        "category": "categories/gcid:coffee_shop",
        "label": {"displayName": "Latte art", "languageCode": "en"},
    },
    "price": {"currencyCode": "JPY", "units": "3000"},
}
LISTED = {"structuredServiceItem": {"serviceTypeId": "job_type_id:custom_cakes"}}
PLACES = [{"placeId": "ChIJ-1", "placeName": "Yokohama"}, {"placeId": "ChIJ-2", "placeName": "Kawasaki"}]
AREA = {"businessType": "CUSTOMER_AND_BUSINESS_LOCATION", "places": {"placeInfos": PLACES}}


@pytest.fixture(autouse=True)
async def synced(plugin: Site, emulator: httpx.AsyncClient) -> None:
    full = {
        "title": "Harbour Coffee, Pier",
        "moreHours": [{"hoursTypeId": "DELIVERY", "periods": [DAY]}],
        "serviceItems": [FREE, LISTED],
        "serviceArea": AREA,
    }
    assert_ok(await plugin.http.post("/api/v1/sync/111", json=full))
    await forget_calls(emulator)


async def patch(emulator: httpx.AsyncClient) -> tuple[str, Any]:
    [call] = await calls(emulator, "PATCH")
    return call["query"]["updateMask"], call["body"]


def named(browser: Browser, start: str, end: str = "") -> list[str]:
    fields = browser.page.form("/profile")["fields"]
    return [name for name in fields if name.startswith(start) and name.endswith(end)]


async def test_a_category_is_found_and_added(alice_there: Browser, emulator: httpx.AsyncClient) -> None:
    await alice_there.open(PROFILE)
    page = await alice_there.send("/profile", intent="category", find="tea", title="Typed")
    assert page.form("/profile")["fields"]["title"] == ["Typed"]
    assert "Tea house" in page.text
    assert await calls(emulator, "PATCH") == []
    await alice_there.send("/profile", **{"category-categories/gcid:tea_house": "on", "title": "Harbour Coffee, Pier"})
    mask, body = await patch(emulator)
    added = {"name": "categories/gcid:tea_house"}
    assert mask == "categories"
    assert body["categories"]["additionalCategories"][-1] == added
    assert len(body["categories"]["additionalCategories"]) == 3
    await alice_there.open(PROFILE)
    await forget_calls(emulator)
    await alice_there.send("/profile", **{"category-categories/gcid:tea_house": None})
    assert added not in (await patch(emulator))[1]["categories"]["additionalCategories"]


async def test_a_search_without_a_result_is_next_to_its_field(
    alice_there: Browser, emulator: httpx.AsyncClient
) -> None:
    await alice_there.open(PROFILE)
    page = await alice_there.send("/profile", 400, intent="category", find="zzz", title="Typed")
    assert 'href="#find"' in alice_there.answer.text
    assert page.form("/profile")["fields"]["title"] == ["Typed"]
    await fail(emulator)
    page = await alice_there.send("/profile", 502, intent="category", find="tea")
    assert page.form("/profile")["fields"]["title"] == ["Typed"]
    await heal(emulator)


async def test_a_category_that_somebody_else_has_added_meanwhile_stays(
    alice_there: Browser, plugin: Site, emulator: httpx.AsyncClient
) -> None:
    await alice_there.open(PROFILE)
    old = (await document(emulator, PIER))["categories"]
    other = {"name": "categories/gcid:tea_house"}
    more = {**old, "additionalCategories": [*old["additionalCategories"], other]}
    assert_ok(await plugin.http.post("/api/v1/sync/111", json={"categories": more}))
    await forget_calls(emulator)
    await alice_there.send("/profile", **{"category-categories/gcid:bakery": None})
    names = (await patch(emulator))[1]["categories"]["additionalCategories"]
    assert names == [{"name": "categories/gcid:breakfast_restaurant"}, other]


async def test_hours_of_another_kind_are_added_and_removed(alice_there: Browser, emulator: httpx.AsyncClient) -> None:
    page = await alice_there.open(PROFILE)
    assert page.form("/profile")["fields"]["moreHours-DELIVERY-MONDAY"] == ["09:00-17:00"]
    page = await alice_there.send("/profile", intent="hours", hours_kind="TAKEOUT")
    assert "Takeout" in page.text
    changes = {"moreHours-TAKEOUT-TUESDAY": "10:00-12:00", "moreHours-DELIVERY-MONDAY": "nine"}
    page = await alice_there.send("/profile", 400, **changes)
    assert 'href="#moreHours-DELIVERY-MONDAY"' in alice_there.answer.text
    assert "More hours, Monday: must be times" in page.text
    assert page.form("/profile")["fields"]["moreHours-TAKEOUT-TUESDAY"] == ["10:00-12:00"]
    await alice_there.send("/profile", **{"moreHours-DELIVERY-MONDAY": ""})
    mask, body = await patch(emulator)
    assert (mask, [one["hoursTypeId"] for one in body["moreHours"]]) == ("moreHours", ["TAKEOUT"])


async def test_a_service_is_changed_added_and_removed(alice_there: Browser, emulator: httpx.AsyncClient) -> None:
    page = await alice_there.open(PROFILE)
    assert "Latte art, 3000 JPY" in page.text
    assert "Custom cakes" in page.text
    [price] = [
        name for name in named(alice_there, "serviceItems-", "-price") if page.form("/profile")["fields"][name][0]
    ]
    ident = price.removesuffix("-price")
    other = next(name for name in named(alice_there, "serviceItems-seen-") if name[-12:] != ident[-12:])
    await alice_there.send(
        "/profile",
        **{
            price: "2500.50",
            other.replace("seen-", ""): None,
            "serviceItems-new0-name": "Barista course",
            "serviceItems-new0-price": "40",
            "serviceItems-new0-currency": "eur",
        },
    )
    mask, body = await patch(emulator)
    assert mask == "serviceItems"
    changed, new = body["serviceItems"]
    assert changed == {**FREE, "price": {"currencyCode": "JPY", "units": "2500", "nanos": 500_000_000}}
    assert new["freeFormServiceItem"]["label"] == {"displayName": "Barista course"}
    assert new["freeFormServiceItem"]["category"] == "categories/gcid:coffee_shop"
    assert new["price"] == {"currencyCode": "EUR", "units": "40"}
    page = await alice_there.open(PROFILE)  # a price in whole units has null for the rest
    assert "Latte art, 2500.5 JPY" in page.text
    assert "Barista course, 40 EUR" in page.text


async def test_a_service_of_the_provider_is_added(alice_there: Browser, emulator: httpx.AsyncClient) -> None:
    page = await alice_there.open(PROFILE)
    page = await alice_there.send("/profile", intent="more", **{"serviceItems-new0-kind": "job_type_id:custom_cakes"})
    assert "serviceItems-new1-name" in page.form("/profile")["fields"]
    await alice_there.send("/profile", **{"serviceItems-new0-description": "For weddings"})
    _, body = await patch(emulator)
    item = {"serviceTypeId": "job_type_id:custom_cakes", "description": "For weddings"}
    assert body["serviceItems"] == [FREE, LISTED, {"structuredServiceItem": item}]


async def test_a_price_is_shown_exactly_and_may_have_nulls(alice_there: Browser, plugin: Site) -> None:
    price = {"currencyCode": "JPY", "units": "1234567", "nanos": None}
    empty = {"currencyCode": None, "units": None, "nanos": 500_000_000}
    items = [{**FREE, "price": price}, {**LISTED, "price": empty}]
    assert_ok(await plugin.http.post("/api/v1/sync/111", json={"serviceItems": items}))
    page = await alice_there.open(PROFILE)
    assert "Latte art, 1234567 JPY" in page.text
    assert "Custom cakes, 0.5" in page.text


@pytest.mark.parametrize("row", ["new" + "9" * 5000, "new\N{ARABIC-INDIC DIGIT THREE}", "new"])
@ON_ONE_DATABASE
async def test_a_row_that_no_page_has_is_ignored(alice_there: Browser, emulator: httpx.AsyncClient, row: str) -> None:
    await alice_there.open(PROFILE)
    await alice_there.send("/profile", **{f"serviceItems-{row}-name": "x"})
    assert await calls(emulator, "PATCH") == []


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"serviceItems-new0-price": "12"}, "serviceItems-new0-name"),
        ({"serviceItems-new0-name": "x", "serviceItems-new0-price": "cheap"}, "serviceItems-new0-price"),
        ({"serviceItems-new0-name": "x", "serviceItems-new0-price": "NaN"}, "serviceItems-new0-price"),
        ({"serviceItems-new0-name": "x", "serviceItems-new0-price": "1"}, "serviceItems-new0-currency"),
        ({"serviceArea-new0-name": "Tokyo"}, "serviceArea-new0-place"),
        ({"openingDate": "soon"}, "openingDate"),
        ({"openingDate": "2019-13"}, "openingDate"),
    ],
)
@ON_ONE_DATABASE
async def test_a_problem_is_next_to_its_field(
    alice_there: Browser, emulator: httpx.AsyncClient, changes: dict[str, str], field: str
) -> None:
    await alice_there.open(PROFILE)
    page = await alice_there.send("/profile", 400, **changes)
    assert f'href="#{field}"' in alice_there.answer.text
    assert f'id="{field}"' in alice_there.answer.text
    for name, text in changes.items():
        assert page.form("/profile")["fields"][name] == [text]
    assert await calls(emulator, "PATCH") == []


async def test_areas_are_added_and_removed(alice_there: Browser, emulator: httpx.AsyncClient) -> None:
    page = await alice_there.open(PROFILE)
    assert "Yokohama" in page.text
    new = {"serviceArea-new0-name": "Tokyo", "serviceArea-new0-place": "ChIJ-3", "serviceArea-ChIJ-1": None}
    await alice_there.send("/profile", **new)
    mask, body = await patch(emulator)
    assert set(mask.split(",")) == {
        "serviceArea",
        "storefrontAddress",
    }  # or it would lose its address
    assert [one["placeName"] for one in body["serviceArea"]["places"]["placeInfos"]] == ["Kawasaki", "Tokyo"]


async def test_an_area_without_a_name_has_its_id(
    alice_there: Browser, services: Services, emulator: httpx.AsyncClient
) -> None:
    area = {**AREA, "places": {"placeInfos": [{"placeId": "ChIJ-9"}]}}
    await store_source(services, PIER, {"serviceArea": area})
    page = await alice_there.open(PROFILE)
    assert "ChIJ-9" in page.text
    await alice_there.send("/profile", title="Another")
    assert (await patch(emulator))[0] == "title"


async def test_the_opening_date_is_changed_alone(alice_there: Browser, emulator: httpx.AsyncClient) -> None:
    await alice_there.open(PROFILE)
    await alice_there.send("/profile", openingDate="2019-05")
    assert await patch(emulator) == ("openInfo.openingDate", {"openInfo": {"openingDate": {"year": 2019, "month": 5}}})


async def test_fields_without_an_input_are_shown_and_stay(
    alice_there: Browser, plugin: Site, emulator: httpx.AsyncClient
) -> None:
    """Fields of the provider that this version does not know, too."""
    before = await document(emulator, PIER)
    await drift(emulator, locations={PIER: {"latlng": {"latitude": 35.5, "longitude": 139.5}}})
    await plugin.http.get("/api/v1/profile/locations/111/comparison")
    page = await alice_there.open(PROFILE)
    shown = page.text.partition("Only shown here")[2]
    assert "Place on the map" in shown
    assert "Language" in shown
    await alice_there.send("/profile", title="Another", **{"serviceItems-new0-name": "Tasting"})
    after = await document(emulator, PIER)
    changed = {name for name in before | after if before.get(name) != after.get(name)}
    assert changed - {"latlng", "metadata"} == {"title", "serviceItems"}


async def test_without_the_provider_the_page_has_what_is_known(
    alice_there: Browser, emulator: httpx.AsyncClient
) -> None:
    await fail(emulator)
    page = await alice_there.open(PROFILE)
    assert page.form("/profile")["fields"]["moreHours-DELIVERY-MONDAY"] == ["09:00-17:00"]
    assert "Delivery" in page.text
