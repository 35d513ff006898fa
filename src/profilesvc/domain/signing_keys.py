"""The states of signing keys, derived from instants, so that all processes agree without deciding anything."""

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal, NamedTuple

from profilesvc.domain.world import SECOND

State = Literal["announced", "active", "retired", "removed"]
KNOWN_AFTER = 10 * SECOND  # by then every process has read a new key and accepts its tokens


class KeyDates(NamedTuple):
    """A signing key without the key itself; instants in milliseconds."""

    kid: str
    created_at: int
    active_from: int
    removed_at: int | None = None


@dataclass(frozen=True, slots=True)
class Schedule:
    """How long a key signs, is announced before, and is accepted after; milliseconds.

    It is announced first so that every process and every client with a cached key set knows it in time (D-13).
    If `rotate` is None, only the operator rotates.
    """

    rotate: int | None
    announce: int
    keep: int


def in_order(keys: Iterable[KeyDates]) -> list[KeyDates]:
    """Return the keys that are not removed, ordered by the time from which they sign."""
    there = (key for key in keys if key.removed_at is None)
    return sorted(there, key=lambda key: (key.active_from, key.created_at, key.kid))


def active(keys: Iterable[KeyDates], now: int) -> KeyDates | None:
    """Return the newest key whose time has come; the first key if a clock was put back and none has."""
    there = in_order(keys)
    return next((key for key in reversed(there) if key.active_from <= now), there[0] if there else None)


def announced(keys: Iterable[KeyDates], now: int) -> list[KeyDates]:
    """Return the keys that do not sign yet, the next one first."""
    return [key for key in in_order(keys) if key.active_from > now]


def state(key: KeyDates, keys: Iterable[KeyDates], now: int) -> State:
    """Return the state of one key."""
    if key.removed_at is not None:
        return "removed"
    if key == active(keys, now):
        return "active"
    return "announced" if key.active_from > now else "retired"


def due(keys: Iterable[KeyDates], now: int, schedule: Schedule) -> int | None:
    """Return from when the next key signs if it must be announced now; None otherwise."""
    there = in_order(keys)
    if schedule.rotate is None or not there:
        return None
    regular = there[-1].active_from + schedule.rotate
    return max(regular, now + schedule.announce) if regular - schedule.announce <= now else None


def outlived(keys: Iterable[KeyDates], now: int, keep: int) -> list[str]:
    """Return the kids of keys whose last token has expired: their successor has signed for longer than `keep`."""
    return [key.kid for key, successor in pairwise(in_order(keys)) if successor.active_from + keep <= now]


def soonest(created_at: int, others: Iterable[KeyDates], now: int) -> int:
    """Return from when a key can sign: when every process knows it, or immediately if it is the only key."""
    return now if active(others, now) is None else max(now, created_at + KNOWN_AFTER)
