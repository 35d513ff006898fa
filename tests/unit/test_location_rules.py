"""D-124: the values that the provider's documentation rejects, before they are sent."""

from datetime import date
from typing import Any

import pytest

from profilesvc.contract.provider import limits
from profilesvc.domain import location_rules, profiles
from profilesvc.domain.errors import ServiceError
from profilesvc.domain.provider_values import has_link, is_phone, regions
from support.cases.profiles import INVALID, VALID, Case
from support.work import counted

TODAY = date(2026, 1, 2)


def refused(body: dict[str, Any]) -> list[str]:
    try:
        profiles.check(body, TODAY)
    except ServiceError as error:
        return [one["field"] for one in error.details["errors"]]
    return []


@pytest.mark.parametrize("case", VALID)
def test_a_documented_value_is_accepted(case: Case) -> None:
    assert refused(case.body) == []


@pytest.mark.parametrize("case", INVALID)
def test_a_value_that_the_documentation_rejects_is_refused_with_its_field(case: Case) -> None:
    assert refused(case.body) == [case.field]


def test_every_problem_is_named_once_with_those_of_the_format() -> None:
    body = {
        "title": 5,
        "websiteUri": "x",
        "phoneNumbers": {"primaryPhone": "call me", "additionalPhones": [1]},
        "labels": ["a"] * 11,
        "latlng": {"latitude": 200},
    }
    assert sorted(refused(body)) == [
        "labels",
        "latlng.latitude",
        "phoneNumbers.additionalPhones.0",
        "phoneNumbers.primaryPhone",
        "title",
        "websiteUri",
    ]


def test_a_null_clears_whatever_is_stored() -> None:
    cleared = ("storeCode", "websiteUri", "labels", "latlng", "serviceItems", "adWordsLocationExtensions")
    assert refused(dict.fromkeys(cleared)) == []


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"phoneNumbers": {"additionalPhones": ["+81 45-555-0110"]}}, "phoneNumbers.primaryPhone"),
        ({"categories": {"additionalCategories": [{"name": "c"}]}}, "categories.primaryCategory"),
        (
            {"categories": {"primaryCategory": {"displayName": "c"}, "additionalCategories": [{"name": "c"}]}},
            "categories.primaryCategory",
        ),
        ({"serviceArea": {"places": {"placeInfos": [{"placeId": "a", "placeName": "b"}]}}}, "serviceArea.businessType"),
        ({"relationshipData": {"parentLocation": {"placeId": "x"}}}, "relationshipData.parentLocation.relationType"),
    ],
)
def test_a_message_that_is_sent_whole_must_be_complete(body: dict[str, Any], field: str) -> None:
    patch = profiles.plan_patch({}, body)
    with pytest.raises(ServiceError) as refusal:
        profiles.require_complete(patch)
    assert [one["field"] for one in refusal.value.details["errors"]] == [field]
    profiles.require_complete(profiles.plan_patch({}, {"adWordsLocationExtensions": {"adPhone": None}}))


def test_a_number_is_read_by_the_region_of_its_address() -> None:
    assert is_phone("045-555-0170 0171 0172 01", None)
    assert not is_phone("045-555-0170 0171 0172 01", "JP")
    assert is_phone("045-555-0170", "nowhere")


def test_regions_are_those_of_iso_3166() -> None:
    assert {"JP", "DE", "US", "XK", "AX"} <= regions()
    assert regions() & {"ZZ", "EU", "UN", "XA", "UK"} == set()
    assert 249 <= len(regions()) <= 260


def test_the_numbers_of_the_documentation_are_those_of_the_rules() -> None:
    faults = {one.path: one.fault for case in INVALID for one in location_rules.violations(case.body, TODAY)}
    assert faults["title"].metadata == {"max_length": f"{limits.TITLE}"} == {"max_length": "100"}
    assert faults["labels"].metadata == {"max_count": f"{limits.LABELS}"} == {"max_count": "10"}
    assert faults["serviceArea.places.placeInfos"].metadata == {"max_count": "20"}


def _wrong(items: int) -> dict[str, Any]:
    """Return a body with problems of the format and of the documentation at each item of two arrays."""
    services, dates = {"price": 1, "structuredServiceItem": 1}, {"closed": 1, "openTime": 3}
    return {"serviceItems": [services] * items, "specialHours": {"specialHourPeriods": [dates] * items}}


def test_the_cost_of_wrong_items_grows_with_their_number_and_not_with_its_square() -> None:
    def calls(items: int) -> int:
        with counted() as work:
            refused(_wrong(items))
        return work.calls

    calls(1)
    assert calls(1_000) < 6 * calls(200)


def test_a_long_text_without_a_link_is_searched_once() -> None:
    """If the cost grew with the square of the length, this would take hours, and pytest-timeout would end it."""
    assert not has_link("a-" * 2_000_000)
