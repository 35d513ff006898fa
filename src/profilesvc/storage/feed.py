"""Queries on the provider's change feed: messages that were received and what they have named."""

from typing import Any, NamedTuple

from sqlalchemy import and_, delete, select, update
from sqlalchemy.ext.asyncio import AsyncSession

from profilesvc.database.statements import Executor, columns, insert_into, insert_new, records
from profilesvc.storage.locations import What, is_kept
from profilesvc.storage.tables import changed_locations, locations, notifications

_CHANGED = changed_locations.c


async def receive(session: AsyncSession, message_id: str, now: int) -> bool:
    """Store that a message was received; return False if it was before."""
    return await insert_new(session, notifications, message_id=message_id, received_at=now)


async def mark(session: AsyncSession, owner_id: int, location: str, what: What, now: int) -> None:
    """Store that something of a location has changed, to be read again."""
    values = {"location_name": location, "what": what, "owner_id": owner_id, "due_at": now, "times": 1}
    insert = insert_into(session, changed_locations).values(**values)
    again = {"owner_id": owner_id, "due_at": now, "times": _CHANGED.times + 1}
    await session.execute(
        insert.on_conflict_do_update(index_elements=[_CHANGED.location_name, _CHANGED.what], set_=again)
    )


class Changed(NamedTuple):
    """A location that a notification has named, and that is due to be read again."""

    location_name: str
    what: What
    owner_id: int
    times: int


async def due(session: Executor, now: int, limit: int) -> list[Changed]:
    """Return what is due of all owners, the longest waiting first."""
    query = select(*columns(changed_locations, Changed._fields)).where(_CHANGED.due_at <= now)
    return await records(session, Changed, query.order_by(_CHANGED.due_at, _CHANGED.location_name).limit(limit))


def _is(change: Changed) -> Any:
    return and_(_CHANGED.location_name == change.location_name, _CHANGED.what == change.what)


async def done(session: AsyncSession, change: Changed) -> None:
    """Forget what was read, unless a further notification came since it was found."""
    await session.execute(delete(changed_locations).where(_is(change), _CHANGED.times == change.times))


async def postpone(session: AsyncSession, change: Changed, until: int) -> None:
    """Read it later."""
    await session.execute(update(changed_locations).where(_is(change)).values(due_at=until))


async def accounts(session: Executor) -> list[tuple[int, int | None, str]]:
    """Return (owner, login, account) of the locations of all owners, each once, for the operator."""
    query = (
        select(locations.c.owner_id, locations.c.connection_id, locations.c.account)
        .where(is_kept())
        .distinct()
        .order_by(locations.c.owner_id, locations.c.account)
    )
    return [(row.owner_id, row.connection_id, row.account) for row in await session.execute(query)]
