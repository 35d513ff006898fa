"""Bulk inserts: COPY on PostgreSQL, executemany on SQLite, in one transaction per batch."""

from collections.abc import Iterable, Sequence
from itertools import islice
from typing import cast

import asyncpg
from sqlalchemy import Table, func, select, text
from sqlalchemy.ext.asyncio import AsyncSession

from profilesvc.database.engine import Storage
from profilesvc.database.migrate import LIMITS
from profilesvc.database.statements import Executor, has_row
from profilesvc.storage.tables import businesses, keys, metadata, users
from profilesvc.storage.users import continue_numbering

PIECE = 5_000  # rows of a transaction, which is short enough that a running service can write in between
_ANALYZE_SECONDS = 600.0
# The second is for Citus, which otherwise opens a connection for each shard in each transaction, and closes it again.
# Such a transaction has taken longer than the time limit of the role. PostgreSQL ignores it.
_SETTINGS = "SET LOCAL synchronous_commit = off", "SET LOCAL citus.max_adaptive_executor_pool_size = 1"


async def load(storage: Storage, table: Table, columns: Sequence[str], rows: Iterable[tuple[object, ...]]) -> int:
    """Insert rows, which are tuples in the order of `columns`; return how many there were.

    Raises:
        ServiceError: SERVICE_UNAVAILABLE.
    """
    remaining, count = iter(rows), 0
    while batch := list(islice(remaining, PIECE)):
        storage.renew()
        async with storage.write() as session:
            await _insert(session, table, columns, batch)
        count += len(batch)
    return count


async def _insert(session: AsyncSession, table: Table, columns: Sequence[str], rows: list[tuple[object, ...]]) -> None:
    connection = await session.connection()
    if connection.dialect.name == "postgresql":
        for setting in _SETTINGS:
            await session.execute(text(setting))
        driver = cast(asyncpg.Connection, (await connection.get_raw_connection()).driver_connection)
        await driver.copy_records_to_table(table.name, columns=columns, records=rows)
    else:
        places = ", ".join("?" * len(columns))
        statement = f"INSERT INTO {table.name} ({', '.join(columns)}) VALUES ({places})"
        await connection.exec_driver_sql(statement, rows)


async def next_ids(session: Executor) -> tuple[int, int]:
    """Return the first free id of users and businesses, and that of keys."""
    last = [(await session.execute(select(func.max(t.c.id)))).scalar_one() or 0 for t in (users, businesses, keys)]
    return max(last[:2]) + 1, last[2] + 1


async def has_users_besides(session: Executor, emails: list[str], domain: str) -> bool:
    """Return whether there are users other than these and those with an address at this domain."""
    others = select(users.c.id).where(users.c.email.not_in(emails), users.c.email.not_like(f"%@{domain}"))
    return await has_row(session, others.limit(1))


async def settle(storage: Storage, tables: Sequence[Table]) -> None:
    """Continue the sequences after rows that were inserted with ids, and update the planner's statistics."""
    storage.renew()
    async with storage.write() as session:
        if storage.is_sqlite:
            return
        await continue_numbering(session, *(table.name for table in tables))
    for table in metadata.sorted_tables:
        await _analyze(storage, table)


async def _analyze(storage: Storage, table: Table) -> None:
    """Update the planner's statistics on a table, which takes longer than a unit of work for many shards of Citus."""
    async with storage.engine.begin() as connection:
        for setting in LIMITS:
            await connection.exec_driver_sql(setting)
        driver = cast(asyncpg.Connection, (await connection.get_raw_connection()).driver_connection)
        await driver.execute(f"ANALYZE {table.name}", timeout=_ANALYZE_SECONDS)
