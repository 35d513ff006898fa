"""The quiet time and the digest by the clocks of a zone, also on the days when they change."""

import pytest

from profilesvc.domain.alerts import next_time, quiet_until
from profilesvc.domain.time import iso, parse_iso


@pytest.mark.parametrize(
    ("at", "zone", "after", "expected"),
    [
        ("08:00", "UTC", "2026-01-02T07:59:59Z", "2026-01-02T08:00:00.000Z"),
        ("08:00", "UTC", "2026-01-02T08:00:00Z", "2026-01-03T08:00:00.000Z"),
        ("08:00", "Europe/Berlin", "2026-01-02T07:30:00Z", "2026-01-03T07:00:00.000Z"),
        ("08:00", "Europe/Berlin", "2026-03-28T08:00:00Z", "2026-03-29T06:00:00.000Z"),
        ("02:30", "Europe/Berlin", "2026-03-28T12:00:00Z", "2026-03-29T01:30:00.000Z"),
        ("02:30", "Europe/Berlin", "2026-10-24T12:00:00Z", "2026-10-25T00:30:00.000Z"),
        ("23:30", "Pacific/Auckland", "2026-01-01T23:00:00Z", "2026-01-02T10:30:00.000Z"),
    ],
)
def test_the_next_time_on_the_clocks_of_a_zone(at: str, zone: str, after: str, expected: str) -> None:
    assert iso(next_time(at, zone, parse_iso(after))) == expected


@pytest.mark.parametrize(
    ("start", "end", "now", "expected"),
    [
        ("22:00", "07:00", "2026-01-02T21:59:59Z", None),
        ("22:00", "07:00", "2026-01-02T22:00:00Z", "2026-01-03T07:00:00.000Z"),
        ("22:00", "07:00", "2026-01-03T06:59:59Z", "2026-01-03T07:00:00.000Z"),
        ("22:00", "07:00", "2026-01-03T07:00:00Z", None),
        ("12:00", "13:00", "2026-01-03T12:30:00Z", "2026-01-03T13:00:00.000Z"),
        ("12:00", "12:00", "2026-01-03T12:00:00Z", None),
    ],
)
def test_a_quiet_time_may_contain_midnight(start: str, end: str, now: str, expected: str | None) -> None:
    until = quiet_until(start, end, "UTC", parse_iso(now))
    assert (None if until is None else iso(until)) == expected


@pytest.mark.parametrize(
    ("start", "end", "now", "expected"),
    [
        ("22:00", "02:30", "2026-10-25T00:10:00Z", "2026-10-25T00:30:00.000Z"),
        ("22:00", "02:30", "2026-10-25T00:40:00Z", None),
        ("22:00", "02:30", "2026-10-25T01:10:00Z", "2026-10-25T01:30:00.000Z"),
        ("22:00", "02:30", "2026-10-25T01:40:00Z", None),
        ("02:00", "02:45", "2026-10-25T01:30:00Z", "2026-10-25T01:45:00.000Z"),
        ("22:00", "07:00", "2026-10-25T01:30:00Z", "2026-10-25T06:00:00.000Z"),
        ("22:00", "02:30", "2026-03-29T00:10:00Z", "2026-03-29T01:30:00.000Z"),
        ("22:00", "02:30", "2026-03-29T01:00:00Z", None),
    ],
)
def test_a_quiet_time_ends_in_the_hour_that_clocks_repeat(start: str, end: str, now: str, expected: str | None) -> None:
    until = quiet_until(start, end, "Europe/Berlin", parse_iso(now))
    assert (None if until is None else iso(until)) == expected
