"""How each database would carry out a statement: what it would have to read from end to end."""

import contextlib
import json
import re
import sqlite3
from collections.abc import Iterator
from types import ModuleType
from typing import Any

import asyncpg
from sqlalchemy import Engine, event

from profilesvc.database.statements import Prepared, PreparedWrite
from profilesvc.services.context import Services
from profilesvc.storage import heartbeats, keys, locations, posts, users
from profilesvc.storage.insight import overview
from profilesvc.storage.upkeep import census

HANDFUL = {
    "census",
    "signing_keys",
    "sweep_marks",
    "alembic_version",
    "alembic_version_pkc",
    "json_each",
}  # a few rows whatever the size of the service
_BY_INDEX_IF_THERE_IS_ONE = (
    "SET enable_seqscan = off; SET enable_hashjoin = off; SET enable_mergejoin = off;"
    "SET plan_cache_mode = force_generic_plan; SET enable_partition_pruning = off"  # nothing is in a month of NULL
)
_READS_ROWS = re.compile(r"\s*(SELECT|INSERT|UPDATE|DELETE|WITH)\b")
# Not the rows that another part of the statement has found: those are no table.
_SCAN = re.compile(r"SCAN (?!CONSTANT ROW|\d+ CONSTANT ROW|\(subquery|SUBQUERY|anon_)(\w+)")


def prepared(dialect: str) -> set[str]:
    """The statements of the hot paths, which run on the driver itself."""
    modules: list[ModuleType] = [users, census, heartbeats, keys, locations, overview, posts]
    found = [value for module in modules for value in vars(module).values()]
    reads = {query.sql(dialect, {})[0] for query in found if isinstance(query, Prepared)}
    return reads | {write.executions(dialect, []).sql for write in found if isinstance(write, PreparedWrite)}


@contextlib.contextmanager
def statements(services: Services) -> Iterator[set[str]]:
    """The statements on the service's database during the block, by SQLAlchemy and by the driver."""
    storage = services.storage
    seen = prepared(storage.engine.dialect.name)

    def sent(connection: Any, _cursor: Any, statement: str, *_rest: Any) -> None:
        if connection.engine.url.database == storage.engine.url.database and _READS_ROWS.match(statement):
            seen.add(statement)

    event.listen(Engine, "before_cursor_execute", sent)
    try:
        yield seen
    finally:
        event.remove(Engine, "before_cursor_execute", sent)


def sqlite_scans(path: str, statement: str) -> set[str]:
    """The tables that SQLite would read whole."""
    values = [None] * statement.count("?")
    with contextlib.closing(sqlite3.connect(path)) as database:
        rows = database.execute(f"EXPLAIN QUERY PLAN {statement}", values).fetchall()
    return {match[1] for row in rows if (match := _SCAN.match(row[3]))} - HANDFUL


async def postgres_scans(database: asyncpg.Connection, statement: str) -> set[str]:
    """The tables that PostgreSQL would read whole for want of an index, whatever the values are."""
    await database.execute(_BY_INDEX_IF_THERE_IS_ONE)
    places = max((int(number) for number in re.findall(r"\$(\d+)", statement)), default=0)
    nothing = f"({', '.join(['NULL'] * places)})" if places else ""
    await database.execute(f"PREPARE plan AS {statement}")
    try:
        rows = await database.fetch(f"EXPLAIN (FORMAT JSON) EXECUTE plan{nothing}")
    finally:
        await database.execute("DEALLOCATE plan")
    return set(_whole(json.loads(rows[0][0])[0]["Plan"], limited=False)) - HANDFUL


def _whole(node: dict[str, Any], limited: bool) -> Iterator[str]:
    """A scan without a condition on its index reads everything, unless a limit ends it before."""
    kind = node["Node Type"]
    limited = kind == "Limit" or (limited and kind not in {"Sort", "Aggregate", "Hash"})
    is_scan = kind == "Seq Scan" or (kind.startswith(("Index", "Bitmap Index")) and "Index Cond" not in node)
    if is_scan and not (limited and kind.startswith("Index")):
        yield node.get("Relation Name", node.get("Index Name", "?"))
    for child in node.get("Plans", []):
        yield from _whole(child, limited)
