"""Queries for the copy of an owner's data: the rows of a table in pages, by its primary key."""

from collections.abc import Sequence
from typing import Any, NamedTuple

from sqlalchemy import select, tuple_

from profilesvc.database.statements import Executor
from profilesvc.storage.tables import metadata

Place = tuple[object, ...]


class RowPage(NamedTuple):
    """Rows with the chosen columns, and where the next ones start; None if there are none."""

    rows: list[tuple[Any, ...]]
    after: Place | None


async def page(
    session: Executor, table_name: str, columns: Sequence[str], owner_id: int, after: Place | None, limit: int
) -> RowPage:
    """Return rows of an owner after a place, in the order of the primary key."""
    table = metadata.tables[table_name]
    place = [column for column in table.primary_key if column.name != "owner_id"]
    query = select(*(table.c[name] for name in columns), *(column.label(f"place_{column.name}") for column in place))
    query = query.where(table.c.owner_id == owner_id).order_by(*place).limit(limit)
    if after is not None:
        query = query.where(tuple_(*place) > after)
    rows = [tuple(row) for row in await session.execute(query)]
    last = rows[-1][len(columns) :] if len(rows) == limit else None
    return RowPage([row[: len(columns)] for row in rows], last)
