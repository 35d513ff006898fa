"""Opening hours in the provider's format: the minutes that periods cover."""

from profilesvc.contract.json import JsonObject

DAYS = ("MONDAY", "TUESDAY", "WEDNESDAY", "THURSDAY", "FRIDAY", "SATURDAY", "SUNDAY")
DAY = 24 * 60
WEEK = len(DAYS) * DAY
TIMES = "must be a time from 00:00 to 24:00, in whole minutes"
_UNITS = {"hours": 24, "minutes": 59, "seconds": 59, "nanos": 999_999_999}


def minutes_of(time: object) -> int:
    """Return the minutes from midnight to a TimeOfDay, 0 to 1440. The provider leaves out what is 0.

    Raises:
        ValueError: It is not a time from 00:00 to 24:00, in whole minutes.
    """
    parts = {} if time is None else time
    if not isinstance(parts, dict) or not all(_is_unit(parts.get(name) or 0, most) for name, most in _UNITS.items()):
        raise ValueError(TIMES)
    minutes = int((parts.get("hours") or 0) * 60 + (parts.get("minutes") or 0))
    if minutes > DAY or parts.get("seconds") or parts.get("nanos"):
        raise ValueError(TIMES)
    return minutes


def weekly_minutes(periods: object) -> tuple[tuple[int, int], ...]:
    """Return the minutes of the week that TimePeriods cover, as sorted intervals from Monday 00:00.

    The intervals are half-open, at least a minute apart, and between 0 and 10,080. A period that closes before it opens
    ends in the next week, so that Sunday 22:00 to Monday 02:00 gives two intervals. 24:00 is 00:00 of the next day.

    Raises:
        ValueError: Something is no array of TimePeriods, or a period closes at the minute in which it opens.
    """
    if not isinstance(periods, list | tuple):
        raise ValueError("must be an array of periods")  # noqa: TRY004 - one kind of error for values
    covered: list[tuple[int, int]] = []
    for one in periods:
        start, end = span(one)
        covered += [(start, end)] if end <= WEEK else [(start, WEEK), (0, end - WEEK)]
    return joined(covered)


def span(period: object) -> tuple[int, int]:
    """Return when a TimePeriod opens and closes, in minutes from Monday 00:00. After 10,080 is the next week.

    Raises:
        ValueError: It is no TimePeriod, or closes at the minute in which it opens.
    """
    if not isinstance(period, dict):
        raise ValueError("must be a period")  # noqa: TRY004 - one kind of error for values
    start, end = _moment(period, "open"), _moment(period, "close")
    if (end - start) % WEEK == 0 and end - start != WEEK:
        raise ValueError("must not close when it opens")
    start %= WEEK
    return start, end if end > start else end + WEEK


def joined(intervals: list[tuple[int, int]]) -> tuple[tuple[int, int], ...]:
    """Return sorted intervals without overlaps. Those that touch become one."""
    result: list[tuple[int, int]] = []
    for start, end in sorted(intervals):
        if result and start <= result[-1][1]:
            result[-1] = (result[-1][0], max(end, result[-1][1]))
        else:
            result.append((start, end))
    return tuple(result)


def _moment(period: JsonObject, end: str) -> int:
    day = period.get(f"{end}Day")
    if day not in DAYS:
        raise ValueError("must name a day of the week")
    return DAYS.index(day) * DAY + minutes_of(period.get(f"{end}Time"))


def _is_unit(value: object, most: int) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= most
