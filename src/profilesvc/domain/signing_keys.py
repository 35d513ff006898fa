"""The states of signing keys: announced, active, retired or removed.

The state depends only on the key's times, so that every process sees the same one. Access tokens (RS256) and refresh
tokens (HS256) have separate sets of keys. Every function works on the keys of one algorithm.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal, NamedTuple

from profilesvc.domain.time import SECOND

Algorithm = Literal["RS256", "HS256"]
ALGORITHMS: tuple[Algorithm, ...] = ("RS256", "HS256")
State = Literal["announced", "active", "retired", "removed"]
KNOWN_AFTER = 10 * SECOND  # by then every process has read a new key and accepts its tokens


class KeyDates(NamedTuple):
    """The id and the times of a signing key, in milliseconds."""

    kid: str
    created_at: int
    active_from: int
    removed_at: int | None = None
    alg: Algorithm = "RS256"


@dataclass(frozen=True, slots=True)
class Schedule:
    """The milliseconds for which a key signs, is announced before that, and is accepted after it (D-13)."""

    rotate: int | None  # None: only the operator rotates keys
    announce: int
    keep: int


def in_order(keys: Iterable[KeyDates]) -> list[KeyDates]:
    """Return the keys that are not removed, by the time from which they sign."""
    present = (key for key in keys if key.removed_at is None)
    return sorted(present, key=lambda key: (key.active_from, key.created_at, key.kid))


def active(keys: Iterable[KeyDates], now: int) -> KeyDates | None:
    """Return the newest key that may sign, or the first one if none may yet because the clock was set back."""
    present = in_order(keys)
    return next((key for key in reversed(present) if key.active_from <= now), present[0] if present else None)


def announced(keys: Iterable[KeyDates], now: int) -> list[KeyDates]:
    """Return the keys that do not sign yet, the next one first."""
    return [key for key in in_order(keys) if key.active_from > now]


def state(key: KeyDates, keys: Iterable[KeyDates], now: int) -> State:
    if key.removed_at is not None:
        return "removed"
    if key == active(keys, now):
        return "active"
    return "announced" if key.active_from > now else "retired"


def due(keys: Iterable[KeyDates], now: int, schedule: Schedule) -> int | None:
    """Return the time from which the next key must sign, if that key must be announced now."""
    present = in_order(keys)
    if schedule.rotate is None or not present:
        return None
    regular = present[-1].active_from + schedule.rotate
    return max(regular, now + schedule.announce) if regular - schedule.announce <= now else None


def expired_kids(keys: Iterable[KeyDates], now: int, keep: int) -> list[str]:
    """Return the kids of keys whose tokens have all expired, because their successor has signed longer than `keep`."""
    return [key.kid for key, successor in pairwise(in_order(keys)) if successor.active_from + keep <= now]


def earliest_start(created_at: int, others: Iterable[KeyDates], now: int) -> int:
    """Return the time from which a key can sign: when every process has it, or now if no other key can sign."""
    return now if active(others, now) is None else max(now, created_at + KNOWN_AFTER)
