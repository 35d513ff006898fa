"""Queries on heartbeats."""

from typing import Any, NamedTuple

from sqlalchemy import and_, bindparam, case, select, update
from sqlalchemy.ext.asyncio import AsyncSession

from profilesvc.domain.connection import ONLINE_FOR, Span
from profilesvc.storage.dialect import insert_into
from profilesvc.storage.engine import Executor
from profilesvc.storage.prepared import Prepared, fetch
from profilesvc.storage.tables import connections, contacts


class LastContact(NamedTuple):
    """The last heartbeat of a key and what it reported."""

    last_heartbeat_at: int
    plugin_version: str | None
    wp_version: str | None
    php_version: str | None
    site_host: str | None
    other_site_host: str | None
    other_site_host_at: int | None


_LAST = Prepared(
    select(*(connections.c[name] for name in LastContact._fields)).where(connections.c.key_id == bindparam("key_id"))
)


async def last_contact(session: Executor, key_id: int) -> LastContact | None:
    """The last heartbeat, None before the first."""
    rows = await fetch(session, _LAST, key_id=key_id)
    return LastContact._make(rows[0]) if rows else None


async def beat(
    session: AsyncSession, key_id: int, now: int, reported: dict[str, str], site_host: str | None = None
) -> None:
    """Record a heartbeat: the later receipt wins, what is not reported keeps its value (D-55)."""
    site = {} if site_host is None else {"site_host": site_host, "site_host_at": now}
    statement = insert_into(session, connections).values(key_id=key_id, last_heartbeat_at=now, **reported, **site)
    await session.execute(
        statement.on_conflict_do_update(
            index_elements=[connections.c.key_id],
            set_={"last_heartbeat_at": now, **reported, **site, **(_site_before(site_host) if site_host else {})},
            where=connections.c.last_heartbeat_at <= now,
        )
    )
    await _extend_contact(session, key_id, now)


def _site_before(site_host: str) -> dict[str, Any]:
    """The row's site becomes the other one when a heartbeat names a new one; one statement, so no race loses it."""
    site, other = connections.c.site_host, connections.c.other_site_host
    moved = and_(site.is_not(None), site != site_host)
    return {
        "other_site_host": case((moved, site), else_=other),
        "other_site_host_at": case((moved, connections.c.site_host_at), else_=connections.c.other_site_host_at),
    }


async def _extend_contact(session: AsyncSession, key_id: int, now: int) -> None:
    """Lengthen the running contact, or start a new one after a gap of more than the online window."""
    extended = (
        update(contacts)
        .where(contacts.c.key_id == key_id, contacts.c.ended_at >= now - ONLINE_FOR, contacts.c.started_at <= now)
        .values(ended_at=case((contacts.c.ended_at < now, now), else_=contacts.c.ended_at))
        .returning(contacts.c.started_at)
    )
    if (await session.execute(extended)).first() is None:
        started = insert_into(session, contacts).values(key_id=key_id, started_at=now, ended_at=now)
        await session.execute(started.on_conflict_do_nothing())


async def spans(session: Executor, key_id: int, since: int) -> list[Span]:
    """The runs of contact that ended after an instant, oldest first."""
    query = (
        select(contacts.c.started_at, contacts.c.ended_at)
        .where(contacts.c.key_id == key_id, contacts.c.ended_at >= since)
        .order_by(contacts.c.started_at)
    )
    return [Span(row.started_at, row.ended_at) for row in await session.execute(query)]
