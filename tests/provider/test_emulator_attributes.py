"""Attributes and categories at the emulator, by plain HTTP."""

from typing import Any

import pytest

from support.provider.rig import Rig, refusal

PIER = "locations/111"


async def set_attribute(rig: Rig, attribute: dict[str, Any] | None, mask: str) -> Any:
    body = {"attributes": [attribute] if attribute else []}
    return await rig.http.patch(f"/v1/{PIER}/attributes", params={"attributeMask": mask}, json=body)


async def test_attributes_follow_their_mask(emulator: Rig) -> None:
    unmasked: dict[str, Any] = {"name": "attributes/has_seating_outdoors", "values": [False]}
    answer = (await set_attribute(emulator, unmasked, "attributes/wi_fi")).json()
    assert [one["name"] for one in answer["attributes"]] == [
        "attributes/has_seating_outdoors",
        "attributes/pay_credit_card_types_accepted",
        "attributes/url_instagram",
    ]
    assert answer["attributes"][0]["values"] == [True]
    cards: dict[str, Any] = {
        "name": "attributes/pay_credit_card_types_accepted",
        "repeatedEnumValue": {"setValues": ["visa"]},
    }
    answer = (await set_attribute(emulator, cards, cards["name"])).json()
    assert answer["attributes"][1] == {**cards, "valueType": "REPEATED_ENUM"}
    gone: dict[str, Any] = {"name": "attributes/requires_mask_staff", "values": [True]}
    assert (await set_attribute(emulator, gone, gone["name"])).json() == answer


@pytest.mark.parametrize(
    ("attribute", "mask", "problem"),
    [
        (None, "", ("attribute_mask", "Field is required")),
        (None, "attributes/nope", ("INVALID_ATTRIBUTE_NAME", "attributes/nope")),
        (None, "attributes/has_bicycle_repair", ("ATTRIBUTE_NOT_AVAILABLE", "attributes/has_bicycle_repair")),
        ({"values": ["fast"]}, "attributes/wi_fi", ("ATTRIBUTE_INVALID_ENUM_VALUE", "attributes/wi_fi")),
        ({"values": ["free_wi_fi"] * 2}, "attributes/wi_fi", ("ATTRIBUTE_CANNOT_BE_REPEATED", "attributes/wi_fi")),
        (
            {"uriValues": [{"uri": "https://x.example/"}]},
            "attributes/wi_fi",
            ("ATTRIBUTE_TYPE_NOT_COMPATIBLE_FOR_CATEGORY", "attributes/wi_fi"),
        ),
        (
            {"values": ["yes"]},
            "attributes/has_seating_outdoors",
            ("ATTRIBUTE_TYPE_NOT_COMPATIBLE_FOR_CATEGORY", "attributes/has_seating_outdoors"),
        ),
    ],
)
async def test_bad_attribute_is_rejected(emulator: Rig, attribute: Any, mask: str, problem: tuple[str, str]) -> None:
    sent = {"name": mask, **attribute} if attribute else None
    assert refusal(await set_attribute(emulator, sent, mask)) == problem


async def test_attributes_of_another_name_are_rejected(emulator: Rig) -> None:
    url = f"/v1/{PIER}/attributes?attributeMask=attributes/wi_fi"
    answer = await emulator.http.patch(url, json={"name": "locations/112/attributes"})
    assert refusal(answer)[0] == "name"


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ({"parent": PIER}, 6),
        ({"categoryName": "categories/gcid:bicycle_store", "regionCode": "GB"}, 5),
        ({"showAll": "true", "regionCode": "JP", "languageCode": "en"}, 7),
        ({"parent": PIER, "languageCode": "en"}, "language_code"),
        ({"regionCode": "GB"}, "category_name"),
        ({"categoryName": "categories/gcid:bicycle_store"}, "region_code"),
        ({"showAll": "true", "regionCode": "JP"}, "language_code"),
    ],
)
async def test_attribute_metadata_is_by_location_or_category_or_region(
    emulator: Rig, query: dict[str, str], found: int | str
) -> None:
    answer = await emulator.http.get("/v1/attributes", params=query)
    if isinstance(found, str):
        assert refusal(answer)[0] == found
    else:
        assert len(answer.json()["attributeMetadata"]) == found


async def test_categories_are_found_by_the_beginning_of_their_name(emulator: Rig) -> None:
    query = {"regionCode": "JP", "languageCode": "ja-JP", "view": "BASIC", "filter": "displayName=コーヒー"}
    answer = (await emulator.http.get("/v1/categories", params=query)).json()
    assert answer == {"categories": [{"name": "categories/gcid:coffee_shop", "displayName": "コーヒー ショップ"}]}
    for change, field in (
        ({"view": "ALL"}, "view"),
        ({"regionCode": ""}, "region_code"),
        ({"filter": "x=1"}, "filter"),
    ):
        assert refusal(await emulator.http.get("/v1/categories", params={**query, **change}))[0] == field
    assert (await emulator.http.get("/v1/categories", params={**query, "filter": "displayName=zz"})).json() == {}
