"""Times and numbers as the reader's language writes them."""

from datetime import UTC, date, datetime, time
from functools import lru_cache

from profilesvc.language.choice import ENGLISH
from profilesvc.language.texts import language

_MINUTE = len("2026-01-05T09:00")


def utc(text: str, *, seconds: bool = False) -> str:
    """Write an RFC 3339 time for people, with its zone: `2026-01-05 09:00 UTC`, or with `seconds` for unique names."""
    current = language()
    if current == ENGLISH:  # no order of day and month is common to all readers of English
        return f"{text[: _MINUTE + len(':07') * seconds].replace('T', ' ')} UTC"
    instant = datetime.fromisoformat(text).astimezone(UTC)
    clock = instant.time().replace(microsecond=0)
    clock = clock if seconds else clock.replace(second=0)
    return f"{_day(current, instant.date())}, {_clock(current, clock, seconds)} UTC"


@lru_cache(1024)
def _day(current: str, instant: date) -> str:
    from babel.dates import format_date

    return format_date(instant, "medium", locale=current)


@lru_cache(4096)
def _clock(current: str, instant: time, seconds: bool) -> str:
    from babel.dates import format_time

    return format_time(instant, "medium" if seconds else "short", locale=current)


def day(text: str) -> str:
    """Write the day of an RFC 3339 time or date."""
    current = language()
    if current == ENGLISH:
        return text[:10]
    from babel.dates import format_date

    return format_date(datetime.fromisoformat(text[:10]), "medium", locale=current)


def number(value: float) -> str:
    """Write a number with the decimal point of the language."""
    current = language()
    if current == ENGLISH:
        return str(value)
    from babel.numbers import format_decimal

    return format_decimal(value, locale=current, group_separator=False)


_DAYS = ("MONDAY", "TUESDAY", "WEDNESDAY", "THURSDAY", "FRIDAY", "SATURDAY", "SUNDAY")


def weekday(name: str, *, short: bool = False) -> str:
    """Write a day of the week such as `MONDAY`."""
    current = language()
    if current == ENGLISH:
        return name[:3].capitalize() if short else name.capitalize()
    from babel.dates import get_day_names

    names = get_day_names("abbreviated" if short else "wide", "stand-alone", current)
    return str(names[_DAYS.index(name)])


def month(first: date) -> str:
    """Write a month with its year."""
    current = language()
    if current == ENGLISH:
        return f"{first:%B %Y}"
    from babel.dates import format_skeleton

    return format_skeleton("yMMMM", first, locale=current)
