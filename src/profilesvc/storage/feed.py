"""Queries on the provider's change feed: messages that were received, what they have named, and mirrors."""

from typing import Any, Literal, NamedTuple

from sqlalchemy import and_, delete, select, update
from sqlalchemy.ext.asyncio import AsyncSession

from profilesvc.database.statements import Executor, insert_into, upsert
from profilesvc.storage.locations import is_kept
from profilesvc.storage.tables import (
    changed_locations,
    location_owners,
    locations,
    mirrors,
    notifications,
    readings,
)

What = Literal["profile", "reviews"]
_CHANGED = changed_locations.c


async def receive(session: AsyncSession, message_id: str, now: int) -> bool:
    """Store that a message was received; return False if it was before."""
    row = insert_into(session, notifications).values(message_id=message_id, received_at=now).on_conflict_do_nothing()
    return (await session.execute(row.returning(notifications.c.message_id))).first() is not None


async def owner_of(session: Executor, location: str) -> int | None:
    """Return the owner of a location, or None."""
    query = select(location_owners.c.owner_id).where(location_owners.c.name == location)
    return (await session.execute(query)).scalar_one_or_none()


async def mark(session: AsyncSession, owner_id: int, location: str, what: What, now: int) -> None:
    """Store that something of a location has changed, to be read again."""
    values = {"location_name": location, "what": what, "owner_id": owner_id, "due_at": now, "times": 1}
    insert = insert_into(session, changed_locations).values(**values)
    again = {"owner_id": owner_id, "due_at": now, "times": _CHANGED.times + 1}
    await session.execute(
        insert.on_conflict_do_update(index_elements=[_CHANGED.location_name, _CHANGED.what], set_=again)
    )


async def expire(session: AsyncSession, owner_id: int, location: str, what: What, at: int) -> None:
    """Let nothing of a location be returned from a cache that was read until an instant."""
    await upsert(session, readings, {f"{what}_from": at}, owner_id=owner_id, location_name=location)


class Changed(NamedTuple):
    """A location that a notification has named, and that is due to be read again."""

    location_name: str
    what: What
    owner_id: int
    times: int


async def due(session: Executor, now: int, limit: int) -> list[Changed]:
    """Return what is due of all owners, the longest waiting first."""
    columns: Any = [_CHANGED[name] for name in Changed._fields]
    query = (
        select(*columns).where(_CHANGED.due_at <= now).order_by(_CHANGED.due_at, _CHANGED.location_name).limit(limit)
    )
    return [Changed._make(row) for row in await session.execute(query)]


def _is(change: Changed) -> Any:
    return and_(_CHANGED.location_name == change.location_name, _CHANGED.what == change.what)


async def done(session: AsyncSession, change: Changed) -> None:
    """Forget what was read, unless a further notification came since it was found."""
    await session.execute(delete(changed_locations).where(_is(change), _CHANGED.times == change.times))


async def postpone(session: AsyncSession, change: Changed, until: int) -> None:
    """Read it later."""
    await session.execute(update(changed_locations).where(_is(change)).values(due_at=until))


async def valid_from(session: Executor, owner_id: int, location: str, what: What) -> int:
    """Return the instant after which a reading may be returned from a cache."""
    column = readings.c.profile_from if what == "profile" else readings.c.reviews_from
    query = select(column).where(readings.c.owner_id == owner_id, readings.c.location_name == location)
    return (await session.execute(query)).scalar_one_or_none() or 0


async def mirrored(session: Executor, owner_id: int, location: str, query: str, after: int) -> str | None:
    """Return the stored response to a query, if it was read after an instant and no notification came since then."""
    of_location = and_(readings.c.owner_id == mirrors.c.owner_id, readings.c.location_name == mirrors.c.location_name)
    statement = (
        select(mirrors.c.document, mirrors.c.read_at, readings.c.reviews_from)
        .select_from(mirrors.outerjoin(readings, of_location))
        .where(mirrors.c.owner_id == owner_id, mirrors.c.location_name == location, mirrors.c.query == query)
    )
    row = (await session.execute(statement)).first()
    return None if row is None or row.read_at <= max(after, row.reviews_from or 0) else str(row.document)


async def mirror(session: AsyncSession, owner_id: int, location: str, query: str, read_at: int, document: str) -> None:
    """Store the response to a query; the reading started at `read_at`."""
    values = {"read_at": read_at, "document": document}
    is_later = mirrors.c.read_at <= read_at
    await upsert(session, mirrors, values, is_later, owner_id=owner_id, location_name=location, query=query)


async def google_update(session: Executor, owner_id: int, location: str) -> str | None:
    """Return the digest of the provider's own changes that were published last."""
    query = select(readings.c.google_update).where(
        readings.c.owner_id == owner_id, readings.c.location_name == location
    )
    return (await session.execute(query)).scalar_one_or_none()


async def note_google_update(
    session: AsyncSession, owner_id: int, location: str, before: str | None, digest: str | None
) -> bool:
    """Store the digest of the provider's own changes; return False if another process was first."""
    is_same = readings.c.google_update.is_not_distinct_from(before)
    values = {"google_update": digest}
    return await upsert(session, readings, values, is_same, owner_id=owner_id, location_name=location)


async def accounts(session: Executor) -> list[tuple[int, int | None, str]]:
    """Return (owner, login, account) of the locations of all owners, each once, for the operator."""
    query = (
        select(locations.c.owner_id, locations.c.connection_id, locations.c.account)
        .where(is_kept())
        .distinct()
        .order_by(locations.c.owner_id, locations.c.account)
    )
    return [(row.owner_id, row.connection_id, row.account) for row in await session.execute(query)]
