"""The three-way reading of a comparison: which side changed a field."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from profilesvc.client import ProfileClient, verdicts
from profilesvc.contract.sync import SyncComparison
from profilesvc.domain import profiles
from support.clients.sdk import BOOKS, PIER, Service

PHONE = "phoneNumbers.primaryPhone"


def compared(source: Any, provider: Any, last: Any, filtered: list[str] | None = None) -> SyncComparison:
    """As the service makes it."""
    differences = profiles.differences(source, provider, filtered or [])
    members = {"source": source, "provider": provider, "lastSync": last, "differences": differences}
    return SyncComparison.model_validate({**members, "filtered": filtered or []})


@pytest.mark.parametrize(
    ("source", "provider", "last", "verdict"),
    [
        ("a", "a", "a", "in_step"),
        ("b", "b", "a", "in_step"),
        ("a", "a", None, "in_step"),
        ("b", "a", "a", "changed_here"),
        ("b", None, None, "changed_here"),
        (None, "a", "a", "changed_here"),
        ("a", "b", "a", "changed_at_provider"),
        ("a", None, "a", "changed_at_provider"),
        ("b", "c", "a", "changed_in_both"),
        ("a", "b", None, "changed_in_both"),
        ("", "b", None, "changed_at_provider"),
    ],
)
def test_names_the_side_that_changed_since_the_last_sync(source: Any, provider: Any, last: Any, verdict: str) -> None:
    def document(value: Any) -> Any:
        return {"phoneNumbers": {"primaryPhone": value}} if value is not None else {}

    given_source = {"phoneNumbers": {"primaryPhone": source}}
    (leaf,) = verdicts(compared(given_source, document(provider), document(last)))
    assert (leaf.field, leaf.source, leaf.provider, leaf.last_sync) == (PHONE, source, provider, last)
    assert leaf.verdict == verdict


def test_keeps_the_order_of_the_source_and_names_filtered_fields() -> None:
    source = {"title": "T", "menu": {"url": "m"}, "labels": ["a", "b"], "phoneNumbers": {"primaryPhone": "1"}}
    provider = {"title": "U", "labels": ["a", "b"], "phoneNumbers": {"primaryPhone": "2"}}
    last = {"title": "T", "phoneNumbers": {"primaryPhone": "2"}}
    told = [(leaf.field, leaf.verdict) for leaf in verdicts(compared(source, provider, last, ["menu.url"]))]
    assert told == [
        ("title", "changed_at_provider"),
        ("menu.url", "filtered"),
        ("labels", "in_step"),
        (PHONE, "changed_here"),
    ]


def test_a_field_that_the_provider_leaves_out_is_not_a_change() -> None:
    source = {"regularHours": {"periods": [{"openDay": "MONDAY", "openTime": {"hours": 9}}]}}
    last = {"regularHours": {"periods": [{"openDay": "MONDAY", "openTime": {"hours": 8, "minutes": 0}}]}}
    provider = {"regularHours": {"periods": [{"openDay": "MONDAY", "openTime": {"hours": 8}}]}}
    assert [leaf.verdict for leaf in verdicts(compared(source, provider, last))] == ["changed_here"]


_values: st.SearchStrategy[Any] = st.sampled_from([None, "", "a", "b", ["a"], [], {}, True])
_members = st.dictionaries(st.sampled_from(["title", "websiteUri", "labels", "other"]), _values, max_size=4)
_documents = st.fixed_dictionaries({}, optional={"title": _values, "profile": _members, "labels": _values})


@given(_documents, _documents, _documents)
def test_agrees_with_the_differences_of_the_service(source: Any, provider: Any, last: Any) -> None:
    made = compared(source, provider, last)
    told = verdicts(made)
    assert [leaf.field for leaf in told] == [path for path, _ in profiles.leaves(source)]
    assert [leaf.field for leaf in told if leaf.verdict != "in_step"] == [d.field for d in made.differences]
    assert verdicts(made) == told


def test_a_phone_that_drifts_is_read_over_the_network(service: Service, alice: ProfileClient) -> None:
    def current() -> dict[str, str]:
        return {leaf.field: leaf.verdict for leaf in verdicts(alice.compare(PIER))}

    alice.sync(PIER, {"phoneNumbers": {"primaryPhone": "+31 20 555 0100"}, "title": "Pier"})
    assert {current()[PHONE], current()["title"]} == {"in_step"}
    change = {"phoneNumbers": {"primaryPhone": "+31 20 555 0199"}}
    service.provider("PUT", "/state", {"locations": {PIER: change}})
    assert current()[PHONE] == "changed_at_provider"
    assert current()["title"] == "in_step"


def test_the_differences_of_the_demo_data_have_a_verdict(alice: ProfileClient) -> None:
    told = {leaf.field: leaf.verdict for leaf in verdicts(alice.compare(BOOKS)) if leaf.verdict != "in_step"}
    assert list(told) == [PHONE]
