"""Opening hours: the minutes that periods cover."""

from typing import Any

import pytest

from profilesvc.domain.hours import DAY, WEEK, weekly_minutes

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
def test_what_cannot_be_read(periods: Any) -> None:
    with pytest.raises(ValueError, match="must"):
        weekly_minutes(periods)
