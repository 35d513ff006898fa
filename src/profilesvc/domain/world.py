"""Clocks and sources of random bytes: the system's, and fixed ones for tests and the lab.

Instants are whole milliseconds since the epoch in UTC, which both databases and Python store and compare alike.
"""

import hashlib
import secrets
import time
from collections import Counter
from datetime import UTC, datetime, timedelta
from typing import Protocol

from profilesvc.contract.times import parse_timestamp

SECOND = 1_000
MINUTE = 60 * SECOND
HOUR = 60 * MINUTE
DAY = 24 * HOUR
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class Clock(Protocol):
    """A clock that returns milliseconds since the epoch, UTC."""

    def now(self) -> int: ...


class Entropy(Protocol):
    """A source of random bytes."""

    def token_bytes(self, count: int) -> bytes: ...


class SystemClock:
    """The machine's clock."""

    def now(self) -> int:
        return time.time_ns() // 1_000_000


class FrozenClock:
    """A clock that moves only by `advance`."""

    def __init__(self, start: int) -> None:
        self._now = start

    def now(self) -> int:
        return self._now

    def advance(self, **duration: float) -> int:
        """Move forward by a timedelta (`hours=3`) and return the new time."""
        self._now += round(timedelta(**duration) / timedelta(milliseconds=1))
        return self._now


class SystemEntropy:
    """The operating system's source."""

    def token_bytes(self, count: int) -> bytes:
        return secrets.token_bytes(count)


class SeededEntropy:
    """A source of the same bytes on every run: SHAKE-256 in counter mode over a seed. Rejected in production.

    Each length has its own counter, so that one more request does not change the secrets created after it.
    """

    def __init__(self, seed: str) -> None:
        self._seed = seed
        self._calls: Counter[int] = Counter()

    def token_bytes(self, count: int) -> bytes:
        self._calls[count] += 1
        return hashlib.shake_256(f"{self._seed}:{count}:{self._calls[count]}".encode()).digest(count)


def iso(instant: int) -> str:
    """Return the instant as `2026-01-02T03:04:05.678Z`."""
    moment = _EPOCH + timedelta(milliseconds=instant)
    return moment.strftime("%Y-%m-%dT%H:%M:%S.") + f"{instant % 1000:03d}Z"


def parse_iso(text: str) -> int:
    """Parse an RFC 3339 time to milliseconds.

    Raises:
        ValueError: The text is not an RFC 3339 time.
    """
    return (parse_timestamp(text) - _EPOCH) // timedelta(milliseconds=1)


def month_start(instant: int, months_later: int = 0) -> int:
    """Return the first millisecond of the instant's calendar month in UTC, or of a later month."""
    moment = _EPOCH + timedelta(milliseconds=instant)
    index = moment.year * 12 + moment.month - 1 + months_later
    return (datetime(index // 12, index % 12 + 1, 1, tzinfo=UTC) - _EPOCH) // timedelta(milliseconds=1)
