"""Many rows at once: COPY on PostgreSQL, executemany on SQLite, a piece per transaction."""

from collections.abc import Iterable, Sequence
from itertools import islice
from typing import Any

from sqlalchemy import Table, func, insert, literal, select, text
from sqlalchemy.ext.asyncio import AsyncSession

from profilesvc.database.engine import Executor, Storage
from profilesvc.storage.tables import businesses, keys, metadata, users

PIECE = 20_000  # rows of a transaction: below the time that one may take, so that a running service goes on


async def load(storage: Storage, table: Table, columns: Sequence[str], rows: Iterable[tuple[Any, ...]]) -> int:
    """Insert rows, tuples in the order of `columns`; how many there were. SERVICE_UNAVAILABLE."""
    left, count = iter(rows), 0
    while piece := list(islice(left, PIECE)):
        storage.renew()
        async with storage.write() as session:
            await _insert(session, table, columns, piece)
        count += len(piece)
    return count


async def _insert(session: AsyncSession, table: Table, columns: Sequence[str], rows: list[tuple[Any, ...]]) -> None:
    connection = await session.connection()
    if connection.dialect.name == "postgresql":
        await session.execute(text("SET LOCAL synchronous_commit = off"))
        driver: Any = (await connection.get_raw_connection()).driver_connection
        await driver.copy_records_to_table(table.name, columns=columns, records=rows)
    else:
        statement = insert(table).values({name: literal(None) for name in columns})
        await connection.exec_driver_sql(str(statement.compile(dialect=connection.dialect)), rows)


async def next_ids(session: Executor) -> tuple[int, int]:
    """From where on the ids of users and of their businesses are free, and those of keys."""
    last = [(await session.execute(select(func.max(t.c.id)))).scalar_one() or 0 for t in (users, businesses, keys)]
    return max(last[:2]) + 1, last[2] + 1


async def has_users_besides(session: Executor, emails: list[str], domain: str) -> bool:
    """Whether there is anybody but these, and whoever has an address at this domain."""
    others = select(users.c.id).where(users.c.email.not_in(emails), users.c.email.not_like(f"%@{domain}"))
    return (await session.execute(others.limit(1))).first() is not None


async def settle(storage: Storage, tables: Sequence[Table]) -> None:
    """Let numbering go on after rows that came with ids, and the planner know how much there is."""
    storage.renew()
    async with storage.write() as session:
        if storage.is_sqlite:
            return
        for table in tables:
            await session.execute(
                text(f"SELECT setval(pg_get_serial_sequence('{table}', 'id'), (SELECT max(id) FROM {table}))")  # noqa: S608
            )
    for table in metadata.sorted_tables:
        storage.renew()
        async with storage.write() as session:
            await session.execute(text(f"ANALYZE {table.name}"))
