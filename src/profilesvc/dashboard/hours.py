"""Opening hours as a person writes them: a line of times for each day, and a line for each special date."""

import datetime
import re

from profilesvc.contract.json import JsonObject

DAYS = ("MONDAY", "TUESDAY", "WEDNESDAY", "THURSDAY", "FRIDAY", "SATURDAY", "SUNDAY")
TO = "\N{EN DASH}"
_RANGE = re.compile(rf"(\d{{1,2}}):(\d\d)\s*(?:-|{TO}|to)\s*(\d{{1,2}}):(\d\d)")
_DATE = re.compile(r"(\d{4})-(\d{1,2})-(\d{1,2})\s+(.*)")
_DAY_END = 24 * 60
RANGES = "must be times such as 09:00-17:30, with commas between several"
DATES = "must have a line such as `2026-12-24 09:00-12:00` or `2026-12-25 closed` for each date"


def of_day(periods: list[JsonObject], day: str) -> str:
    """Return the hours of a day: `09:00-12:00, 13:00-18:00`; empty if it is closed."""
    own = sorted((one for one in periods if one["openDay"] == day), key=lambda one: minutes_of(one.get("openTime")))
    return ", ".join(f"{clock(one.get('openTime'))}-{clock(one.get('closeTime'))}" for one in own)


def periods_of(day: str, text: str) -> list[JsonObject]:
    """Return the periods of a day. One that ends before it starts ends on the next day.

    Raises:
        ValueError: The text is something else.
    """
    periods = []
    for part in filter(None, (part.strip() for part in text.split(","))):
        start, end = _range(part)
        close_day = day if end > start else DAYS[(DAYS.index(day) + 1) % len(DAYS)]
        periods.append({"openDay": day, "openTime": _time(start), "closeDay": close_day, "closeTime": _time(end)})
    return periods


def of_dates(periods: list[JsonObject]) -> str:
    """Return a line for each period of special hours."""
    lines = []
    for one in periods:
        date = one["startDate"]
        day = f"{date['year']:04}-{date['month']:02}-{date['day']:02}"
        hours = "closed" if one.get("closed") else f"{clock(one.get('openTime'))}-{clock(one.get('closeTime'))}"
        lines.append(f"{day} {hours}")
    return "\n".join(lines)


def dates_of(text: str) -> list[JsonObject]:
    """Return the periods of special hours. One that ends before it starts ends on the next day.

    Raises:
        ValueError: A line is something else.
    """
    periods = []
    for line in filter(None, (line.strip() for line in text.splitlines())):
        match = _DATE.fullmatch(line)
        if match is None:
            raise ValueError(DATES)
        date: JsonObject = dict(zip(("year", "month", "day"), map(int, match.groups()[:3]), strict=True))
        if match[4].strip().lower() == "closed":
            periods.append({"startDate": date, "closed": True})
            continue
        try:
            start, end = _range(match[4].strip())
        except ValueError:
            raise ValueError(DATES) from None
        until = {} if end > start else {"endDate": _day_after(date)}
        periods.append({"startDate": date, **until, "openTime": _time(start), "closeTime": _time(end)})
    return periods


def _day_after(date: JsonObject) -> JsonObject:
    try:
        day = datetime.date(**date) + datetime.timedelta(days=1)
    except (OverflowError, ValueError):
        raise ValueError(DATES) from None
    return {"year": day.year, "month": day.month, "day": day.day}


def _range(text: str) -> tuple[int, int]:
    match = _RANGE.fullmatch(text)
    if match is None:
        raise ValueError(RANGES)
    hours, minutes, end_hours, end_minutes = map(int, match.groups())
    start, end = hours * 60 + minutes, end_hours * 60 + end_minutes
    if start >= _DAY_END or end > _DAY_END or max(minutes, end_minutes) > 59:
        raise ValueError(RANGES)
    return start, end


def minutes_of(time: JsonObject | None) -> int:
    """Return the minutes from midnight to a time; the provider leaves out zeros."""
    return int((time or {}).get("hours", 0) * 60 + (time or {}).get("minutes", 0))


def clock(time: JsonObject | None) -> str:
    """Return a time as `09:30`."""
    hours, minutes = divmod(minutes_of(time), 60)
    return f"{hours:02}:{minutes:02}"


def _time(minutes: int) -> JsonObject:
    parts = {"hours": minutes // 60, "minutes": minutes % 60}
    return {name: value for name, value in parts.items() if value}
