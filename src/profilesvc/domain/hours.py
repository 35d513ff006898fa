"""Opening hours in the provider's format: the minutes that periods cover, and the rules that the provider documents.

The rules are those of the prose of TimePeriod, SpecialHourPeriod and OpenInfo, which no type can express (D-126). They
apply to what is written. What is stored or returned by the provider is shown whatever it holds.
"""

import datetime
from collections.abc import Iterator
from typing import NamedTuple

from profilesvc.contract.json import JsonObject

DAYS = ("MONDAY", "TUESDAY", "WEDNESDAY", "THURSDAY", "FRIDAY", "SATURDAY", "SUNDAY")
DAY = 24 * 60
WEEK = len(DAYS) * DAY
OVERLAP = "must not overlap"
_MINUTE = 60
_DAY_SECONDS, _WEEK_SECONDS = DAY * _MINUTE, WEEK * _MINUTE
_LATEST = 12 * 60 * _MINUTE  # special hours end before noon of the next day
_UNITS = {"hours": 24, "minutes": 59, "seconds": 60, "nanos": 0}
_TIMES = "must be a time from 00:00 to 24:00"
# The provider's reasons.
_VALUE, _SCHEDULE = "INVALID_HOURS_VALUE", "INVALID_TIME_SCHEDULE"
_OVERLAP = "OVERLAPPED_SPECIAL_HOURS"
_MISSING_PART, _OPENED = "OPENING_DATE_MISSING_YEAR_OR_MONTH", "INVALID_BUSINESS_OPENING_DATE"

Span = tuple[int, int]


class Fault(NamedTuple):
    """A rule that a Location violates: the dotted path of the field, the rule, and the provider's reason."""

    field: str
    problem: str
    reason: str


def weekly_minutes(periods: object) -> tuple[Span, ...]:
    """Return the minutes of the week that TimePeriods cover, as sorted intervals from Monday 00:00.

    The intervals are half-open, at least a minute apart, and between 0 and 10,080. A period that closes before it opens
    ends in the next week, so that Sunday 22:00 to Monday 02:00 gives two intervals. 24:00 is 00:00 of the next day.

    Raises:
        ValueError: Something is no array of TimePeriods, is not in whole minutes, or closes when it opens.
    """
    if not isinstance(periods, list | tuple):
        raise ValueError("must be an array of periods")  # noqa: TRY004 - one kind of error for values
    covered: list[Span] = []
    for one in periods:
        covered += _pieces(_span(one))
    if any(second % _MINUTE for span in covered for second in span):
        raise ValueError("must be in whole minutes")
    return _joined([(start // _MINUTE, end // _MINUTE) for start, end in covered])


def faults(location: JsonObject) -> list[Fault]:
    """Return the rules of hours and of the opening date that a Location violates. Its types must be valid."""
    problems = [*_week_faults((location.get("regularHours") or {}).get("periods") or [], "regularHours.periods")]
    for index, kind in enumerate(location.get("moreHours") or []):
        problems += _week_faults(kind.get("periods") or [], f"moreHours.{index}.periods")
    special = (location.get("specialHours") or {}).get("specialHourPeriods") or []
    problems += _dates_faults(special, "specialHours.specialHourPeriods")
    opened = (location.get("openInfo") or {}).get("openingDate")
    return [*problems, *_opening_faults(opened, "openInfo.openingDate")] if opened is not None else problems


def _week_faults(periods: list[JsonObject], path: str) -> Iterator[Fault]:
    spans: list[tuple[int, Span]] = []
    for index, one in enumerate(periods):
        if broken := [*_unreadable(one, f"{path}.{index}")]:
            yield from broken
            continue
        if one["openDay"] == one["closeDay"] and _seconds(one.get("closeTime")) <= _seconds(one.get("openTime")):
            rule = "must be after openTime; after midnight, closeDay is the next day"
            yield Fault(f"{path}.{index}.closeTime", rule, _SCHEDULE)
            continue
        try:
            spans += [(index, piece) for piece in _pieces(_span(one))]
        except ValueError as error:
            yield Fault(f"{path}.{index}.closeTime", str(error), _SCHEDULE)
    yield from _overlaps(spans, path, _SCHEDULE)


def _unreadable(period: JsonObject, path: str) -> Iterator[Fault]:
    for name in ("openDay", "closeDay"):
        if period.get(name) not in DAYS:
            yield Fault(f"{path}.{name}", "must be a day of the week", _VALUE)
    yield from _wrong_times(period, path)


def _wrong_times(period: JsonObject, path: str) -> Iterator[Fault]:
    for name in ("openTime", "closeTime"):
        try:
            _seconds(period.get(name))
        except ValueError as error:
            yield Fault(f"{path}.{name}", str(error), _VALUE)


def _dates_faults(periods: list[JsonObject], path: str) -> Iterator[Fault]:
    spans: list[tuple[int, Span]] = []
    days: dict[int, list[tuple[int, bool]]] = {}
    for index, one in enumerate(periods):
        own = [*_date_faults(one, f"{path}.{index}")]
        yield from own
        if not own:
            days.setdefault(_ordinal(one["startDate"]), []).append((index, bool(one.get("closed"))))
            spans += [] if one.get("closed") else [(index, _special_span(one))]
    yield from _overlaps(spans, path, _OVERLAP)
    for entries in days.values():
        (first, _), *others = entries
        for index, _ in others if any(is_closed for _, is_closed in entries) else []:
            yield Fault(f"{path}.{index}", f"{OVERLAP} {path}.{first}", _OVERLAP)


def _date_faults(period: JsonObject, path: str) -> Iterator[Fault]:
    """Check a period of special hours. The provider ignores the other fields of one that is closed."""
    if problem := _wrong_date(period.get("startDate")):
        yield Fault(f"{path}.startDate", problem, _VALUE)
        return
    if period.get("closed"):
        return
    missing = [name for name in ("openTime", "closeTime") if period.get(name) is None]
    yield from (Fault(f"{path}.{name}", "is required, unless `closed` is true", _VALUE) for name in missing)
    end = period.get("endDate")
    problem = _wrong_date(end) if end is not None else None
    if not problem and end is not None and _ordinal(end) - _ordinal(period["startDate"]) not in (0, 1):
        problem = "must be startDate or the day after it"
    if problem:
        yield Fault(f"{path}.endDate", problem, _SCHEDULE)
    wrong = [*_wrong_times(period, path)]
    yield from wrong
    if not (missing or problem or wrong) and (rule := _wrong_close(period)):
        yield Fault(f"{path}.closeTime", rule, _SCHEDULE)


def _wrong_close(period: JsonObject) -> str | None:
    """Return the rule that the end of special hours violates. A whole day, 00:00 to 24:00, is valid (D-126)."""
    start, end = _special_span(period)
    midnight = _ordinal(period["startDate"]) * _DAY_SECONDS
    if end <= start:
        return "must be after openTime; after midnight, endDate is the next day"
    if end - midnight - _DAY_SECONDS >= _LATEST:
        return "must be 11:59 or earlier, if endDate is the day after startDate"
    if end - start >= _DAY_SECONDS and (start, end) != (midnight, midnight + _DAY_SECONDS):
        return "must be less than 24 hours after openTime"
    return None


def _opening_faults(date: JsonObject, path: str) -> Iterator[Fault]:
    """Check the opening date, whose day may be missing, and the month with it."""
    if not date.get("year"):
        yield Fault(path, "must have a year", _MISSING_PART)
    elif date.get("day") and (problem := _wrong_date(date)):
        yield Fault(path, problem, _OPENED)


def _wrong_date(date: JsonObject | None) -> str | None:
    if not date or not all(date.get(part) for part in ("year", "month", "day")):
        return "must have a year, a month and a day"
    try:
        _ordinal(date)
    except (OverflowError, ValueError):
        return "must be a date that exists"
    return None


def _ordinal(date: JsonObject) -> int:
    return datetime.date(date["year"], date["month"], date["day"]).toordinal()


def _special_span(period: JsonObject) -> Span:
    start = _ordinal(period["startDate"]) * _DAY_SECONDS
    end = _ordinal(period.get("endDate") or period["startDate"]) * _DAY_SECONDS
    return start + _seconds(period.get("openTime")), end + _seconds(period.get("closeTime"))


def _overlaps(spans: list[tuple[int, Span]], path: str, reason: str) -> Iterator[Fault]:
    """Yield a fault for each period that overlaps an earlier one in time. The later one in the array is named."""
    last: tuple[int, int] | None = None  # when the hours so far end, and whose end this is
    reported: set[int] = set()
    for index, (start, end) in sorted(spans, key=lambda pair: pair[1]):
        if last and start < last[0] and index != last[1]:
            first, second = sorted((index, last[1]))
            if second not in reported:
                yield Fault(f"{path}.{second}", f"{OVERLAP} {path}.{first}", reason)
            reported.add(second)
        last = max(last or (end, index), (end, index))


def _span(period: object) -> Span:
    """Return when a TimePeriod opens and closes, in seconds from Monday 00:00. After the week is the next one."""
    if not isinstance(period, dict):
        raise ValueError("must be a period")  # noqa: TRY004 - one kind of error for values
    start, end = _moment(period, "open"), _moment(period, "close")
    if (end - start) % _WEEK_SECONDS == 0 and end - start != _WEEK_SECONDS:
        raise ValueError("must not be the time at which it opens")
    start %= _WEEK_SECONDS
    return start, end if end > start else end + _WEEK_SECONDS


def _moment(period: JsonObject, side: str) -> int:
    day = period.get(f"{side}Day")
    if day not in DAYS:
        raise ValueError("must name a day of the week")
    return DAYS.index(day) * _DAY_SECONDS + _seconds(period.get(f"{side}Time"))


def _seconds(time: object) -> int:
    """Return the seconds from midnight to a TimeOfDay. The provider leaves out what is 0."""
    parts = {} if time is None else time
    if not isinstance(parts, dict) or not all(_is_unit(parts.get(name) or 0, most) for name, most in _UNITS.items()):
        raise ValueError(_TIMES)
    hours, minutes, seconds = (int(parts.get(name) or 0) for name in ("hours", "minutes", "seconds"))
    total = (hours * 60 + minutes) * _MINUTE + seconds
    if total > _DAY_SECONDS:
        raise ValueError(_TIMES)
    return total


def _is_unit(value: object, most: int) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= most


def _pieces(span: Span) -> list[Span]:
    """Return the parts of a span in the week: two, if it goes on after Sunday."""
    start, end = span
    return [span] if end <= _WEEK_SECONDS else [(start, _WEEK_SECONDS), (0, end - _WEEK_SECONDS)]


def _joined(intervals: list[Span]) -> tuple[Span, ...]:
    """Return sorted intervals without overlaps. Those that touch become one."""
    result: list[Span] = []
    for start, end in sorted(intervals):
        if result and start <= result[-1][1]:
            result[-1] = (result[-1][0], max(end, result[-1][1]))
        else:
            result.append((start, end))
    return tuple(result)


def special_minutes(periods: object) -> tuple[tuple[int, tuple[Span, ...]], ...]:
    """Return the minutes of each date that SpecialHourPeriods cover, by the ordinal of the date; none if it is closed.

    The minutes count from 00:00 of the start date, so those after midnight are beyond 1,440.

    Raises:
        ValueError: Something is no array of SpecialHourPeriods, is not in whole minutes, closes before it opens, or
            opens on a date that is closed.
    """
    if not isinstance(periods, list | tuple):
        raise ValueError("must be an array of periods")  # noqa: TRY004 - one kind of error for values
    dates: dict[int, list[Span]] = {}
    closed: set[int] = set()
    for one in periods:
        if not isinstance(one, dict) or _wrong_date(one.get("startDate")):
            raise ValueError("must have a date")
        date = _ordinal(one["startDate"])
        covered = dates.setdefault(date, [])
        if one.get("closed"):
            closed.add(date)
            continue
        start, end = (second - date * _DAY_SECONDS for second in _special_span(one))
        if start % _MINUTE or end % _MINUTE or end <= start:
            raise ValueError("must be in whole minutes, and close after it opens")
        covered.append((start // _MINUTE, end // _MINUTE))
    if any(dates[date] for date in closed):
        raise ValueError("must not be both open and closed on a date")
    return tuple((date, _joined(covered)) for date, covered in sorted(dates.items()))
