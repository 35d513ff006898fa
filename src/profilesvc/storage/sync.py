"""Queries on syncs: the history, and the lock of a location."""

from typing import NamedTuple

from sqlalchemy import insert, or_, select, update
from sqlalchemy.ext.asyncio import AsyncSession

from profilesvc.contract.sync import SyncDirection, SyncStatus
from profilesvc.database.statements import Executor, columns, record, records
from profilesvc.storage.locations import LocationState, change_kept, is_kept, is_location
from profilesvc.storage.tables import locations, syncs


class SyncRow(NamedTuple):
    """An entry of the history."""

    sync_id: str
    created_at: int
    status: SyncStatus
    direction: SyncDirection
    fields_updated: int


async def add(session: AsyncSession, owner_id: int, location: str, row: SyncRow) -> None:
    """Add an entry to the history of a location."""
    await session.execute(insert(syncs).values(owner_id=owner_id, location_name=location, **row._asdict()))


async def history(session: Executor, owner_id: int, location: str, offset: int, limit: int) -> list[SyncRow]:
    """Return one page, newest first."""
    query = (
        select(*columns(syncs, SyncRow._fields))
        .where(syncs.c.owner_id == owner_id, syncs.c.location_name == location)
        .order_by(syncs.c.created_at.desc(), syncs.c.id.desc())
        .offset(offset)
        .limit(limit)
    )
    return await records(session, SyncRow, query)


async def take_lock(
    session: AsyncSession, owner_id: int, location: str, holder: str, now: int, until: int
) -> LocationState | None:
    """Take the lock of a location and return its row; None if another sync has it, or the location is disconnected."""
    is_free = or_(locations.c.sync_lease.is_(None), locations.c.sync_lease_until <= now)
    taken = update(locations).where(is_location(owner_id, location), is_kept(), is_free)
    taken = taken.values(sync_lease=holder, sync_lease_until=until)
    return await record(session, LocationState, taken.returning(*columns(locations, LocationState._fields)))


async def end_lock(session: AsyncSession, owner_id: int, location: str, holder: str, **values: object) -> bool:
    """Set columns of a location and end its lock; return False, and change nothing, if the holder has lost the lock."""
    is_held, ended = locations.c.sync_lease == holder, {"sync_lease": None, "sync_lease_until": None}
    return await change_kept(session, owner_id, location, is_held, **ended, **values)
