"""Queries of the sweep, which compares what the events said of each key with what is true now (docs/events.md).

They are about the keys of all owners, in pages by the primary key. Changes name the owner.
"""

from collections.abc import Iterable
from typing import Any, NamedTuple

from sqlalchemy import (
    Boolean,
    ColumnElement,
    Select,
    String,
    Table,
    and_,
    case,
    cast,
    func,
    literal,
    literal_column,
    or_,
    select,
    true,
    tuple_,
)
from sqlalchemy.ext.asyncio import AsyncSession

from profilesvc.database.statements import Executor, insert_into, upsert
from profilesvc.domain.connection import DOWN, OFFLINE_AFTER, ONLINE_FOR, ReportedState
from profilesvc.domain.time import DAY, SECOND
from profilesvc.storage.tables import connections, keys, sweep_marks, watches

Place = tuple[int, int]  # the owner and the number of a key
Page = tuple[Place, Place | None]  # after the first, up to the second; None for the last page
FIRST: Place = (0, 0)
_PLACE = tuple_(keys.c.owner_id, keys.c.id)
_OF_KEY = (keys.c.owner_id, keys.c.id)


class Stale(NamedTuple):
    """A key that needs an event, with what its last events said."""

    owner_id: int
    key_id: int
    client_id: str
    location_name: str
    created_at: int
    expires_at: int | None
    state: ReportedState
    changed_at: int
    site_mismatch: bool
    expiry_announced: int
    grace_seconds: int


async def page_end(session: Executor, after: Place, size: int) -> Place | None:
    """Return the last key of the page after a place, or None if the page is not full."""
    query = (
        select(*_OF_KEY).where(keys.c.revoked_at.is_(None), after < _PLACE).order_by(*_OF_KEY).limit(1).offset(size - 1)
    )
    row = (await session.execute(query)).first()
    return None if row is None else (row.owner_id, row.id)


def _reported(now: int) -> "ColumnElement[str]":
    """Return `domain.connection.reported_state` as an expression."""
    last, grace = connections.c.last_heartbeat_at, func.coalesce(watches.c.grace_seconds, 0) * SECOND
    is_still_down = and_(watches.c.state.in_(DOWN), or_(last.is_(None), last < watches.c.changed_at))
    return case(
        (is_still_down, watches.c.state),
        (and_(last.is_(None), keys.c.created_at + OFFLINE_AFTER + grace <= now), "never_connected"),
        (last.is_(None), "new"),
        (last + OFFLINE_AFTER + grace <= now, "offline"),
        (last + ONLINE_FOR >= now, "online"),
        else_="idle",
    )


def _mismatch(now: int) -> "ColumnElement[bool]":
    """Return a first check of `domain.connection.site_mismatch`, which decides."""
    host, allowed = connections.c.site_host, keys.c.allowed_domains
    outside = and_(allowed != "[]", ~allowed.contains(cast('"', String) + host + '"'))
    return and_(
        host.is_not(None),
        or_(outside, and_(connections.c.other_site_host != "", connections.c.other_site_host_at > now - DAY)),
    )


def _days_before_the_end(now: int) -> "ColumnElement[int]":
    """Return 1 or 7 for a key that ends within as many days and was valid for longer, else 0."""
    end, start = keys.c.expires_at, keys.c.created_at
    within = {days: and_(end - now <= days * DAY, end - start > days * DAY) for days in (1, 7)}
    return case((within[1], 1), (within[7], 7), else_=0)


_CONNECTION = and_(connections.c.owner_id == keys.c.owner_id, connections.c.key_id == keys.c.id)
_WATCH = and_(watches.c.owner_id == keys.c.owner_id, watches.c.key_id == keys.c.id)
_FALSE = literal_column("FALSE", Boolean)
_STATE = func.coalesce(watches.c.state, "new")
_WAS_MISMATCH = func.coalesce(watches.c.site_mismatch, _FALSE)
_ANNOUNCED = func.coalesce(watches.c.expiry_announced, 0)
_LAST = connections.c.last_heartbeat_at


def _changed(now: int, *, may_alarm: bool) -> "ColumnElement[bool]":
    """Select keys whose last event is no longer true; without `may_alarm` only good news about their state."""
    days = _days_before_the_end(now)
    ends_soon = and_(days > 0, or_(_ANNOUNCED == 0, days < _ANNOUNCED))
    flips = and_(_reported(now) != _STATE, true() if may_alarm else _reported(now) == "online")
    return or_(flips, func.coalesce(_mismatch(now), _FALSE) != _WAS_MISMATCH, ends_soon)


def _page(query: "Select[*tuple[Any, ...]]", page: Page, now: int) -> "Select[*tuple[Any, ...]]":
    """Restrict a query to the live keys of a page.

    The other tables have the range of owners too, so that PostgreSQL never reads them whole to join a page.
    """
    after, until = page
    connection, watch = and_(_CONNECTION, _of_owners(connections, page)), and_(_WATCH, _of_owners(watches, page))
    return query.select_from(keys.outerjoin(connections, connection).outerjoin(watches, watch)).where(
        keys.c.revoked_at.is_(None),
        or_(keys.c.expires_at.is_(None), keys.c.expires_at > now),
        after < _PLACE,
        true() if until is None else until >= _PLACE,
    )


def _of_owners(table: Table, page: Page) -> "ColumnElement[bool]":
    (first, _), until = page
    return and_(table.c.owner_id >= first, true() if until is None else table.c.owner_id <= until[0])


class Counted(NamedTuple):
    """How many live keys there are, how many fell silent a short time ago, how many are online by their last event, how
    many of these are silent, how many need an event, and when the newest heartbeat arrived (0 without any).
    """

    live: int
    silent: int
    online: int
    waiting: int
    stale: int
    newest: int


def total(pages: Iterable[Counted]) -> Counted:
    """Return the counts of pages together."""
    *counts, newest = zip(*pages, strict=True)
    return Counted._make((*map(sum, counts), max(newest)))


async def count(session: Executor, page: Page, now: int, silent_since: int) -> Counted:
    """Count the keys of a page."""
    fell_silent = and_(now > _LAST + ONLINE_FOR, silent_since <= _LAST + ONLINE_FOR)
    online = _STATE == "online"
    waiting = and_(online, _reported(now) != "online")
    stale = _changed(now, may_alarm=True)
    counts = (func.count(case((each, 1))) for each in (fell_silent, online, waiting, stale))
    query = _page(select(func.count(), *counts, func.coalesce(func.max(_LAST), 0)), page, now)
    return Counted._make((await session.execute(query)).one())


async def adopt(session: AsyncSession, page: Page, now: int, created_before: int) -> None:
    """Store the states of the older keys of a page as if events had reported them."""
    is_mismatch = func.coalesce(_mismatch(now), _FALSE)
    stored = {"state": _reported(now), "site_mismatch": is_mismatch, "changed_at": literal(now)}
    found = _page(select(*_OF_KEY, *stored.values()), page, now).where(
        keys.c.created_at <= created_before, _changed(now, may_alarm=True)
    )
    insert = insert_into(session, watches).from_select(["owner_id", "key_id", *stored], found)
    values = {name: insert.excluded[name] for name in stored}
    await session.execute(
        insert.on_conflict_do_update(index_elements=[watches.c.owner_id, watches.c.key_id], set_=values)
    )


async def stale(session: Executor, page: Page, now: int, *, may_alarm: bool) -> list[Stale]:
    """Return the keys of a page that need an event."""
    query = select(
        keys.c.owner_id,
        keys.c.id,
        keys.c.client_id,
        keys.c.location_name,
        keys.c.created_at,
        keys.c.expires_at,
        _STATE,
        func.coalesce(watches.c.changed_at, 0),
        _WAS_MISMATCH,
        _ANNOUNCED,
        func.coalesce(watches.c.grace_seconds, 0),
    )
    query = _page(query, page, now).where(_changed(now, may_alarm=may_alarm)).order_by(*_OF_KEY)
    return [Stale._make(row) for row in await session.execute(query)]


async def flip(session: AsyncSession, key: Stale, state: ReportedState, now: int) -> bool:
    """Store the state that an event reports; return False if another one was stored since `key` was read."""
    return await _change(session, key, watches.c.state == key.state, state=state, changed_at=now)


async def note_mismatch(session: AsyncSession, key: Stale, is_mismatch: bool, now: int) -> bool:
    """Store whether a second site uses the key; return False if that is stored."""
    differs = watches.c.site_mismatch != is_mismatch
    return await _change(session, key, differs, site_mismatch=is_mismatch, changed_at=now)


async def note_expiry(session: AsyncSession, key: Stale, days: int, now: int) -> bool:
    """Store that the end of the key in as many days was announced; return False if it is stored."""
    is_later = watches.c.expiry_announced == key.expiry_announced
    return await _change(session, key, is_later, expiry_announced=days, changed_at=now)


async def _change(session: AsyncSession, key: Stale, condition: ColumnElement[bool], **values: object) -> bool:
    return await upsert(session, watches, values, condition, owner_id=key.owner_id, key_id=key.key_id)


async def choices(session: Executor, owner_id: int, key_id: int) -> tuple[int, int | None]:
    """Return the grace of a key, in seconds, and until when its alerts are snoozed."""
    query = select(watches.c.grace_seconds, watches.c.snoozed_until).where(
        watches.c.owner_id == owner_id, watches.c.key_id == key_id
    )
    row = (await session.execute(query)).first()
    return (0, None) if row is None else (row.grace_seconds, row.snoozed_until)


async def choose(
    session: AsyncSession, owner_id: int, key_id: int, grace_seconds: int, snoozed_until: int | None, now: int
) -> None:
    """Store what the owner chose for a key."""
    values = {"grace_seconds": grace_seconds, "snoozed_until": snoozed_until}
    insert = insert_into(session, watches).values(owner_id=owner_id, key_id=key_id, changed_at=now, **values)
    changed = insert.on_conflict_do_update(index_elements=[watches.c.owner_id, watches.c.key_id], set_=values)
    await session.execute(changed)


async def marks(session: Executor) -> dict[str, int]:
    """Return what the sweep remembers."""
    return {row.name: row.at for row in await session.execute(select(sweep_marks.c.name, sweep_marks.c.at))}


async def mark(session: AsyncSession, **instants: int) -> None:
    """Remember these instants."""
    if not instants:
        return
    insert = insert_into(session, sweep_marks)
    changed = insert.on_conflict_do_update(index_elements=[sweep_marks.c.name], set_={"at": insert.excluded.at})
    await session.execute(changed, [{"name": name, "at": at} for name, at in instants.items()])
