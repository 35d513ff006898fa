"""Queries on heartbeats."""

from typing import Any, NamedTuple

from sqlalchemy import and_, bindparam, case, exists, func, select, update
from sqlalchemy.ext.asyncio import AsyncSession

from profilesvc.domain.connection import ONLINE_FOR, Span
from profilesvc.storage import keys, revocations
from profilesvc.storage.dialect import insert_into
from profilesvc.storage.engine import Executor
from profilesvc.storage.keys import KeyState
from profilesvc.storage.prepared import Prepared, fetch
from profilesvc.storage.tables import connections, contacts
from profilesvc.storage.tables import keys as key_table


class LastContact(NamedTuple):
    """The last heartbeat of a key and what it reported."""

    last_heartbeat_at: int
    plugin_version: str | None
    wp_version: str | None
    php_version: str | None
    site_host: str | None
    other_site_host: str | None
    other_site_host_at: int | None


_KEY_AND_LAST = Prepared(
    keys.STATE.outerjoin(connections, connections.c.key_id == key_table.c.id).add_columns(
        *(connections.c[name] for name in LastContact._fields)
    )
)


async def key_and_last_contact(session: Executor, client_id: str) -> tuple[KeyState | None, LastContact | None]:
    """The state of a key and its last heartbeat, None before the first, in one statement."""
    rows = await fetch(session, _KEY_AND_LAST, client_id=client_id, **revocations.ids_of())
    if not rows:
        return None, None
    columns = tuple(rows[0])
    key, last = columns[: len(KeyState._fields)], columns[len(KeyState._fields) :]
    return KeyState._make(key), None if last[0] is None else LastContact._make(last)


class Beat(NamedTuple):
    """A heartbeat as it is stored: when it was received, what it reported (None keeps what is there), its site."""

    key_id: int
    last_heartbeat_at: int
    plugin_version: str | None = None
    wp_version: str | None = None
    php_version: str | None = None
    detected_plugins: str | None = None
    site_host: str | None = None
    site_host_at: int | None = None


async def record(session: AsyncSession, beats: list[Beat]) -> None:
    """Record heartbeats: the later receipt wins, what is not reported keeps its value (D-55)."""
    beats = sorted(
        beats, key=lambda beat: beat[:2]
    )  # two processes that take rows in one order cannot wait for each other
    await session.execute(_upsert(insert_into(session, connections)), [beat._asdict() for beat in beats])
    times = [{"key": beat.key_id, "now": beat.last_heartbeat_at} for beat in beats]
    await session.execute(_EXTEND, times)
    await session.execute(_begin(insert_into(session, contacts)), times)


def _upsert(insert: Any) -> Any:
    new, old = insert.excluded, connections.c
    kept = {name: func.coalesce(new[name], old[name]) for name in Beat._fields[2:]}
    # The row's site becomes the other one when a heartbeat names a new one; one statement, so no race loses it.
    moved = and_(old.site_host.is_not(None), new.site_host.is_not(None), old.site_host != new.site_host)
    sites = {
        "other_site_host": case((moved, old.site_host), else_=old.other_site_host),
        "other_site_host_at": case((moved, old.site_host_at), else_=old.other_site_host_at),
    }
    return insert.on_conflict_do_update(
        index_elements=[old.key_id],
        set_={"last_heartbeat_at": new.last_heartbeat_at, **kept, **sites},
        where=old.last_heartbeat_at <= new.last_heartbeat_at,
    )


_KEY = bindparam("key", type_=contacts.c.key_id.type)
_NOW = bindparam("now", type_=contacts.c.ended_at.type)
_RUNNING = and_(contacts.c.key_id == _KEY, contacts.c.ended_at >= _NOW - ONLINE_FOR, contacts.c.started_at <= _NOW)
_EXTEND = update(contacts).where(_RUNNING, contacts.c.ended_at < _NOW).values(ended_at=_NOW)


def _begin(insert: Any) -> Any:
    """A new run of contact after a gap of more than the online window; none while one is running."""
    begun = select(_KEY, _NOW, _NOW).where(~exists().where(_RUNNING))
    return insert.from_select(["key_id", "started_at", "ended_at"], begun).on_conflict_do_nothing()


async def spans(session: Executor, key_id: int, since: int) -> list[Span]:
    """The runs of contact that ended after an instant, oldest first."""
    query = (
        select(contacts.c.started_at, contacts.c.ended_at)
        .where(contacts.c.key_id == key_id, contacts.c.ended_at >= since)
        .order_by(contacts.c.started_at)
    )
    return [Span(row.started_at, row.ended_at) for row in await session.execute(query)]
