"""Queries of the sweep, which compares what the events said of each key with what is true now (docs/events.md).

They are about the keys of all owners, in pages by the primary key. Changes name the owner.
"""

from collections.abc import Iterable
from typing import Any, NamedTuple

from sqlalchemy import (
    BigInteger,
    BindParameter,
    Boolean,
    ColumnElement,
    FromClause,
    Integer,
    Select,
    and_,
    bindparam,
    case,
    func,
    literal_column,
    or_,
    select,
    tuple_,
)
from sqlalchemy.ext.asyncio import AsyncSession

from profilesvc.database.statements import Executor, Prepared, columns, fetch, insert_into, upsert
from profilesvc.domain.heartbeats import DOWN, OFFLINE_AFTER, ONLINE_FOR, ReportedState
from profilesvc.domain.time import DAY, SECOND
from profilesvc.storage.heartbeats import names_site
from profilesvc.storage.keys import live
from profilesvc.storage.tables import connections, keys, sweep_marks, watches

Place = tuple[int, int]  # the owner and the number of a key
Page = tuple[Place, Place]  # after the first, up to the second
FIRST: Place = (0, 0)
LAST: Place = (2**63 - 1, 2**63 - 1)  # after every key
_OF_KEY = (keys.c.owner_id, keys.c.id)


def _number(name: str) -> "BindParameter[int]":
    return bindparam(name, type_=BigInteger)


_NOW = _number("now")
_AFTER_OWNER, _UNTIL_OWNER = _number("after_owner"), _number("until_owner")
_IS_AFTER = tuple_(*_OF_KEY) > tuple_(_AFTER_OWNER, _number("after_key"))
_IS_UNTIL = tuple_(*_OF_KEY) <= tuple_(_UNTIL_OWNER, _number("until_key"))
_IS_LIVE = live(_NOW)


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


_PAGE_END = Prepared(
    select(*_OF_KEY)
    .where(keys.c.revoked_at.is_(None), _IS_AFTER)
    .order_by(*_OF_KEY)
    .limit(1)
    .offset(bindparam("skipped", type_=Integer))
)


async def page_end(session: Executor, after: Place, size: int) -> Place | None:
    """Return the last key of the page after a place, or None if the page is not full."""
    rows = await fetch(session, _PAGE_END, after_owner=after[0], after_key=after[1], skipped=size - 1)
    return (rows[0][0], rows[0][1]) if rows else None


_LAST_HEARTBEAT = connections.c.last_heartbeat_at
_FALSE = literal_column("FALSE", Boolean)
_STATE = func.coalesce(watches.c.state, "new")
_WAS_MISMATCH = func.coalesce(watches.c.site_mismatch, _FALSE)
_ANNOUNCED = func.coalesce(watches.c.expiry_announced, 0)
_GRACE = func.coalesce(watches.c.grace_seconds, 0)


def _reported() -> "ColumnElement[str]":
    """Return `domain.connection.reported_state` as an expression."""
    last, grace = _LAST_HEARTBEAT, _GRACE * SECOND
    was_down = or_(*(watches.c.state == state for state in DOWN))
    is_still_down = and_(was_down, or_(last.is_(None), last < watches.c.changed_at))
    return case(
        (is_still_down, watches.c.state),
        (and_(last.is_(None), keys.c.created_at + OFFLINE_AFTER + grace <= _NOW), "never_connected"),
        (last.is_(None), "new"),
        (last + OFFLINE_AFTER + grace <= _NOW, "offline"),
        (last + ONLINE_FOR >= _NOW, "online"),
        else_="idle",
    )


def _mismatch() -> "ColumnElement[bool]":
    """Return a first check of `domain.connection.site_mismatch`, which decides."""
    host, allowed = connections.c.site_host, keys.c.allowed_domains
    outside = and_(allowed != "[]", ~names_site(allowed, host))
    another = and_(connections.c.other_site_host != "", connections.c.other_site_host_at > _NOW - DAY)
    return func.coalesce(and_(host.is_not(None), or_(outside, another)), _FALSE)


def _days_before_the_end() -> "ColumnElement[int]":
    """Return 1 or 7 for a key that ends within as many days and was valid for longer, else 0."""
    end, start = keys.c.expires_at, keys.c.created_at
    within = {days: and_(end - _NOW <= days * DAY, end - start > days * DAY) for days in (1, 7)}
    return case((within[1], 1), (within[7], 7), else_=0)


_REPORTED, _MISMATCH = _reported(), _mismatch()
_DAYS = _days_before_the_end()
_FLIPS = _REPORTED != _STATE
_DIFFERS = or_(_MISMATCH != _WAS_MISMATCH, and_(_DAYS > 0, or_(_ANNOUNCED == 0, _DAYS < _ANNOUNCED)))
_IS_STALE = or_(_FLIPS, _DIFFERS)  # the last event is no longer true
_IS_GOOD_NEWS = or_(and_(_FLIPS, _REPORTED == "online"), _DIFFERS)


def _page(query: "Select[*tuple[Any, ...]]") -> "Select[*tuple[Any, ...]]":
    """Restrict a query to the live keys of a page."""
    # The other tables have the range of owners too, so that PostgreSQL never reads them whole to join a page.
    joined: FromClause = keys
    for table in (connections, watches):
        of_key = and_(table.c.owner_id == keys.c.owner_id, table.c.key_id == keys.c.id)
        joined = joined.outerjoin(table, and_(of_key, table.c.owner_id.between(_AFTER_OWNER, _UNTIL_OWNER)))
    return query.select_from(joined).where(_IS_LIVE, _IS_AFTER, _IS_UNTIL)


def _values(page: Page, now: int) -> dict[str, object]:
    (after_owner, after_key), (until_owner, until_key) = page
    after = {"after_owner": after_owner, "after_key": after_key}
    return {**after, "until_owner": until_owner, "until_key": until_key, "now": now}


class Counted(NamedTuple):
    """Numbers of live keys, and when the newest heartbeat arrived (0 without any)."""

    live: int
    silent: int  # fell silent a short time ago
    online: int  # by their last event
    waiting: int  # online by their last event, and silent
    stale: int  # need an event
    newest: int


def total(pages: Iterable[Counted]) -> Counted:
    """Return the counts of pages together."""
    *counts, newest = zip(*pages, strict=True)
    return Counted._make((*map(sum, counts), max(newest)))


def _totals() -> "Select[*tuple[Any, ...]]":
    silent_at, is_online = _LAST_HEARTBEAT + ONLINE_FOR, _STATE == "online"
    fell_silent = and_(silent_at < _NOW, _number("silent_since") <= silent_at)
    counted = (fell_silent, is_online, and_(is_online, _REPORTED != "online"), _IS_STALE)
    counts = (func.count(case((each, 1))) for each in counted)
    return _page(select(func.count(), *counts, func.coalesce(func.max(_LAST_HEARTBEAT), 0)))


_TOTALS = Prepared(_totals())


async def count(session: Executor, page: Page, now: int, silent_since: int) -> Counted:
    """Count the keys of a page."""
    (row,) = await fetch(session, _TOTALS, **_values(page, now), silent_since=silent_since)
    return Counted._make(row)


async def adopt(session: AsyncSession, page: Page, now: int, created_before: int) -> None:
    """Store the states of the older keys of a page as if events had reported them."""
    stored = {"state": _REPORTED, "site_mismatch": _MISMATCH, "changed_at": _NOW}
    stale = _page(select(*_OF_KEY, *stored.values())).where(keys.c.created_at <= created_before, _IS_STALE)
    insert = insert_into(session, watches).from_select(["owner_id", "key_id", *stored], stale)
    values = {name: insert.excluded[name] for name in stored}
    changed = insert.on_conflict_do_update(index_elements=[watches.c.owner_id, watches.c.key_id], set_=values)
    await session.execute(changed, _values(page, now))


def _stale(is_stale: "ColumnElement[bool]") -> Prepared:
    said = _STATE, func.coalesce(watches.c.changed_at, 0), _WAS_MISMATCH, _ANNOUNCED, _GRACE
    query = select(*_OF_KEY, *columns(keys, Stale._fields[2:6]), *said)
    return Prepared(_page(query).where(is_stale).order_by(*_OF_KEY))


_STALE = {True: _stale(_IS_STALE), False: _stale(_IS_GOOD_NEWS)}


async def stale(session: Executor, page: Page, now: int, *, may_alarm: bool) -> list[Stale]:
    """Return the keys of a page that need an event; without `may_alarm` only good news about their state."""
    return [Stale._make(row) for row in await fetch(session, _STALE[may_alarm], **_values(page, now))]


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


_MARKS = Prepared(select(sweep_marks.c.name, sweep_marks.c.at))


async def marks(session: Executor) -> dict[str, int]:
    """Return what the sweep remembers."""
    return {str(name): at for name, at in await fetch(session, _MARKS)}


async def mark(session: AsyncSession, **instants: int) -> None:
    """Remember these instants."""
    if not instants:
        return
    insert = insert_into(session, sweep_marks)
    changed = insert.on_conflict_do_update(index_elements=[sweep_marks.c.name], set_={"at": insert.excluded.at})
    await session.execute(changed, [{"name": name, "at": at} for name, at in instants.items()])
