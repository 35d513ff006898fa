"""Queries on syncs: the history, and the lock of a location."""

from typing import NamedTuple

from sqlalchemy import insert, or_, select, update
from sqlalchemy.ext.asyncio import AsyncSession

from profilesvc.contract.sync import SyncDirection, SyncStatus
from profilesvc.database.statements import Executor, columns, has_row, record, records
from profilesvc.storage.locations import LocationState, is_kept, is_location
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
    """Take the lock of a location and return its row.

    Return None, and change nothing, while another sync holds the lock, and if the location is disconnected.
    """
    is_free = or_(locations.c.sync_lease.is_(None), locations.c.sync_lease_until <= now)
    statement = (
        update(locations)
        .where(is_location(owner_id, location), is_kept(), is_free)
        .values(sync_lease=holder, sync_lease_until=until)
        .returning(*columns(locations, LocationState._fields))
    )
    return await record(session, LocationState, statement)


async def end_lock(session: AsyncSession, owner_id: int, location: str, holder: str, **values: object) -> bool:
    """Set columns of a location and end its lock.

    Return False, and change nothing, if the holder has lost the lock: the location was disconnected, even if it is
    connected again, or another sync has taken the lock over.
    """
    is_held = is_location(owner_id, location), is_kept(), locations.c.sync_lease == holder
    statement = update(locations).where(*is_held).values(sync_lease=None, sync_lease_until=None, **values)
    return await has_row(session, statement.returning(locations.c.name))
