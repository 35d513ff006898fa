"""How units of reading reach each database: statements that look and change nothing, each at what is committed then.

A reader runs prepared SQL on the driver itself (`fetch`) and any other statement through SQLAlchemy (`execute`).
"""

import asyncio
import contextlib
from collections.abc import Sequence
from typing import Any, Protocol, Self, cast

import asyncpg
from sqlalchemy import Connection, Executable, Result, StaticPool, create_engine
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from profilesvc.storage.pools import Pool, of_driver

# The driver tells of a lost connection in more than one way.
_CUT = (
    asyncpg.PostgresConnectionError,
    asyncpg.AdminShutdownError,
    asyncpg.InterfaceError,
    asyncpg.InternalClientError,
    ConnectionError,
)


class FastReader(Protocol):
    """A unit of reading."""

    @property
    def dialect(self) -> str: ...
    async def fetch(self, sql: str, values: list[Any], /) -> Sequence[Any]: ...
    async def execute(self, statement: Executable, parameters: Any = None, /) -> Result[Any]: ...


class Readers(Protocol):
    """Where units of reading come from."""

    def open(self, seconds: float) -> contextlib.AbstractAsyncContextManager[FastReader]: ...
    def standing(self) -> Pool | None: ...
    async def close(self) -> None: ...


class SqliteReader:
    """One read-only connection for the whole process, used between two awaits and never across one.

    It runs inline: a look at the page cache costs less than the way to another thread and back. Readers of a WAL file
    do not wait for writers; where they must after all, they must not hold up the loop.
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
        """A unit: the one connection."""
        return self

    def standing(self) -> None:
        """There is no pool."""

    async def __aenter__(self) -> Self:
        if self._connection is None:
            self._connection = self._engine.connect()
            self._connection.exec_driver_sql("PRAGMA query_only=ON")
            self._driver = self._connection.connection.driver_connection
        return self

    async def __aexit__(self, *_problem: object) -> None:
        """It stays open."""

    async def fetch(self, sql: str, values: list[Any], /) -> Sequence[Any]:
        """All rows, as tuples."""
        return cast(Sequence[Any], self._driver.execute(sql, values).fetchall())

    async def execute(self, statement: Executable, parameters: Any = None, /) -> Result[Any]:
        """Run one statement now; the caller fetches before it awaits anything else."""
        assert self._connection is not None, "inside open()"
        return self._connection.execute(statement, parameters)

    async def close(self) -> None:
        """Give the connection back."""
        if self._connection is not None:
            self._connection.close()
        self._engine.dispose()


class PostgresReaders:
    """A pool of driver connections that are not reset between units: a unit leaves nothing behind in its session."""

    def __init__(self, engine: AsyncEngine, connect: dict[str, Any], size: int) -> None:
        self._others = engine.execution_options(isolation_level="AUTOCOMMIT")
        self._connect = connect
        self._size = size
        self._pool: Any = None
        self._opening = asyncio.Lock()

    def open(self, seconds: float) -> "_PostgresReader":
        """A unit that takes a connection when it needs one and gives it back at its end."""
        return _PostgresReader(self, seconds)

    def standing(self) -> Pool:
        """How full the pool is."""
        return of_driver(self._pool, self._size)

    async def pool(self) -> Any:
        """The pool, opened at its first use."""
        if self._pool is None:
            async with self._opening:
                if self._pool is None:
                    self._pool = await asyncpg.create_pool(
                        **self._connect, min_size=0, max_size=self._size, reset=_nothing
                    )
        return self._pool

    def others(self) -> contextlib.AbstractAsyncContextManager[AsyncConnection]:
        """A connection of SQLAlchemy's, on which each statement stands alone."""
        return self._others.connect()

    async def close(self) -> None:
        """Close every connection."""
        if self._pool is not None:
            await self._pool.close()


async def _nothing(_connection: Any) -> None:
    """Instead of the four statements that the driver sends after each use."""


class _PostgresReader:
    dialect = "postgresql"

    def __init__(self, readers: PostgresReaders, seconds: float) -> None:
        self._readers, self._in_time = readers, asyncio.timeout(seconds)
        self._driver: Any = None
        self._others: contextlib.AbstractAsyncContextManager[AsyncConnection] | None = None
        self._connection: AsyncConnection | None = None

    async def __aenter__(self) -> Self:
        await self._in_time.__aenter__()
        return self

    async def __aexit__(self, *problem: Any) -> None:
        try:
            await self._give_back(*problem)
        finally:
            await self._in_time.__aexit__(*problem)

    async def _give_back(self, *problem: Any) -> None:
        try:
            if self._driver is not None:
                await self._release()
        finally:
            if self._others is not None:
                await self._others.__aexit__(*problem)

    async def fetch(self, sql: str, values: list[Any], /) -> Sequence[Any]:
        """All rows; asyncpg's records are read like tuples.

        A connection that was cut while it lay idle shows it at its next use; a look does no harm twice.
        """
        if self._driver is None:
            await self._take()
        try:
            return cast(Sequence[Any], await self._driver.fetch(sql, *values))
        except _CUT:
            self._driver.terminate()
            await self._release()
            await (await self._readers.pool()).expire_connections()
            await self._take()
            return cast(Sequence[Any], await self._driver.fetch(sql, *values))

    async def _take(self) -> None:
        self._driver = await (await self._readers.pool()).acquire()

    async def _release(self) -> None:
        driver, self._driver = self._driver, None
        await (await self._readers.pool()).release(driver)

    async def execute(self, statement: Executable, parameters: Any = None, /) -> Result[Any]:
        """Run one statement."""
        if self._connection is None:
            others = self._readers.others()
            self._connection = await others.__aenter__()
            self._others = others
        return await self._connection.execute(statement, parameters)
