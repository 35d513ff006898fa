"""D-81 to D-85: golden cases of a sync, and the properties that hold for every body."""

import copy
import json
from pathlib import Path
from typing import Any, Literal, get_args, get_origin

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from profilesvc.contract.common import Int32
from profilesvc.contract.provider.format import Int64, Message, Number
from profilesvc.contract.provider.location import (
    Date,
    Location,
    PostalAddress,
    SpecialHourPeriod,
    TimePeriod,
)
from profilesvc.domain import profiles
from profilesvc.domain.errors import ServiceError
from profilesvc.domain.messages import message_of
from profilesvc.domain.plans import WRITABLE, load_catalogue
from support.effort import effort

Document = dict[str, Any]
CASES = json.loads((Path(__file__).parents[2] / "data/fixtures/sync_cases.json").read_text("utf-8"))


def apply(current: Document, body: Document, mask: list[str]) -> Document:
    """A patch at the provider: every masked path gets the body's value, or is removed."""
    after = copy.deepcopy(current)
    for path in mask:
        top, _, member = path.partition(".")
        value = body.get(top, {}).get(member) if member else body.get(top)
        target = after.setdefault(top, {}) if member else after
        target.pop(member or top, None)
        if value is not None:
            target[member or top] = value
    return after


@pytest.mark.parametrize("case", CASES, ids=[case["name"] for case in CASES])
def test_a_golden_case_is_compared_as_stored(case: Document) -> None:
    expect, body, current = case["expect"], case["body"], case["current"]
    syncable = tuple(case["syncable"]) if case["syncable"] else None
    sendable, filtered = profiles.split(body, syncable)
    assert filtered == expect["filtered"] == profiles.filtered_leaves(body, syncable)
    if "refused" in expect:
        with pytest.raises(ServiceError) as refusal:
            profiles.plan_patch(current, profiles.check(sendable))
        assert [[error["field"], error["problem"]] for error in refusal.value.details["errors"]] == expect["refused"]
        return
    patch = profiles.plan_patch(current, profiles.check(sendable))
    assert (patch.changed, patch.unchanged) == (expect["changed"], expect["unchanged"])
    assert (patch.mask, patch.body) == (expect["mask"], expect["body"])
    assert profiles.differences(body, current, filtered) == expect["differences_before"]
    after = apply(current, patch.body, patch.mask)
    assert profiles.differences(body, after, filtered) == expect["differences_after"]


def test_golden_cases_cover_every_writable_field() -> None:
    assert len({case["name"] for case in CASES}) == len(CASES) >= 83
    changed = {path.split(".")[0] for case in CASES for path in case["expect"].get("changed", [])}
    assert changed == set(WRITABLE)


def test_leaves_are_in_the_documents_order() -> None:
    document = {"b": {"y": 1, "x": {}}, "a": [{"c": 1}], "z": None, "e": {}}
    assert profiles.leaves(document) == [("b.y", 1), ("b.x", {}), ("a", [{"c": 1}]), ("z", None), ("e", {})]
    assert profiles.leaves({}) == []


def test_check_keeps_the_callers_order_and_reads_whole_floats_as_integers() -> None:
    body = {"title": "x", "storefrontAddress": {"revision": 10.0, "addressLines": ["a"]}, "labels": ["l"]}
    checked = profiles.check(body)
    assert json.dumps(checked) == json.dumps(body).replace("10.0", "10")


def test_check_drops_read_only_fields_inside_arrays() -> None:
    body = {"categories": {"additionalCategories": [{"name": "categories/gcid:cafe", "displayName": 5}]}}
    assert profiles.check(body) == {"categories": {"additionalCategories": [{"name": "categories/gcid:cafe"}]}}


@pytest.mark.parametrize("phone", ["5" * 65, "1\x002", "\ud800", 5, ["1"], {}])
def test_invalid_phone_is_rejected(phone: Any) -> None:
    with pytest.raises(ServiceError) as refusal:
        profiles.check({"phoneNumbers": {"primaryPhone": phone}})
    assert [error["field"] for error in refusal.value.details["errors"]] == ["phoneNumbers.primaryPhone"]


def test_merge_combines_bodies() -> None:
    base = {"a": {"x": 1, "y": 2}, "b": [1, 2], "c": {"z": 1}, "d": None}
    update = {"a": {"y": 3}, "b": [3], "c": None, "d": {"k": 1}, "e": {}}
    assert profiles.merge(base, update) == {"a": {"x": 1, "y": 3}, "b": [3], "c": None, "d": {"k": 1}, "e": {}}
    assert profiles.merge(base, {"a": {}}) == base


def test_planning_changes_neither_document() -> None:
    current = {
        "serviceArea": {"businessType": "CUSTOMER_AND_BUSINESS_LOCATION"},
        "storefrontAddress": {"locality": "A"},
    }
    body = {"serviceArea": {"businessType": "CUSTOMER_LOCATION_ONLY"}}
    before = copy.deepcopy((current, body))
    profiles.plan_patch(current, body)
    assert (current, body) == before


# Few values, so that bodies and locations often agree.
WORDS = st.sampled_from(["", "a", "b", "ü"])
SPECIAL: dict[Any, st.SearchStrategy[Any]] = {
    Date: st.fixed_dictionaries({"year": st.integers(1, 3), "month": st.integers(1, 2)}),
    TimePeriod: st.sampled_from(
        [
            {"openDay": "MONDAY", "openTime": {}, "closeDay": "MONDAY", "closeTime": {"hours": 24}},
            {"openDay": "FRIDAY", "openTime": {"hours": 17}, "closeDay": "SATURDAY", "closeTime": {"minutes": 30}},
            {"openDay": "SATURDAY", "openTime": {"hours": 1}, "closeDay": "SATURDAY", "closeTime": {"hours": 2}},
        ]
    ),
    SpecialHourPeriod: st.sampled_from(
        [
            {"startDate": {"year": 2026, "month": 12, "day": 25}, "closed": True},
            {"startDate": {"year": 2026, "month": 12, "day": 24}, "openTime": {}, "closeTime": {"hours": 12}},
        ]
    ),
}


REQUIRED: dict[Any, tuple[str, ...]] = {PostalAddress: ("regionCode",)}


def values(annotation: Any) -> st.SearchStrategy[Any]:
    """Values that a field of that type may have."""
    message, is_list = message_of(annotation)
    if message is not None:
        items = documents(message, needed=is_list)
        different = str if message in SPECIAL else None  # hours must not overlap
        return st.lists(items, max_size=2, unique_by=different) if is_list else items
    kinds = get_args(annotation)
    if any(get_origin(kind) is list for kind in kinds):
        return st.lists(st.sampled_from(["a", "b"]), max_size=2)
    literal = next((kind for kind in kinds if get_origin(kind) is Literal), None)
    if literal is not None:
        return st.sampled_from(get_args(literal)[:3])
    if Int64 in kinds:
        return st.sampled_from(["0", "1", "-2"])
    numbers = {bool: st.booleans(), Int32: st.integers(0, 1), Number: st.sampled_from([0, 0.5, 1.0, 1])}
    return next((numbers[kind] for kind in numbers if kind in kinds), WORDS)


def documents(message: type[Message], *, needed: bool = False) -> st.SearchStrategy[Document]:
    """Documents of a message with any of its fields; nulls except where an item of an array needs the field."""
    if message in SPECIAL:
        return SPECIAL[message]
    members = {name: values(field.annotation) for name, field in message.model_fields.items()}
    if message is PostalAddress:  # golden cases cover the address without one
        members["regionCode"] = st.sampled_from(["US", "DE"])
    required = REQUIRED.get(message, ())
    return st.fixed_dictionaries(
        {name: members[name] for name in required},
        optional={name: v if needed else v | st.none() for name, v in members.items() if name not in required},
    )


UNKNOWN = st.dictionaries(st.sampled_from(["wifi", "attributes"]), st.none() | WORDS | st.just({"k": {"l": [1]}}))
BODIES = st.tuples(documents(Location), UNKNOWN).map(lambda parts: {**parts[0], **parts[1]})
CURRENT = documents(Location).map(lambda document: {k: v for k, v in document.items() if v is not None})
PLANS = st.sampled_from([plan.syncable for plan in load_catalogue(None).values()] + [()])


@settings(max_examples=effort(200, 10_000), suppress_health_check=[HealthCheck.too_slow])
@given(current=CURRENT, body=BODIES, syncable=PLANS)
@pytest.mark.slow
def test_a_sync_repairs_every_difference_and_a_second_one_has_nothing_to_do(
    current: Document, body: Document, syncable: tuple[str, ...] | None
) -> None:
    sendable, filtered = profiles.split(body, syncable)
    checked = profiles.check(sendable)
    patch = profiles.plan_patch(current, checked)
    paths = [path for path, _ in profiles.leaves(body)]
    assert sorted(paths) == sorted([*patch.changed, *patch.unchanged, *filtered])
    assert patch.changed == [d["field"] for d in profiles.differences(body, current, filtered)]
    assert bool(patch.mask) == bool(patch.changed)
    after = apply(current, patch.body, patch.mask)
    assert profiles.differences(body, after, filtered) == []
    again = profiles.plan_patch(after, checked)
    assert (again.mask, again.changed, again.body) == ([], [], {})


@settings(max_examples=effort(200, 10_000), suppress_health_check=[HealthCheck.too_slow])
@given(current=CURRENT, body=BODIES)
@pytest.mark.slow
def test_a_patch_has_only_writable_fields(current: Document, body: Document) -> None:
    checked = profiles.check(profiles.split(body, None)[0])
    patch = profiles.plan_patch(current, checked)
    assert {path.split(".")[0] for path in patch.mask} <= set(WRITABLE)
    assert set(patch.body) <= {path.split(".")[0] for path in patch.mask}
    assert "null" not in json.dumps(patch.body)
    assert profiles.check(patch.body) == patch.body
    assert apply(current, {}, []) == current


@settings(max_examples=effort(200, 10_000), suppress_health_check=[HealthCheck.too_slow])
@given(BODIES, BODIES)
@pytest.mark.slow
def test_a_body_merged_twice_is_a_body_merged_once(base: Document, body: Document) -> None:
    once = profiles.merge(base, body)
    assert profiles.merge(once, body) == once
    assert profiles.differences(body, once, profiles.filtered_leaves(body, None)) == []


# A business that gives up its premises loses its address, whatever was asked for before: that is no drift to repair.
KEEPING = BODIES.map(lambda body: {name: member for name, member in body.items() if name != "serviceArea"})


@pytest.mark.slow
@settings(max_examples=effort(200, 10_000), suppress_health_check=[HealthCheck.too_slow])
@given(current=CURRENT, bodies=st.lists(KEEPING, min_size=1, max_size=3), syncable=PLANS)
def test_after_any_number_of_syncs_nothing_differs_and_the_last_one_repeated_changes_nothing(
    current: Document, bodies: list[Document], syncable: tuple[str, ...] | None
) -> None:
    current.pop("serviceArea", None)
    source: Document = {}
    for body in bodies:
        checked = profiles.check(profiles.split(body, syncable)[0])
        patch = profiles.plan_patch(current, checked)
        current, source = apply(current, patch.body, patch.mask), profiles.merge(source, body)
        filtered = profiles.filtered_leaves(source, syncable)
        assert profiles.differences(source, current, filtered) == []
        assert profiles.plan_patch(current, checked).mask == []
