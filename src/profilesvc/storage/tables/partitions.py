"""The tables that are partitioned by month on PostgreSQL, so that old rows are dropped with their partition (D-104).

The migration of a table names its column of time, in milliseconds, and creates the default partition, so that an insert
never fails. Partitions of coming months are created while they are empty: a month whose rows are in the default
partition already cannot get one. Another table needs its name in MONTHLY, and a line in the KEPT of housekeeping.
"""

import re
from collections.abc import Mapping

from sqlalchemy import text
from sqlalchemy.exc import DBAPIError
from sqlalchemy.ext.asyncio import AsyncEngine

from profilesvc.database import nodes
from profilesvc.database.migrate import LIMITS
from profilesvc.database.unavailable import sqlstate
from profilesvc.domain.time import iso, month_start

AHEAD = 2  # months after the current one
ON_A_WORKER = "partitions of the months are created and dropped by processes that are connected to the coordinator"


MONTHLY: tuple[str, ...] = ("audit", "syncs", "events")
_PARTITION = re.compile(rf"({'|'.join(MONTHLY)})_(default|\d{{4}}_\d\d)")
_PARTITIONS = text(
    "SELECT part.relname FROM pg_inherits JOIN pg_class AS part ON part.oid = inhrelid "
    "WHERE inhparent = to_regclass(:parent) ORDER BY 1"
)
_DONE = ("23505", "42P07", "42P17")  # another process created the partition at the same time
_EXPECTED = {
    "23514": "the default partition has rows of that month",
    "42501": "the role does not own the table",
    "55P03": "the table was locked",
}


def is_partition(name: str) -> bool:
    """Return whether a table is a partition of another one."""
    return _PARTITION.fullmatch(name) is not None


def months(first: int, last: int) -> list[int]:
    """Return the start of each month from that of one instant to that of another."""
    months = [month_start(first)]
    while months[-1] < month_start(last):
        months.append(month_start(months[-1], 1))
    return months


async def renew(
    engine: AsyncEngine, now: int, since: int | None = None, before: Mapping[str, int] | None = None
) -> list[str]:
    """Create the missing partitions of the current and the coming months, or of all months from `since` on.

    Drop the partitions of each table in `before` whose month ended by that instant. Return what could not be done, for
    the operator: the rows of a month without a partition are in the default partition. SQLite has no partitions.
    """
    if engine.dialect.name != "postgresql":
        return []
    if await nodes.is_worker(engine):
        return [ON_A_WORKER]
    problems = []
    for table in MONTHLY:
        there = await _partitions(engine, table)
        for month in months(now if since is None else since, month_start(now, AHEAD)):
            if (name := _name(table, month)) not in there:
                problems += await _create(engine, table, name, month)
        oldest = _name(table, (before or {}).get(table, 0))
        for name in there:
            if name < oldest:
                problems += await _run(engine, f"DROP TABLE IF EXISTS {name}", name, "dropped")
    return problems


async def _create(engine: AsyncEngine, table: str, name: str, month: int) -> list[str]:
    bounds = f"FROM ({month}) TO ({month_start(month, 1)})"
    statement = f"CREATE TABLE IF NOT EXISTS {name} PARTITION OF {table} FOR VALUES {bounds}"
    return await _run(engine, statement, name, "created")


def _name(table: str, instant: int) -> str:
    return f"{table}_{iso(instant)[:7].replace('-', '_')}"


async def _partitions(engine: AsyncEngine, table: str) -> list[str]:
    """Return the names of the partitions of months; they sort by time."""
    async with engine.connect() as connection:
        names = (await connection.execute(_PARTITIONS, {"parent": table})).scalars()
        return [name for name in names if is_partition(name) and not name.endswith("_default")]


async def _run(engine: AsyncEngine, statement: str, name: str, done: str) -> list[str]:
    """Run a statement in its own transaction, which waits half a second at most for the locks."""
    try:
        async with engine.begin() as connection:
            for setting in LIMITS:
                await connection.exec_driver_sql(setting)
            await connection.exec_driver_sql(statement)
    except DBAPIError as error:
        if (code := sqlstate(error)) in _DONE:
            return []
        if (reason := _EXPECTED.get(code)) is None:
            raise
        return [f"the partition {name} was not {done}: {reason}"]
    return []
