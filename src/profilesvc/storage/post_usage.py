"""Queries on the monthly quota of posts."""

from typing import NamedTuple

from sqlalchemy import ColumnElement, and_, case, select, update
from sqlalchemy.ext.asyncio import AsyncSession

from profilesvc.database.statements import Executor, columns, has_row, insert_into, record
from profilesvc.storage.tables import post_usage

_COLUMNS = post_usage.c


class Usage(NamedTuple):
    """The number of posts of a month, and how many of them are only held, until `held_until`."""

    used: int
    held: int
    held_until: int

    def held_at(self, now: int) -> int:
        """Return how many are held; those of processes that were killed have ended."""
        return self.held if self.held_until > now else 0


def _is(owner_id: int, month: int) -> ColumnElement[bool]:
    return and_(_COLUMNS.owner_id == owner_id, _COLUMNS.month == month)


async def find(session: Executor, owner_id: int, month: int) -> Usage:
    """Return what is counted in a month."""
    query = select(*columns(post_usage, Usage._fields)).where(_is(owner_id, month))
    return await record(session, Usage, query) or Usage(0, 0, 0)


async def hold(session: AsyncSession, owner_id: int, month: int, limit: int | None, times: tuple[int, int]) -> bool:
    """Count one post of a month, which is held until `settle` or for the `times` (from, until).

    Return False if the limit is reached; a limit of None is none. Concurrent callers never exceed it.
    """
    now, until = times
    first = insert_into(session, post_usage).values(owner_id=owner_id, month=month, used=0)
    await session.execute(first.on_conflict_do_nothing())
    is_below = () if limit is None else (_COLUMNS.used < limit,)
    held = case((_COLUMNS.held_until > now, _COLUMNS.held), else_=0) + 1
    values = {"used": _COLUMNS.used + 1, "held": held, "held_until": until}
    statement = update(post_usage).where(_is(owner_id, month), *is_below).values(**values).returning(_COLUMNS.used)
    return await has_row(session, statement)


async def settle(session: AsyncSession, owner_id: int, month: int, *, released: int = 0, given_back: int = 0) -> Usage:
    """End a hold, and subtract a post that was counted but not created; each is 0 or 1. Return what is counted then."""
    values = {
        name: case((column >= amount, column - amount), else_=0)
        for name, column, amount in (("held", _COLUMNS.held, released), ("used", _COLUMNS.used, given_back))
        if amount
    }
    statement = update(post_usage).where(_is(owner_id, month)).values(**values)
    return await record(session, Usage, statement.returning(*columns(post_usage, Usage._fields))) or Usage(0, 0, 0)


async def warn(session: AsyncSession, owner_id: int, month: int, percent: int) -> bool:
    """Store that the owner is warned of this percentage; return False if that or a higher one is stored."""
    is_lower = (_is(owner_id, month), _COLUMNS.warned < percent)
    statement = update(post_usage).where(*is_lower).values(warned=percent).returning(_COLUMNS.warned)
    return await has_row(session, statement)
