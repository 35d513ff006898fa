"""A profile's values as people read them: known structures in words, unknown ones readable and bounded."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from profilesvc.dashboard.profile.lists import known_categories
from profilesvc.dashboard.words.values import columns, field, lines

NINE_TO_FIVE = {"openTime": {"hours": 9}, "closeTime": {"hours": 17, "minutes": 30}}


def day(name: str, **changes: Any) -> dict[str, Any]:
    return {"openDay": name, "closeDay": name, **NINE_TO_FIVE, **changes}


WEEK = [day(name) for name in ("MONDAY", "TUESDAY", "WEDNESDAY", "THURSDAY")]


@pytest.mark.parametrize(
    ("path", "value", "shown"),
    [
        ("title", "Harbour", ["Harbour"]),
        ("title", None, ["(nothing)"]),
        ("labels", [], ["(nothing)"]),
        ("x", True, ["yes"]),
        ("phoneNumbers.additionalPhones", ["+81 1", "+81 2"], ["+81 1", "+81 2"]),
        ("regularHours.periods", WEEK, ["Mon-Thu 09:00-17:30", "Fri-Sun closed"]),
        ("regularHours", {"periods": WEEK[:1]}, ["Mon 09:00-17:30", "Tue-Sun closed"]),
        (
            "regularHours.periods",
            [day("SUNDAY", openTime={"hours": 19}, closeTime={"hours": 22}), day("SUNDAY", closeTime={"hours": 12})],
            ["Mon-Sat closed", "Sun 09:00-12:00, 19:00-22:00"],
        ),
        (
            "regularHours.periods",
            [
                {"openDay": "FRIDAY", "openTime": {"hours": 20}, "closeDay": "SATURDAY", "closeTime": {"hours": 2}},
                {"openDay": "SUNDAY", "openTime": {}, "closeDay": "MONDAY", "closeTime": {}},
            ],
            ["Mon-Thu closed", "Fri 20:00-02:00 (Sat)", "Sat closed", "Sun 00:00-24:00"],
        ),
        (
            "moreHours",
            [{"hoursTypeId": "HAPPY_HOUR", "periods": WEEK[:1]}],
            ["Happy hour:", "Mon 09:00-17:30", "Tue-Sun closed"],
        ),
        (
            "specialHours.specialHourPeriods",
            [
                {"startDate": {"year": 2026, "month": 1, "day": 1}, "closed": True},
                {"startDate": {"year": 2026, "month": 12, "day": 31}, **NINE_TO_FIVE},
            ],
            ["2026-01-01 closed", "2026-12-31 09:00-17:30"],
        ),
        (
            "storefrontAddress",
            {"regionCode": "JP", "postalCode": "231-0002", "locality": "Yokohama", "addressLines": ["Pier 1", "Hall"]},
            ["Pier 1", "Hall", "Yokohama", "231-0002", "Region code: JP"],
        ),
        ("categories.primaryCategory", {"name": "categories/gcid:x", "displayName": "Café"}, ["Café"]),
        ("categories.primaryCategory.name", "categories/gcid:coffee_shop", ["Coffee shop"]),
        ("categories.additionalCategories", [{"name": "categories/gcid:book_store"}], ["Book store"]),
        ("openInfo.status", "CLOSED_TEMPORARILY", ["Closed temporarily"]),
        (
            "serviceItems",
            [
                {
                    "structuredServiceItem": {"serviceTypeId": "job_type_id:flat_tire"},
                    "price": {"units": "12", "nanos": 500_000_000, "currencyCode": "GBP"},
                }
            ],
            ["Flat tire, 12.5 GBP"],
        ),
        ("unknown", {"a": {"b": 1}, "c": [1, 2]}, ["A: B: 1", "C: 1, 2"]),
        ("regularHours.periods", [{"openDay": "NEVER"}], ["Open day: NEVER"]),  # not as expected: still readable
        ("regularHours.periods", "always", ["always"]),
        ("moreHours", {"x": 1}, ["X: 1"]),
    ],
)
def test_a_value_in_words(path: str, value: Any, shown: list[str]) -> None:
    assert [line.replace("\N{EN DASH}", "-") for line in lines(value, path)] == shown


def test_a_field_in_words() -> None:
    assert field("phoneNumbers.primaryPhone") == "Phone"
    assert field("serviceArea.regionCode") == "Service area region code"
    assert field("") == ""


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=300),
    lambda inner: st.lists(inner, max_size=20) | st.dictionaries(st.text(max_size=20), inner, max_size=20),
    max_leaves=60,
)
PATHS = st.sampled_from(
    [
        *("regularHours.periods", "regularHours", "moreHours", "specialHours", "storefrontAddress", "serviceItems"),
        *("categories.primaryCategory", "categories.additionalCategories", "serviceArea.places.placeInfos", "x.y"),
    ]
)


@pytest.mark.slow
@given(PATHS, JSON, JSON)
def test_values_are_bounded_and_different_values_look_different(path: str, ours: Any, theirs: Any) -> None:
    for column in columns(path, ours, theirs):
        assert 1 <= len(column) <= 14
        assert all(len(line) <= 1_001 for line in column)
    if ours != theirs:
        left, right = columns(path, ours, theirs)
        assert left != right


PRICES: list[dict[str, Any]] = [
    {"nanos": "x"},
    {"nanos": "Infinity"},
    {"units": "NaN"},
    {"units": "1e99999999"},
    {"units": []},
    {"units": "5", "nanos": {}},
]


@pytest.mark.parametrize("price", PRICES, ids=str)
def test_a_price_of_any_shape_is_shown(price: dict[str, Any]) -> None:
    service = {"freeFormServiceItem": {"label": {"displayName": "Tasting"}}, "price": price}
    assert "Tasting" in " ".join(lines([service], "serviceItems"))


@pytest.mark.parametrize("value", [[{"x": "y" * 500}] * 5_000, {f"m{n}": n for n in range(5_000)}, "x" * 100_000])
def test_a_very_large_value_is_cut(value: Any) -> None:
    assert len("\n".join(lines(value, "x"))) < 2_000


@pytest.mark.parametrize(
    "categories",
    [
        "x",
        ["x"],
        {"primaryCategory": "x"},
        {"additionalCategories": "x"},
        {"primaryCategory": {"name": ["x"]}, "additionalCategories": [None, 5, {"name": {}}]},
    ],
    ids=str,
)
def test_categories_of_any_shape_are_ignored(categories: object) -> None:
    assert known_categories(categories) == {}
