"""Queries on refresh token families. An exchange is one conditional write, so that no race has two winners."""

from typing import NamedTuple

from sqlalchemy import case, select, update
from sqlalchemy.ext.asyncio import AsyncSession

from profilesvc.database.statements import Executor, columns, has_row, insert_new, record
from profilesvc.storage.tables import families


class Family(NamedTuple):
    """The state of a family: its newest generation, when that was issued, and the claims of its tokens."""

    generation: int
    rotated_at: int
    successor: str


class Exchange(NamedTuple):
    """An exchange that replaces a generation of a family; `successor` has the claims of the next one."""

    owner_id: int
    family: str
    key_id: int
    generation: int
    successor: str
    expires_at: int


async def advance(session: AsyncSession, exchange: Exchange, now: int) -> bool:
    """Record an exchange; return True for exactly one caller. The first one adds the row, so that a grant adds none."""
    values = {"generation": exchange.generation + 1, "rotated_at": now, "successor": exchange.successor}
    if exchange.generation == 0:
        key = {"owner_id": exchange.owner_id, "id": exchange.family, "key_id": exchange.key_id}
        return await insert_new(session, families, **key, expires_at=exchange.expires_at, **values)
    later = case((families.c.expires_at < exchange.expires_at, exchange.expires_at), else_=families.c.expires_at)
    of_family = families.c.owner_id == exchange.owner_id, families.c.id == exchange.family
    replaced = update(families).where(*of_family, families.c.generation == exchange.generation)
    return await has_row(session, replaced.values(expires_at=later, **values).returning(families.c.id))


async def find(session: Executor, owner_id: int, family: str) -> Family | None:
    """Return the state of a family, or None before its first exchange."""
    query = select(*columns(families, Family._fields))
    return await record(session, Family, query.where(families.c.owner_id == owner_id, families.c.id == family))
