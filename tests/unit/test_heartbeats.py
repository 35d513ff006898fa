"""D-55: connection states, the hint and the history."""

from itertools import pairwise
from typing import Any, get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from profilesvc.contract.connection import ReasonHint
from profilesvc.domain.heartbeats import HISTORY, REJECTIONS, Known, Span, daily_contacts, history, reason, state
from profilesvc.domain.time import DAY, HOUR, MINUTE, iso

NOW = 1_800_000_000_000


@pytest.mark.parametrize(
    ("age", "expected"),
    [
        (0, "online"),
        (2 * HOUR, "online"),
        (2 * HOUR + 1, "idle"),
        (24 * HOUR - 1, "idle"),
        (24 * HOUR, "offline"),
        (-HOUR, "online"),
    ],
)
def test_edges_of_the_windows(age: int, expected: str) -> None:
    assert state(NOW - age, NOW) == expected


def test_never_seen_is_offline() -> None:
    assert state(None, NOW) == "offline"


AN_HOUR, A_DAY = NOW - HOUR, NOW - 2 * DAY  # the last heartbeat of a site that is online, and of one that is offline
ROLLED = {"secret_at": NOW - MINUTE, "retiring_until": NOW - MINUTE}
OVERLAP = {"secret_at": NOW - MINUTE, "retiring_until": NOW + DAY}
WRONG, REVOKED, ORIGIN = ((each, NOW - 10_000) for each in REJECTIONS)
REASONS: dict[str, tuple[dict[str, Any], str | None, int | None]] = {
    "new": ({}, "never_connected", None),
    "new, wrong secret": ({"rejection": WRONG}, "secret_rejected", NOW - 10_000),
    "new, other page": ({"rejection": ORIGIN}, "origin_not_allowed", NOW - 10_000),
    "new, held, wrong secret": ({"is_held": True, "rejection": WRONG}, "deactivated", None),
    "new, rolled": (ROLLED, "never_connected", None),
    "new, a token was used": ({"last_used_at": AN_HOUR}, "never_connected", None),
    "new, wrong secret before a token": ({"rejection": WRONG, "last_used_at": NOW}, "never_connected", None),
    "online": ({"last_heartbeat_at": AN_HOUR}, None, None),
    "online, held, mismatch": ({"last_heartbeat_at": NOW, "is_held": True, "mismatch": True}, "deactivated", None),
    "online, mismatch": ({"last_heartbeat_at": AN_HOUR, "mismatch": True}, "site_mismatch", None),
    "online, wrong secret of anyone": ({"last_heartbeat_at": AN_HOUR, "rejection": WRONG}, None, None),
    "online, other page": ({"last_heartbeat_at": AN_HOUR, "rejection": ORIGIN}, None, None),
    "online, rolled": ({"last_heartbeat_at": AN_HOUR, **ROLLED}, "secret_changed", NOW - MINUTE),
    "online, rolled, revoked token": (
        {"last_heartbeat_at": AN_HOUR, **ROLLED, "rejection": REVOKED},
        "secret_changed",
        NOW - MINUTE,
    ),
    "online, rolled with overlap": ({"last_heartbeat_at": AN_HOUR, **OVERLAP}, None, None),
    "online since the roll": ({"last_heartbeat_at": NOW, **ROLLED}, None, None),
    "online, new secret used": ({"last_heartbeat_at": AN_HOUR, **ROLLED, "last_used_at": NOW}, None, None),
    "online, revoked token": ({"last_heartbeat_at": AN_HOUR, "rejection": REVOKED}, "token_revoked", NOW - 10_000),
    "online since a revoked token": ({"last_heartbeat_at": NOW, "rejection": REVOKED}, None, None),
    "first secret": ({"last_heartbeat_at": A_DAY, "secret_at": A_DAY - DAY}, "was_online", A_DAY),
    "idle": ({"last_heartbeat_at": NOW - 3 * HOUR}, "was_online", NOW - 3 * HOUR),
    "offline": ({"last_heartbeat_at": A_DAY}, "was_online", A_DAY),
    "offline, wrong secret": ({"last_heartbeat_at": A_DAY, "rejection": WRONG}, "secret_rejected", NOW - 10_000),
    "offline, other page": ({"last_heartbeat_at": A_DAY, "rejection": ORIGIN}, "origin_not_allowed", NOW - 10_000),
    "offline, rolled": ({"last_heartbeat_at": A_DAY, **ROLLED}, "secret_changed", NOW - MINUTE),
    "offline, mismatch": ({"last_heartbeat_at": A_DAY, "mismatch": True}, "site_mismatch", None),
}


@pytest.mark.parametrize(("known", "hint", "at"), REASONS.values(), ids=REASONS)
def test_reason_is_the_first_that_is_known(known: dict[str, Any], hint: str | None, at: int | None) -> None:
    assert reason(Known(created_at=A_DAY - DAY, **known), NOW) == (hint, at)


def test_every_reason_is_in_the_table() -> None:
    assert {hint for _, hint, _ in REASONS.values()} == {None, *get_args(ReasonHint)}


def _entry(name: str, begin: int, end: int) -> dict[str, str]:
    return {"state": name, "from": iso(begin), "to": iso(end)}


def test_history_of_a_key_that_was_never_seen() -> None:
    assert history([], NOW, NOW - DAY) == [_entry("offline", NOW - DAY, NOW)]
    assert history([], NOW, NOW) == []


def test_history_has_every_state_in_order() -> None:
    created = NOW - 5 * DAY
    first, second = Span(created + HOUR, created + 4 * HOUR), Span(NOW - 6 * HOUR, NOW - 30 * MINUTE)
    assert history([first, second], NOW, created) == [
        _entry("offline", created, first.from_),
        _entry("online", first.from_, first.to + 2 * HOUR),
        _entry("idle", first.to + 2 * HOUR, first.to + DAY),
        _entry("offline", first.to + DAY, second.from_),
        _entry("online", second.from_, NOW),
    ]


def test_idle_ends_with_the_next_contact() -> None:
    first, second = Span(NOW - 10 * HOUR, NOW - 9 * HOUR), Span(NOW - 5 * HOUR, NOW - 4 * HOUR)
    assert history([first, second], NOW, first.from_) == [
        _entry("online", first.from_, first.to + 2 * HOUR),
        _entry("idle", first.to + 2 * HOUR, second.from_),
        _entry("online", second.from_, second.to + 2 * HOUR),
        _entry("idle", second.to + 2 * HOUR, NOW),
    ]


def test_history_goes_back_30_days_and_merges_neighbours() -> None:
    long, next_ = Span(NOW - 40 * DAY, NOW - 2 * HOUR), Span(NOW - HOUR, NOW)
    assert history([long, next_], NOW, NOW - 50 * DAY) == [_entry("online", NOW - HISTORY, NOW)]


@given(st.lists(st.integers(0, 45 * DAY), max_size=12), st.integers(0, 45 * DAY), st.integers(0, 45 * DAY))
def test_history_has_no_gaps_and_agrees_with_the_state(ages: list[int], created_ago: int, probe: int) -> None:
    created = NOW - created_ago
    beats = sorted(NOW - age for age in ages if age <= created_ago)
    spans: list[Span] = []
    for beat in beats:
        joined = spans and beat - spans[-1].to <= 2 * HOUR
        spans[-1:] = [Span(spans[-1].from_, beat)] if joined else [*spans[-1:], Span(beat, beat)]
    entries = history(spans, NOW, created)
    start = max(created, NOW - HISTORY)
    assert [e["from"] for e in entries] == [iso(start), *(e["to"] for e in entries[:-1])][: len(entries)]
    assert not entries or entries[-1]["to"] == iso(NOW)
    assert all(a["state"] != b["state"] for a, b in pairwise(entries))
    moment = NOW - probe
    told = [e["state"] for e in entries if e["from"] < iso(moment) < e["to"]]
    assert told in ([], [state(max((b for b in beats if b <= moment), default=None), moment)])


@given(
    st.lists(
        st.tuples(
            st.sampled_from(["a", "b", "c"]),
            st.integers(0, 40 * DAY),
            st.sampled_from([0, HOUR, DAY, 3 * DAY, 50 * DAY]),
        )
    )
)
def test_contacts_are_counted_once_for_each_site_and_day(drawn: list[tuple[str, int, int]]) -> None:
    now = 40 * DAY + 5 * HOUR
    runs = [(site, Span(start, start + length)) for site, start, length in drawn]
    counted = [
        len({site for site, run in runs if run.from_ < (day + 1) * DAY and run.to >= day * DAY})
        for day in range(11, 41)
    ]
    assert daily_contacts(runs, now, 30) == counted
