"""PostgreSQL's plans for recorded statements if the tables of tenants were partitioned by owner, as on shards."""

import contextlib
import json
import math
import re
from collections.abc import AsyncIterator, Iterator, Sequence
from typing import Any

import asyncpg
from sqlalchemy import Engine, event

from profilesvc.database.statements import FastReader, Readers
from profilesvc.database.writers import Executions
from profilesvc.services.context import Services
from profilesvc.storage.tables import TENANTS, metadata

PARTS = 4
_READS_ROWS = re.compile(r"\s*(SELECT|INSERT|UPDATE|DELETE|WITH)\b")
_FOREIGN_KEYS = (
    "SELECT conname, pg_get_constraintdef(oid) FROM pg_constraint WHERE conrelid = $1::regclass AND contype = 'f'"
)
Recorded = dict[str, Sequence[Any]]  # each statement with the values of one execution


@contextlib.contextmanager
def recorded(services: Services) -> Iterator[Recorded]:
    """The statements on the service's database during the block, by SQLAlchemy and by the driver."""
    storage, seen = services.storage, Recorded()
    readers, commit = storage.readers, storage.commit

    def sent(connection: Any, _cursor: Any, statement: str, values: Any, _context: Any, is_many: bool) -> None:
        if connection.engine.url.database == storage.engine.url.database and _READS_ROWS.match(statement):
            seen[statement] = values[0] if is_many else values

    async def committed(steps: list[Executions], within: float = math.inf) -> None:
        seen.update((step.sql, step.rows[0]) for step in steps if step.rows)
        await commit(steps, within)

    event.listen(Engine, "before_cursor_execute", sent)
    storage.readers = _Recording(readers, seen)
    storage.commit = committed  # type: ignore[method-assign]
    try:
        yield seen
    finally:
        storage.readers, storage.commit = readers, commit  # type: ignore[method-assign]
        event.remove(Engine, "before_cursor_execute", sent)


class _Recording:
    """Readers that record what is sent to the driver itself."""

    def __init__(self, readers: Readers, seen: Recorded) -> None:
        self._readers, self._seen = readers, seen
        self.usage, self.close = readers.usage, readers.close

    @contextlib.asynccontextmanager
    async def open(self, seconds: float) -> AsyncIterator[FastReader]:
        async with self._readers.open(seconds) as reader:
            fetch = reader.fetch

            async def recorded_fetch(sql: str, values: list[object], /) -> Sequence[Any]:
                self._seen[sql] = values
                return await fetch(sql, values)

            reader.fetch = recorded_fetch  # type: ignore[method-assign]
            yield reader


@contextlib.asynccontextmanager
async def partitioned(database: asyncpg.Connection) -> AsyncIterator[None]:
    """Empty tables of tenants with the keys of the real ones, partitioned by owner, in front of the real ones."""
    transaction = database.transaction()
    await transaction.start()  # never committed, so that nothing stays
    await database.execute("CREATE SCHEMA parts; SET LOCAL search_path = parts, public")
    tables = [table.name for table in metadata.sorted_tables if table.name in TENANTS]
    for table in tables:
        owner = "id" if table == "users" else "owner_id"
        await database.execute(
            f"CREATE TABLE parts.{table} (LIKE public.{table} INCLUDING ALL) PARTITION BY HASH ({owner})"
        )
        for part in range(PARTS):
            within = f"WITH (MODULUS {PARTS}, REMAINDER {part})"
            await database.execute(f"CREATE TABLE parts.{table}_{part} PARTITION OF parts.{table} FOR VALUES {within}")
    for table in tables:  # the foreign keys refer to the new tables, which are first in the search path
        for name, definition in await database.fetch(_FOREIGN_KEYS, f"public.{table}"):
            await database.execute(
                f"ALTER TABLE parts.{table} ADD CONSTRAINT {name} {definition.replace('public.', '')}"
            )
    try:
        yield
    finally:
        await transaction.rollback()


async def parts(database: asyncpg.Connection, statement: str, values: Sequence[Any]) -> set[str]:
    """The partitions that PostgreSQL would read or change, each by its number; `all` for a table without pruning."""
    plan = json.loads(await database.fetchval(f"EXPLAIN (FORMAT JSON) {statement}", *values))[0]["Plan"]
    return set(_parts(plan))


def _parts(node: dict[str, Any]) -> Iterator[str]:
    table, _, part = node.get("Relation Name", "").rpartition("_")
    if table in TENANTS and part.isdecimal():
        yield part
    for child in node.get("Plans", []):
        yield from _parts(child)
