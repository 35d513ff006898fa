"""D-122: values that mean the same are equal, in either order and wherever they are compared."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from profilesvc.domain import meaning, profiles

CASES = json.loads((Path(__file__).parents[2] / "data/fixtures/meaning_cases.json").read_text("utf-8"))
FIELDS = sorted({case["field"] for case in CASES})
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=9),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)


def _document(field: str, value: Any, region: str | None) -> dict[str, Any]:
    document: dict[str, Any] = {"storefrontAddress": {"regionCode": region}} if region else {}
    if field.startswith("storefrontAddress."):
        document = {"storefrontAddress": {"regionCode": "JP"}}
    for name in reversed(field.split(".")):
        value = {name: value}
    return profiles.merge(document, value)


@pytest.mark.parametrize("case", CASES, ids=[f"{case['field']}-{at}" for at, case in enumerate(CASES)])
def test_a_value_means_the_same_or_not(case: dict[str, Any]) -> None:
    field, one, other, region = (case[name] for name in ("field", "one", "other", "region"))
    for pair in ((one, other), (other, one)):
        assert meaning.same(field, *pair, (region, region)) is case["same"]
        assert meaning.same(field, *pair, (region, None)) is meaning.same(field, *pair, (None, region)) is case["same"]
        assert meaning.same(field, pair[0], pair[0], (region, region))


@pytest.mark.parametrize("case", CASES, ids=[f"{case['field']}-{at}" for at, case in enumerate(CASES)])
def test_another_spelling_is_no_difference_and_no_edit(case: dict[str, Any]) -> None:
    source, provider = (_document(case["field"], case[name], case["region"]) for name in ("one", "other"))
    if "a.b" in case["field"]:  # only fields of the format can be sent
        return
    found = [entry["field"] for entry in profiles.differences(source, provider, [])]
    patch = profiles.plan_patch(provider, source)
    drift = profiles.drift(source, provider, None)
    assert (not found) is (not drift) is case["same"], found
    assert (not patch.changed) is case["same"]
    assert bool(patch.mask) is not case["same"]


def test_the_region_of_each_address_counts() -> None:
    phones = "phoneNumbers.primaryPhone"
    assert meaning.same(phones, "030 901820", "+49 30 901820", ("DE", "JP"))
    assert not meaning.same(phones, "045-555-0170", "045-555-0170 ", ("JP", "US"))
    assert meaning.region_of({"storefrontAddress": None}, {"serviceArea": {"regionCode": "JP"}}) == "JP"
    assert meaning.region_of({"storefrontAddress": {"regionCode": 5}}, {"serviceArea": "x"}) is None


@given(st.sampled_from(FIELDS), JSON, JSON, st.none() | st.text(max_size=3))
def test_any_json_can_be_compared(field: str, one: Any, other: Any, region: str | None) -> None:
    assert meaning.same(field, one, other, (region, region)) is meaning.same(field, other, one, (region, region))
    assert meaning.same(field, one, one, (region, region))
    json.dumps(meaning.form(field, one, region))
