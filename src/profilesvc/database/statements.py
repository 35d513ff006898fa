"""Statements: written as Core statements, compiled once, run on the database's own driver.

Building and compiling a statement costs several times as much as SQLite or PostgreSQL need to run it. A `Prepared` is
built at import, and compiled for a database at its first use. A reader runs it on the driver itself (`fetch`), and any
other statement through SQLAlchemy (`execute`).
"""

import asyncio
import contextlib
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, Protocol, Self, TypeVar, cast

from sqlalchemy import (
    URL,
    ClauseElement,
    ColumnElement,
    Connection,
    Executable,
    FromClause,
    Result,
    Select,
    StaticPool,
    Table,
    create_engine,
    func,
    literal_column,
    select,
    true,
)
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.dialects.postgresql import asyncpg
from sqlalchemy.dialects.sqlite import aiosqlite
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine, AsyncSession
from sqlalchemy.sql.compiler import SQLCompiler

from profilesvc.database.pool_usage import PoolUsage
from profilesvc.database.postgres_pool import PostgresPool
from profilesvc.database.writers import Executions

_DIALECTS = {"sqlite": aiosqlite.dialect(), "postgresql": asyncpg.dialect()}  # type: ignore[no-untyped-call]

Parameters = Mapping[str, object] | Sequence[Mapping[str, object]]
Insert = postgresql.Insert | sqlite.Insert
Positionals = list[tuple[str, object]]  # name and default of each positional value
Row = Sequence[Any]  # the columns of a row, whose types the statement decides


def _compiled(statement: ClauseElement, dialect: str, columns: Sequence[str] | None = None) -> tuple[str, Positionals]:
    compiled = cast(SQLCompiler, statement.compile(dialect=_DIALECTS[dialect], column_keys=columns))
    return str(compiled), [(name, compiled.params[name]) for name in compiled.positiontup or []]


def separated(text: ColumnElement[str], separator: str) -> ColumnElement[str]:
    """Join strings in an aggregate, null if there are none, because fetching rows costs more than finding them."""
    return func.aggregate_strings(text, literal_column(f"'{separator}'"))  # type: ignore[arg-type]  # in the text


def joined(texts: Select[str], separator: str) -> ColumnElement[str]:
    """Join the only column of a statement, in its order."""
    return select(separated(texts.subquery().c[0], separator)).scalar_subquery()


class Executor(Protocol):
    """A session, a connection or a reader: it can run a query."""

    async def execute(self, statement: Executable, parameters: Parameters | None = None, /) -> Result[Any]: ...


class Prepared:
    """A read with named parameters (`bindparam`), whose columns are strings and integers on both drivers."""

    def __init__(self, statement: Select[*tuple[object, ...]]) -> None:
        self.statement = statement
        self.width = len(statement.selected_columns)
        self._by_dialect: dict[str, tuple[str, dict[str, object], list[str]]] = {}
        self._with_prefetch: dict[Prepared, Prepared] = {}

    def sql(self, dialect: str, parameters: dict[str, object]) -> tuple[str, list[object]]:
        """Return the SQL and the positional values for a database."""
        compiled = self._by_dialect.get(dialect)
        if compiled is None:
            text, positionals = _compiled(self.statement, dialect)
            compiled = self._by_dialect[dialect] = text, dict(positionals), [name for name, _ in positionals]
        text, defaults, names = compiled
        values = defaults | parameters
        return text, [values[name] for name in names]

    def with_prefetch(self, other: "Prepared") -> "Prepared":
        """Return one statement for both: this row, then the first row of the other, or nulls if it has none."""
        if other not in self._with_prefetch:
            first, second = self.statement.subquery(), other.statement.limit(1).subquery()
            both = select(*first.c, *second.c).select_from(first.outerjoin(second, true()))
            self._with_prefetch[other] = Prepared(both)
        return self._with_prefetch[other]


class Prefetch(NamedTuple):
    """A read of one row in the statement that finds the caller.

    A prefetch with a `location` is only for keys of that location, so that timing does not reveal other locations;
    one without is only for users.
    """

    query: Prepared
    parameters: dict[str, object]
    location: str | None = None


class PreparedWrite:
    """A write with named parameters for many rows; `build` is the statement, or returns it for a dialect."""

    def __init__(
        self, build: ClauseElement | Callable[[str], ClauseElement], columns: Sequence[str] | None = None
    ) -> None:
        self._build, self._columns = build, columns
        self._by_dialect: dict[str, tuple[str, Positionals]] = {}

    def executions(self, dialect: str, rows: Sequence[Mapping[str, object]]) -> Executions:
        compiled = self._by_dialect.get(dialect)
        if compiled is None:
            statement = self._build if isinstance(self._build, ClauseElement) else self._build(dialect)
            compiled = self._by_dialect[dialect] = _compiled(statement, dialect, self._columns)
        text, positionals = compiled
        return Executions(text, [[row.get(name, default) for name, default in positionals] for row in rows])


async def fetch(session: Executor, query: Prepared, **parameters: object) -> Sequence[Row]:
    """Return the rows as tuples: from the driver in a unit of reading, from the session in a transaction."""
    if hasattr(session, "fetch"):
        reader = cast(FastReader, session)
        return await reader.fetch(*query.sql(reader.dialect, parameters))
    return (await session.execute(query.statement, parameters)).all()


async def fetch_one(
    session: Executor, query: Prepared, prefetch: Prefetch | None, **parameters: object
) -> tuple[Row | None, Row]:
    """Return the only row, or None, and the prefetched row, which is empty without a prefetch."""
    if prefetch is None:
        rows = await fetch(session, query, **parameters)
        return (rows[0] if rows else None), ()
    rows = await fetch(session, query.with_prefetch(prefetch.query), **parameters, **prefetch.parameters)
    return (rows[0][: query.width], rows[0][query.width :]) if rows else (None, ())


Record = TypeVar("Record")


def columns(table: FromClause, names: Sequence[str]) -> list[ColumnElement[Any]]:
    """Return the columns of a table that have these names, such as the fields of a record."""
    return [table.c[name] for name in names]


async def records(session: Executor, kind: Callable[..., Record], query: Executable) -> list[Record]:
    """Return the rows of a query; a field of a record is the column with its name."""
    return [kind(**row._mapping) for row in await session.execute(query)]


async def record(session: Executor, kind: Callable[..., Record], query: Executable) -> Record | None:
    """Return the first row of a query as `records` does, or None."""
    row = (await session.execute(query)).first()
    return None if row is None else kind(**row._mapping)


async def has_row(session: Executor, statement: Executable) -> bool:
    """Return whether a query finds a row, or a write with RETURNING changes one."""
    return (await session.execute(statement)).first() is not None


def insert_into(session: AsyncSession, table: Table) -> Insert:
    """Return the dialect's INSERT, which has ON CONFLICT."""
    return insert_by(session.get_bind().dialect.name, table)


def insert_by(dialect: str, table: Table) -> Insert:
    """Return the same, by the name of the dialect."""
    return postgresql.insert(table) if dialect == "postgresql" else sqlite.insert(table)


async def insert_new(session: AsyncSession, table: Table, **values: object) -> bool:
    """Insert a row unless there is one with a unique value of it; return whether it was inserted."""
    row = insert_into(session, table).values(**values).on_conflict_do_nothing()
    return await has_row(session, row.returning(*table.primary_key))


async def upsert(
    session: AsyncSession,
    table: Table,
    values: Mapping[str, object],
    where: ColumnElement[bool] | None = None,
    **key: object,
) -> bool:
    """Insert a row, or change the one with this key. Return False if that is left as it is, because of `where`."""
    insert = insert_into(session, table).values({**key, **values})
    changed = insert.on_conflict_do_update(index_elements=list(key), set_=dict(values), where=where)
    return await has_row(session, changed.returning(table.c[next(iter(key))]))


class FastReader(Protocol):
    """A unit of reading."""

    @property
    def dialect(self) -> str: ...
    async def fetch(self, sql: str, values: list[object], /) -> Sequence[Row]: ...
    async def execute(self, statement: Executable, parameters: Parameters | None = None, /) -> Result[Any]: ...


class Readers(Protocol):
    """A source of units of reading."""

    def open(self, seconds: float) -> contextlib.AbstractAsyncContextManager[FastReader]: ...
    def usage(self) -> PoolUsage | None: ...
    async def close(self) -> None: ...


class SqliteReader:
    """One read-only connection for the whole process, used between two awaits and never across one.

    It runs inline, because a read from the page cache costs less than handing it to another thread. Readers of a WAL
    file do not wait for writers, except for a moment at a checkpoint; the short timeout keeps that from blocking the
    event loop. The reads of requests that arrived together follow each other, because work of one kind in a row finds
    its code and data in the processor's caches: that saves 15 % of the CPU of a list with 32 callers, 25 % of a status.
    """

    dialect = "sqlite"

    def __init__(self, path: str) -> None:
        self._engine = create_engine(
            URL.create("sqlite", database=path),
            poolclass=StaticPool,
            isolation_level="AUTOCOMMIT",
            connect_args={"timeout": 0.25, "check_same_thread": False},
        )
        self._connection: Connection | None = None
        self._driver: Any = None

    def open(self, _seconds: float) -> Self:
        return self

    def usage(self) -> None:
        """Return nothing: there is no pool."""

    async def __aenter__(self) -> Self:
        await asyncio.sleep(0)  # the other requests come to this point
        if self._connection is None:
            self._connection = self._engine.connect()
            self._connection.exec_driver_sql("PRAGMA query_only=ON")
            self._driver = self._connection.connection.driver_connection
        return self

    async def __aexit__(self, *_problem: object) -> None:
        """Keep the connection open."""
        await asyncio.sleep(0)  # the other requests read

    async def fetch(self, sql: str, values: list[object], /) -> Sequence[Row]:
        """Return all rows, as tuples."""
        return cast(Sequence[Row], self._driver.execute(sql, values).fetchall())

    async def execute(self, statement: Executable, parameters: Parameters | None = None, /) -> Result[Any]:
        """Run one statement now; the caller fetches before it awaits anything else."""
        assert self._connection is not None, "inside open()"
        return self._connection.execute(statement, parameters)

    async def close(self) -> None:
        if self._connection is not None:
            self._connection.close()
        self._engine.dispose()


class PostgresReaders:
    """Units on connections of the driver, and of SQLAlchemy for statements that are not prepared."""

    def __init__(self, engine: AsyncEngine, pool: PostgresPool) -> None:
        self._engine = engine.execution_options(isolation_level="AUTOCOMMIT")
        self._pool = pool

    def open(self, seconds: float) -> "_PostgresReader":
        """Return a unit that uses connections only while its statements run."""
        return _PostgresReader(self._pool, self._engine, seconds)

    def usage(self) -> PoolUsage:
        """Return how full the pool is."""
        return self._pool.usage()

    async def close(self) -> None:
        await self._pool.close()


class _PostgresReader:
    dialect = "postgresql"

    def __init__(self, pool: PostgresPool, engine: AsyncEngine, seconds: float) -> None:
        self._pool, self._engine = pool, engine
        self._until = time.monotonic() + seconds
        self._connecting: contextlib.AbstractAsyncContextManager[AsyncConnection] | None = None
        self._connection: AsyncConnection | None = None

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *problem: Any) -> None:
        if self._connecting is not None:
            await self._connecting.__aexit__(*problem)

    async def fetch(self, sql: str, values: list[object], /) -> Sequence[Row]:
        """Return all rows; asyncpg's records are read like tuples."""
        rows = await self._pool.run(lambda connection: connection.fetch(sql, *values), self._left())
        return cast(Sequence[Row], rows)

    async def execute(self, statement: Executable, parameters: Parameters | None = None, /) -> Result[Any]:
        """Run one statement."""
        async with asyncio.timeout(self._left()):
            if self._connection is None:
                connecting = self._engine.connect()
                self._connection = await connecting.__aenter__()
                self._connecting = connecting
            return await self._connection.execute(statement, parameters)

    def _left(self) -> float:
        return self._until - time.monotonic()
