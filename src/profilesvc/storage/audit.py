"""The audit trail: appended, read by owner or key, pruned by age (D-61)."""

from typing import Any

from sqlalchemy import Row, delete, insert, select
from sqlalchemy.ext.asyncio import AsyncSession

from profilesvc.storage.engine import Executor
from profilesvc.storage.tables import audit


async def add(session: AsyncSession, **values: Any) -> None:
    """Append an event."""
    await session.execute(insert(audit).values(**values))


async def of_key(session: Executor, key_id: int, before: int | None, limit: int) -> list[Row[Any]]:
    """Events of a key, newest first, older than the event `before`."""
    query = select(audit).where(audit.c.key_id == key_id).order_by(audit.c.id.desc()).limit(limit)
    return list(await session.execute(query if before is None else query.where(audit.c.id < before)))


async def of_user(session: Executor, user_id: int, before: int | None, limit: int) -> list[Row[Any]]:
    """Events of a user and all of their keys, newest first, older than the event `before`."""
    query = select(audit).where(audit.c.user_id == user_id).order_by(audit.c.id.desc()).limit(limit)
    return list(await session.execute(query if before is None else query.where(audit.c.id < before)))


async def prune(session: AsyncSession, before: int) -> None:
    """Forget events older than an instant."""
    await session.execute(delete(audit).where(audit.c.at < before))
