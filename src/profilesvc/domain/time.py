"""Clocks, and instants as whole milliseconds since the epoch, UTC: the same in both databases and in Python."""

import asyncio
import time
from datetime import UTC, date, datetime, timedelta
from typing import Protocol

from profilesvc.contract.common import parse_timestamp
from profilesvc.domain.errors import invalid

SECOND = 1_000
MINUTE = 60 * SECOND
HOUR = 60 * MINUTE
DAY = 24 * HOUR
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_UTC_EPOCH = _EPOCH.replace(tzinfo=None)  # to write instants: with a zone that takes twice as long


class Clock(Protocol):
    """A clock that returns milliseconds since the epoch, UTC, and waits."""

    def now(self) -> int: ...

    async def sleep(self, seconds: float) -> None: ...


class SystemClock:
    """The machine's clock."""

    def now(self) -> int:
        return time.time_ns() // 1_000_000

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)


class FrozenClock:
    """A clock that moves only by `advance`. Its `sleep` returns at once."""

    def __init__(self, start: int) -> None:
        self._now = start

    def now(self) -> int:
        return self._now

    async def sleep(self, seconds: float) -> None:
        """Pass control to other tasks once."""
        await asyncio.sleep(0)

    def advance(self, **duration: float) -> int:
        """Move forward by a timedelta (`hours=3`) and return the new time."""
        self._now += round(timedelta(**duration) / timedelta(milliseconds=1))
        return self._now


class ShiftedClock(SystemClock):
    """The machine's clock, which `advance` moves forward in a demo."""

    def __init__(self) -> None:
        self._shift = 0

    def now(self) -> int:
        return super().now() + self._shift

    def advance(self, **duration: float) -> int:
        """Move forward by a timedelta (`hours=3`) and return the new time."""
        self._shift += round(timedelta(**duration) / timedelta(milliseconds=1))
        return self.now()


def iso(instant: int) -> str:
    """Return the instant as `2026-01-02T03:04:05.678Z`."""
    return (_UTC_EPOCH + timedelta(milliseconds=instant)).isoformat(timespec="milliseconds") + "Z"


def iso_or_none(instant: int | None) -> str | None:
    """Return the instant as `iso` does, if there is one."""
    return None if instant is None else iso(instant)


def parse_iso(text: str) -> int:
    """Parse an RFC 3339 time to milliseconds.

    Raises:
        ValueError: The text is not an RFC 3339 time.
    """
    return (parse_timestamp(text) - _EPOCH) // timedelta(milliseconds=1)


def instant_of(field: str, text: str, example: str) -> int:
    """Parse the time in a field of a body to milliseconds.

    Raises:
        ServiceError: VALIDATION_ERROR, with the example.
    """
    try:
        return parse_iso(text)
    except ValueError:
        raise invalid("body", field, f"must be an RFC 3339 time such as {example}") from None


def day_of(instant: int) -> date:
    """Return the day of an instant in UTC."""
    return (_UTC_EPOCH + timedelta(milliseconds=instant)).date()


def month_start(instant: int, months_later: int = 0) -> int:
    """Return the first millisecond of the instant's calendar month in UTC, or of a later month."""
    moment = _EPOCH + timedelta(milliseconds=instant)
    index = moment.year * 12 + moment.month - 1 + months_later
    return (datetime(index // 12, index % 12 + 1, 1, tzinfo=UTC) - _EPOCH) // timedelta(milliseconds=1)
