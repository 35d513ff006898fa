"""Queries on syncs: the history, and the lease of a location."""

from typing import Any

from sqlalchemy import Row, insert, or_, select, update
from sqlalchemy.ext.asyncio import AsyncSession

from profilesvc.database.engine import Executor
from profilesvc.storage.tables import locations, syncs


async def add(session: AsyncSession, **values: Any) -> None:
    """Add an entry to the history."""
    await session.execute(insert(syncs).values(**values))


async def history(session: Executor, location: str, offset: int, limit: int) -> list[Row[Any]]:
    """Return one page, newest first."""
    query = (
        select(syncs.c.sync_id, syncs.c.created_at, syncs.c.status, syncs.c.direction, syncs.c.fields_updated)
        .where(syncs.c.location_name == location)
        .order_by(syncs.c.created_at.desc(), syncs.c.id.desc())
        .offset(offset)
        .limit(limit)
    )
    return list(await session.execute(query))


async def take_lease(session: AsyncSession, location: str, holder: str, now: int, until: int) -> bool:
    """Take the lease of a location; return False if another sync holds it (D-87)."""
    statement = (
        update(locations)
        .where(
            locations.c.name == location,
            or_(locations.c.sync_lease.is_(None), locations.c.sync_lease_until <= now),
        )
        .values(sync_lease=holder, sync_lease_until=until)
        .returning(locations.c.name)
    )
    return (await session.execute(statement)).first() is not None


async def end_lease(session: AsyncSession, location: str, holder: str) -> None:
    """End the lease, unless another sync has taken it over."""
    await session.execute(
        update(locations)
        .where(locations.c.name == location, locations.c.sync_lease == holder)
        .values(sync_lease=None, sync_lease_until=None)
    )
