"""Opening hours: the minutes that periods cover, the rules for what is written, and the texts of people."""

import json
import re
from datetime import date
from typing import Any

import pytest

from profilesvc.dashboard.words import hours
from profilesvc.domain.errors import problems_of
from profilesvc.domain.hours import DAY, WEEK, faults, weekly_minutes
from profilesvc.domain.profiles import check
from support.repository import ROOT

NINE, SIX = {"hours": 9}, {"hours": 18}


def period(open_day: str, opens: Any, close_day: str, closes: Any) -> dict[str, Any]:
    return {"openDay": open_day, "openTime": opens, "closeDay": close_day, "closeTime": closes}


MORNING = period("MONDAY", NINE, "MONDAY", {"hours": 12, "minutes": 30})
EVENING = period("TUESDAY", {"hours": 17}, "TUESDAY", {"hours": 22})


@pytest.mark.parametrize(
    ("periods", "minutes"),
    [
        ([], ()),
        ([MORNING], ((540, 750),)),
        ([{"openDay": "MONDAY", "closeDay": "MONDAY", "closeTime": {"hours": 24}}], ((0, DAY),)),
        ([period("MONDAY", None, "MONDAY", {"hours": 24, "minutes": None})], ((0, DAY),)),
        ([period("MONDAY", {}, "TUESDAY", {})], ((0, DAY),)),
        ([period("MONDAY", {"hours": 24}, "TUESDAY", {"hours": 2})], ((DAY, DAY + 120),)),
        ([EVENING, MORNING], ((540, 750), (DAY + 1020, DAY + 1320))),
        ([period("MONDAY", NINE, "MONDAY", SIX), period("MONDAY", SIX, "MONDAY", {"hours": 20})], ((540, 1200),)),
        (
            [period("MONDAY", NINE, "MONDAY", SIX), period("MONDAY", {"hours": 10}, "MONDAY", {"hours": 11})],
            ((540, 1080),),
        ),
        ([period("FRIDAY", {"hours": 17}, "SATURDAY", {"hours": 1})], ((4 * DAY + 1020, 5 * DAY + 60),)),
        ([period("SUNDAY", {"hours": 22}, "MONDAY", {"hours": 2})], ((0, 120), (6 * DAY + 1320, WEEK))),
        ([period("SUNDAY", {"hours": 22}, "SUNDAY", {"hours": 24})], ((6 * DAY + 1320, WEEK),)),
        ([period("SUNDAY", {"hours": 22}, "MONDAY", {})], ((6 * DAY + 1320, WEEK),)),
        ([period("MONDAY", {"hours": 17}, "MONDAY", {"hours": 1})], ((0, 60), (1020, WEEK))),
        ([period("FRIDAY", NINE, "THURSDAY", NINE)], ((0, 3 * DAY + 540), (4 * DAY + 540, WEEK))),
        ([period("MONDAY", {}, "SUNDAY", {"hours": 24})], ((0, WEEK),)),
    ],
)
def test_the_minutes_of_a_week(periods: list[Any], minutes: tuple[tuple[int, int], ...]) -> None:
    assert weekly_minutes(periods) == minutes
    assert weekly_minutes(periods[::-1]) == minutes


@pytest.mark.parametrize(
    "periods",
    [
        None,
        "closed",
        {"periods": []},
        [None],
        [[]],
        [{}],
        [period("DAY_OF_WEEK_UNSPECIFIED", NINE, "MONDAY", SIX)],
        [period("MONDAY", NINE, "monday", SIX)],
        [period("MONDAY", NINE, ["MONDAY"], SIX)],  # type: ignore[arg-type]
        [period("MONDAY", {"hours": 25}, "MONDAY", SIX)],
        [period("MONDAY", {"hours": 24, "minutes": 1}, "TUESDAY", SIX)],
        [period("MONDAY", {"hours": -1}, "MONDAY", SIX)],
        [period("MONDAY", {"minutes": 60}, "MONDAY", SIX)],
        [period("MONDAY", {"hours": 9, "seconds": 1}, "MONDAY", SIX)],
        [period("MONDAY", {"hours": 9.5}, "MONDAY", SIX)],
        [period("MONDAY", {"hours": True}, "MONDAY", SIX)],
        [period("MONDAY", {"hours": "9"}, "MONDAY", SIX)],
        [period("MONDAY", "09:00", "MONDAY", SIX)],
        [period("MONDAY", NINE, "MONDAY", NINE)],
        [period("MONDAY", {"hours": 24}, "TUESDAY", {})],
        [period("SUNDAY", {"hours": 24}, "MONDAY", {})],
    ],
)
def test_a_period_that_cannot_be_read(periods: Any) -> None:
    with pytest.raises(ValueError, match="must"):
        weekly_minutes(periods)


def day(year: int = 2026, month: int = 12, number: int = 24) -> dict[str, int]:
    return {"year": year, "month": month, "day": number}


def special(opens: Any = NINE, closes: Any = SIX, **more: Any) -> dict[str, Any]:
    return {"startDate": day(), "openTime": opens, "closeTime": closes, **more}


CLOSED = {"startDate": day(), "closed": True}
SCHEDULE = "INVALID_TIME_SCHEDULE"
WEEKS: list[tuple[list[Any], list[tuple[str, str]]]] = [
    ([MORNING, EVENING], []),
    (
        [period("FRIDAY", {"hours": 17}, "SATURDAY", {"hours": 1}), period("SATURDAY", {"hours": 1}, "SATURDAY", SIX)],
        [],
    ),
    ([period("MONDAY", {}, "SUNDAY", {"hours": 24})], []),
    ([period("MONDAY", NINE, "MONDAY", {"hours": 17, "seconds": 30})], []),
    ([period("SUNDAY", {"hours": 22}, "MONDAY", {"hours": 9}), MORNING], []),
    ([period("FRIDAY", {"hours": 17}, "FRIDAY", {"hours": 1})], [("0.closeTime", "closeDay is the next day")]),
    ([MORNING, period("FRIDAY", NINE, "FRIDAY", NINE)], [("1.closeTime", "must be after openTime")]),
    ([period("FRIDAY", {"hours": 24}, "SATURDAY", {})], [("0.closeTime", "must not be the time at which it opens")]),
    ([MORNING, period("MONDAY", {"hours": 12}, "MONDAY", SIX)], [("1", "must not overlap regularHours.periods.0")]),
    ([period("MONDAY", {"hours": 12}, "MONDAY", SIX), MORNING], [("1", "must not overlap regularHours.periods.0")]),
    ([MORNING, MORNING], [("1", "must not overlap regularHours.periods.0")]),
    ([EVENING, MORNING, period("SUNDAY", {"hours": 22}, "MONDAY", SIX)], [("2", "regularHours.periods.1")]),
    ([period("SUNDAY", {"hours": 22}, "TUESDAY", SIX), EVENING], [("1", "must not overlap regularHours.periods.0")]),
    ([period("DAY_OF_WEEK_UNSPECIFIED", NINE, "MONDAY", SIX)], [("0.openDay", "must be a day of the week")]),
    ([period("MONDAY", NINE, "MONDAY", {"hours": 24, "seconds": 1})], [("0.closeTime", "00:00 to 24:00")]),
]
DATES: list[tuple[list[Any], list[tuple[str, str]]]] = [
    ([special()], []),
    ([special(endDate=day())], []),
    ([special({"hours": 13}, {"hours": 11, "minutes": 59}, endDate=day(number=25))], []),
    ([special({}, {"hours": 24})], []),
    ([special({}, {}, endDate=day(number=25))], []),
    ([special(NINE, {"hours": 12}), special({"hours": 12}, SIX)], []),
    ([special({"hours": 20}, {"hours": 4}, endDate=day(number=25)), {**CLOSED, "startDate": day(number=25)}], []),
    ([{**CLOSED, "endDate": {"year": 1}, "closeTime": NINE}], []),
    ([special({"hours": 20}, {"hours": 4}, startDate=day(number=31), endDate=day(2027, 1, 1))], []),
    ([{"startDate": day(), "openTime": NINE}], [("0.closeTime", "is required, unless")]),
    ([{"startDate": day(), "closeTime": SIX, "closed": False}], [("0.openTime", "is required, unless")]),
    ([{"startDate": day()}], [("0.openTime", "is required"), ("0.closeTime", "is required")]),
    ([special(endDate=day(number=28))], [("0.endDate", "must be startDate or the day after it")]),
    ([special(endDate=day(number=23))], [("0.endDate", "must be startDate or the day after it")]),
    ([special({"hours": 13}, {"hours": 12}, endDate=day(number=25))], [("0.closeTime", "must be 11:59 or earlier")]),
    ([special({"hours": 13}, {"hours": 11, "minutes": 59})], [("0.closeTime", "must be after openTime")]),
    ([special(NINE, NINE)], [("0.closeTime", "must be after openTime")]),
    ([special({"hours": 9}, {"hours": 9}, endDate=day(number=25))], [("0.closeTime", "must be less than 24 hours")]),
    ([special({}, {"hours": 1}, endDate=day(number=25))], [("0.closeTime", "must be less than 24 hours")]),
    ([{"startDate": day(2027, 2, 30), "closed": True}], [("0.startDate", "must be a date that exists")]),
    ([special(endDate=day(2026, 11, 31))], [("0.endDate", "must be a date that exists")]),
    ([{"startDate": {"month": 12, "day": 24}, "closed": True}], [("0.startDate", "must have a year")]),
    ([{"startDate": {"year": 0, "month": 12, "day": 24}, "closed": True}], [("0.startDate", "must have a year")]),
    ([{"closed": True}], [("0.startDate", "must have a year")]),
    ([special(), special({"hours": 12}, {"hours": 20})], [("1", "must not overlap specialHours.specialHourPeriods.0")]),
    ([CLOSED, special()], [("1", "must not overlap specialHours.specialHourPeriods.0")]),
    ([CLOSED, CLOSED], [("1", "must not overlap specialHours.specialHourPeriods.0")]),
    (
        [special({"hours": 20}, {"hours": 4}, endDate=day(number=25)), special({}, NINE, startDate=day(number=25))],
        [("1", "must")],
    ),
]
CASES = [
    *(({"regularHours": {"periods": one}}, "regularHours.periods", wanted) for one, wanted in WEEKS),
    *(
        ({"specialHours": {"specialHourPeriods": one}}, "specialHours.specialHourPeriods", wanted)
        for one, wanted in DATES
    ),
    (
        {"moreHours": [{"periods": [MORNING]}, {"periods": [MORNING, MORNING]}]},
        "moreHours",
        [("1.periods.1", "moreHours.1.periods.0")],
    ),
    ({"moreHours": [{"periods": [MORNING]}, {"periods": [MORNING]}]}, "moreHours", []),
    ({"openInfo": {"openingDate": {"year": 2019, "month": 4}}}, "openInfo", []),
    ({"openInfo": {"openingDate": {"year": 2019}}}, "openInfo", []),
    ({"openInfo": {"openingDate": {"month": 2, "day": 3}}}, "openInfo", [("openingDate", "must have a year")]),
    (
        {"openInfo": {"openingDate": {"year": 2019, "day": 3}}},
        "openInfo",
        [("openingDate", "must have a year, a month")],
    ),
    ({"openInfo": {"openingDate": day(2027, 2, 30)}}, "openInfo", [("openingDate", "must be a date that exists")]),
    ({"regularHours": None, "specialHours": {}, "moreHours": [{"periods": None}], "openInfo": None}, "", []),
]


@pytest.mark.parametrize(("location", "path", "wanted"), CASES)
def test_a_rule_names_the_field(location: dict[str, Any], path: str, wanted: list[tuple[str, str]]) -> None:
    found = faults(location)
    assert [fault.field for fault in found] == [f"{path}.{field}" for field, _ in wanted]
    assert [text for fault, (_, text) in zip(found, wanted, strict=True) if text not in fault.problem] == []


def test_a_write_is_checked_and_each_field_has_one_problem() -> None:
    broken = period("MONDAY", {"hours": 25}, "DAY_OF_WEEK_UNSPECIFIED", NINE)
    hours = {"periods": [broken, {"openDay": "MONDAY"}, period("FRIDAY", SIX, "FRIDAY", NINE)]}
    found = [field for _, field, _ in problems_of(lambda: check({"regularHours": hours}, date(2026, 1, 2)))]
    names = ("0.openTime.hours", "1.openTime", "1.closeDay", "1.closeTime", "0.closeDay", "2.closeTime")
    assert found == [f"regularHours.periods.{name}" for name in names]


TEXTS = json.loads((ROOT / "data/fixtures/hours_cases.json").read_text("utf-8"))


def in_a_row(periods: list[Any]) -> str:
    return " ".join(filter(None, (hours.long_hours(one) for one in periods)))


@pytest.mark.parametrize("case", TEXTS["week"], ids=lambda case: f"{case['day'][:3]} {case['text']}")
def test_the_hours_of_a_day_as_text(case: dict[str, Any]) -> None:
    """The cases are those of the plugin and of the TypeScript client."""
    if "problem" in case:
        with pytest.raises(ValueError, match=f"^{re.escape(case['problem'])}$"):
            hours.periods_of(case["day"], case["text"])
        return
    periods = hours.periods_of(case["day"], case["text"])
    assert (periods, hours.day_hours(periods, case["day"])) == (case["periods"], case["shown"])
    assert in_a_row(periods) == case.get("long", "")
    assert weekly_minutes(hours.periods_of(case["day"], case["shown"])) == weekly_minutes(periods)
    assert faults({"regularHours": {"periods": periods}}) == []


@pytest.mark.parametrize("case", TEXTS["dates"], ids=lambda case: case["text"])
def test_special_hours_as_text(case: dict[str, Any]) -> None:
    if "problem" in case:
        with pytest.raises(ValueError, match=f"^{re.escape(case['problem'])}$"):
            hours.dates_of(case["text"])
        return
    periods = hours.dates_of(case["text"])
    assert (periods, hours.special_hours(periods)) == (case["periods"], case["shown"])
    assert in_a_row(periods) == case.get("long", "")
    assert hours.dates_of(case["shown"]) == periods
    assert faults({"specialHours": {"specialHourPeriods": periods}}) == []
