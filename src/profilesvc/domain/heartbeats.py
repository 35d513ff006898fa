"""Connection states, from the times of heartbeats, now and for the last 30 days, and why a site is not connected."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal, NamedTuple, get_args

from profilesvc.contract.connection import ConnectionState, ReasonHint
from profilesvc.domain.domains import same_sites
from profilesvc.domain.time import DAY, HOUR, iso

NEXT_HEARTBEAT_SECONDS = 3_600  # what the response to a heartbeat asks for
ONLINE_FOR = 2 * HOUR
OFFLINE_AFTER = DAY
HISTORY = 30 * DAY
Rejection = Literal["wrong_secret", "revoked", "origin_not_allowed"]  # `reason` in the log of requests
REJECTIONS: tuple[Rejection, ...] = get_args(Rejection)


def state(last_heartbeat_at: int | None, now: int) -> ConnectionState:
    """Return `online` for up to two hours after a heartbeat, `offline` from 24 hours on or without one, else `idle`."""
    if last_heartbeat_at is None or now - last_heartbeat_at >= OFFLINE_AFTER:
        return "offline"
    return "online" if now - last_heartbeat_at <= ONLINE_FOR else "idle"


ReportedState = Literal["new", "never_connected", "online", "idle", "offline"]
DOWN: tuple[ReportedState, ...] = ("offline", "never_connected")


def reported_state(last_heartbeat_at: int | None, created_at: int, grace: int, now: int) -> ReportedState:
    """Return the state that events report: `offline` only after the grace, in milliseconds, of the key.

    A key without a heartbeat is `new` for 24 hours and the grace, then `never_connected`.
    """
    if last_heartbeat_at is None:
        return "never_connected" if now - created_at >= OFFLINE_AFTER + grace else "new"
    if now - last_heartbeat_at >= OFFLINE_AFTER + grace:
        return "offline"
    return "online" if now - last_heartbeat_at <= ONLINE_FOR else "idle"


def site_mismatch(sites: tuple[str | None, str | None], other_at: int | None, allowed: list[str], now: int) -> bool:
    """Return whether heartbeats look like those of a clone or a staging copy.

    `sites` are the site of the last heartbeat and the previous different site, which was last seen at `other_at`. It is
    a mismatch if the first is outside the key's domains, or if both were seen within a day and are not one site.
    """
    site, other = sites
    if site is None:
        return False
    is_recent = other is not None and other_at is not None and now - other_at < DAY
    return bool(allowed and site not in allowed) or (is_recent and other not in same_sites(site, allowed))


@dataclass(frozen=True, slots=True)
class Span:
    """A run of heartbeats with gaps of at most two hours: the first and the last."""

    from_: int
    to: int


@dataclass(frozen=True, slots=True)
class Period:
    """A time in one state; instants in milliseconds."""

    state: ConnectionState
    from_: int
    to: int


def history(spans: list[Span], now: int, since: int) -> list[dict[str, str]]:
    """Return the `periods` as the API shows them: `{state, from, to}`."""
    return [{"state": one.state, "from": iso(one.from_), "to": iso(one.to)} for one in periods(spans, now, since)]


def periods(spans: list[Span], now: int, since: int) -> list[Period]:
    """Return the states of the last 30 days, oldest first; `to` of the last period is `now`.

    `spans` are in order of time and do not overlap. The history starts at `since`, the creation of the key. Each period
    starts where the previous one ends, and neighbours differ.
    """
    start = max(since, now - HISTORY)
    result: list[Period] = []
    for name, first, last in _intervals(spans, now, since):
        begin, end = max(first, start), min(last, now)
        if begin >= end:
            continue
        if result and result[-1].state == name:
            begin = result.pop().from_
        result.append(Period(name, begin, end))
    return result


def joined(spans: list[Span]) -> list[Span]:
    """Return the times that are in any of the runs of several keys, in order and without overlaps."""
    joint: list[Span] = []
    for span in sorted(spans, key=lambda one: one.from_):
        if joint and span.from_ <= joint[-1].to:
            span = Span(joint[-1].from_, max(joint.pop().to, span.to))
        joint.append(span)
    return joint


def online_share(history: list[Period]) -> float | None:
    """Return the part of the time, from 0 to 1, that was online; None if there was no time yet."""
    total = sum(one.to - one.from_ for one in history)
    return sum(one.to - one.from_ for one in history if one.state == "online") / total if total else None


def daily_contacts(runs: Iterable[tuple[str, Span]], now: int, days: int) -> list[int]:
    """Return how many sites were in contact on each of the last days (UTC), the oldest first; a site counts once."""
    first = now // DAY - (days - 1)
    seen: dict[str, int] = {}  # a bit for each day
    for site, span in runs:
        start, end = max(span.from_ // DAY - first, 0), min(span.to // DAY - first, days - 1)
        if start <= end:
            seen[site] = seen.get(site, 0) | ((1 << (end + 1)) - (1 << start))
    counts = Counter(day for mask in seen.values() for day in range(days) if mask >> day & 1)
    return [counts[day] for day in range(days)]


def _intervals(spans: list[Span], now: int, since: int) -> list[tuple[ConnectionState, int, int]]:
    """Divide the time from `since` to `now` without gaps. Intervals can be empty or outside of it."""
    intervals: list[tuple[ConnectionState, int, int]] = [("offline", since, spans[0].from_ if spans else now)]
    for index, span in enumerate(spans):
        until = spans[index + 1].from_ if index + 1 < len(spans) else now
        idle, offline = min(span.to + ONLINE_FOR, until), min(span.to + OFFLINE_AFTER, until)
        intervals += [("online", span.from_, idle), ("idle", idle, offline), ("offline", offline, until)]
    return intervals


class Reason(NamedTuple):
    """The first thing that the owner should check, and since when it is known, in milliseconds; None: nothing."""

    hint: ReasonHint | None
    at: int | None = None


class Known(NamedTuple):
    """The known state of a key. Instants in milliseconds."""

    created_at: int
    is_held: bool = False
    last_heartbeat_at: int | None = None
    last_used_at: int | None = None
    mismatch: bool = False
    secret_at: int | None = None  # when the newest secret was made
    retiring_until: int | None = None  # when the one before ends or has ended
    rejection: tuple[Rejection, int] | None = None  # the newest rejected request


def reason(known: Known, now: int) -> Reason:
    """Return what the owner should check first. What is certain comes before what is only likely.

    Anyone can send a wrong secret or use another page, so neither says anything of a site that is online. A token that
    was revoked had been issued to the site, so it does.
    """
    contact = max(known.last_heartbeat_at or 0, known.last_used_at or 0)
    rejection, rejected_at = known.rejection or (None, 0)
    if rejected_at < contact:
        rejection = None
    connection = state(known.last_heartbeat_at, now)
    if known.is_held:
        return Reason("deactivated")
    if _is_changed(known, contact, now):
        return Reason("secret_changed", known.secret_at)
    if rejection == "revoked":
        return Reason("token_revoked", rejected_at)
    if rejection == "wrong_secret" and connection != "online":
        return Reason("secret_rejected", rejected_at)
    if rejection == "origin_not_allowed" and connection != "online":
        return Reason("origin_not_allowed", rejected_at)
    if known.last_heartbeat_at is None:
        return Reason("never_connected")
    if known.mismatch:
        return Reason("site_mismatch")
    return Reason(None) if connection == "online" else Reason("was_online", known.last_heartbeat_at)


def _is_changed(known: Known, contact: int, now: int) -> bool:
    """Return whether the secret was replaced since the last contact, and no earlier one is valid."""
    if known.secret_at is None or known.secret_at <= known.created_at or contact == 0:
        return False
    return contact <= known.secret_at and (known.retiring_until or 0) <= now


def rejection_of(logged: str | None) -> tuple[Rejection, int] | None:
    """Return a rejection as a query has joined it: its reason and its instant."""
    name, _, at = (logged or "").partition(" ")
    return next(((each, int(at)) for each in REJECTIONS if each == name), None)
