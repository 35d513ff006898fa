"""Units of reading on each database: statements that change nothing and see what is committed when they run.

A reader runs prepared SQL on the driver itself (`fetch`) and any other statement through SQLAlchemy (`execute`).
"""

import asyncio
import contextlib
import time
from collections.abc import Sequence
from typing import Any, Protocol, Self, cast

from sqlalchemy import Connection, Executable, Result, StaticPool, create_engine
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from profilesvc.database.pool_usage import PoolUsage
from profilesvc.database.postgres_pool import PostgresPool


class FastReader(Protocol):
    """A unit of reading."""

    @property
    def dialect(self) -> str: ...
    async def fetch(self, sql: str, values: list[object], /) -> Sequence[Any]: ...
    async def execute(self, statement: Executable, parameters: Any = None, /) -> Result[Any]: ...


class Readers(Protocol):
    """A source of units of reading."""

    def open(self, seconds: float) -> contextlib.AbstractAsyncContextManager[FastReader]: ...
    def usage(self) -> PoolUsage | None: ...
    async def close(self) -> None: ...


class SqliteReader:
    """One read-only connection for the whole process, used between two awaits and never across one.

    It runs inline, because a read from the page cache costs less than handing it to another thread. Readers of a WAL
    file do not wait for writers, except for a moment at a checkpoint; the short timeout keeps that from blocking the
    event loop.
    """

    dialect = "sqlite"

    def __init__(self, path: str) -> None:
        self._engine = create_engine(
            f"sqlite:///{path}",
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
        if self._connection is None:
            self._connection = self._engine.connect()
            self._connection.exec_driver_sql("PRAGMA query_only=ON")
            self._driver = self._connection.connection.driver_connection
        return self

    async def __aexit__(self, *_problem: object) -> None:
        """Keep the connection open."""

    async def fetch(self, sql: str, values: list[object], /) -> Sequence[Any]:
        """Return all rows, as tuples."""
        return cast(Sequence[Any], self._driver.execute(sql, values).fetchall())

    async def execute(self, statement: Executable, parameters: Any = None, /) -> Result[Any]:
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
        self._pool, self._engine, self._until = pool, engine, time.monotonic() + seconds
        self._connecting: contextlib.AbstractAsyncContextManager[AsyncConnection] | None = None
        self._connection: AsyncConnection | None = None

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *problem: Any) -> None:
        if self._connecting is not None:
            await self._connecting.__aexit__(*problem)

    async def fetch(self, sql: str, values: list[object], /) -> Sequence[Any]:
        """Return all rows; asyncpg's records are read like tuples."""
        rows = await self._pool.run(lambda connection: connection.fetch(sql, *values), self._left())
        return cast(Sequence[Any], rows)

    async def execute(self, statement: Executable, parameters: Any = None, /) -> Result[Any]:
        """Run one statement."""
        async with asyncio.timeout(self._left()):
            if self._connection is None:
                connecting = self._engine.connect()
                self._connection = await connecting.__aenter__()
                self._connecting = connecting
            return await self._connection.execute(statement, parameters)

    def _left(self) -> float:
        return self._until - time.monotonic()
