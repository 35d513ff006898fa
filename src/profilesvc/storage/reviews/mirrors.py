"""Queries on stored responses of the provider about reviews."""

from sqlalchemy import and_, select
from sqlalchemy.ext.asyncio import AsyncSession

from profilesvc.database.statements import Executor, upsert
from profilesvc.storage.tables import mirrors, readings


async def find(session: Executor, owner_id: int, location: str, query: str, after: int) -> str | None:
    """Return the stored response to a query, if it was read after an instant and no notification came since then."""
    of_location = and_(readings.c.owner_id == mirrors.c.owner_id, readings.c.location_name == mirrors.c.location_name)
    statement = (
        select(mirrors.c.document, mirrors.c.read_at, readings.c.reviews_from)
        .select_from(mirrors.outerjoin(readings, of_location))
        .where(mirrors.c.owner_id == owner_id, mirrors.c.location_name == location, mirrors.c.query == query)
    )
    row = (await session.execute(statement)).first()
    return None if row is None or row.read_at <= max(after, row.reviews_from or 0) else str(row.document)


async def put(session: AsyncSession, owner_id: int, location: str, query: str, read_at: int, document: str) -> None:
    """Store the response to a query; the reading started at `read_at`."""
    values = {"read_at": read_at, "document": document}
    is_later = mirrors.c.read_at <= read_at
    await upsert(session, mirrors, values, is_later, owner_id=owner_id, location_name=location, query=query)
