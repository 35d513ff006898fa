"""How units of reading reach each database: statements that look and change nothing, each at what is committed then.

A reader runs prepared SQL on the driver itself (`fetch`) and any other statement through SQLAlchemy (`execute`).
"""

import asyncio
import contextlib
import time
from collections.abc import Sequence
from typing import Any, Protocol, Self, cast

import asyncpg
from sqlalchemy import Connection, Executable, Result, StaticPool, create_engine
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from profilesvc.database.drivers import CUT, Drivers
from profilesvc.database.pools import Pool

_LEAST_SECONDS = 0.01


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
    """Units on connections of the driver, and of SQLAlchemy for statements that are not prepared."""

    def __init__(self, engine: AsyncEngine, drivers: Drivers) -> None:
        self._others = engine.execution_options(isolation_level="AUTOCOMMIT")
        self._drivers = drivers

    def open(self, seconds: float) -> "_PostgresReader":
        """A unit that takes a connection when it needs one and gives it back at its end."""
        return _PostgresReader(self._drivers, self._others, seconds)

    def standing(self) -> Pool:
        """How full the pool is."""
        return self._drivers.standing()

    async def close(self) -> None:
        """Close every connection."""
        await self._drivers.close()


class _PostgresReader:
    dialect = "postgresql"

    def __init__(self, drivers: Drivers, others: AsyncEngine, seconds: float) -> None:
        self._drivers, self._engine, self._until = drivers, others, time.monotonic() + seconds
        self._driver: Any = None
        self._is_whole = True
        self._others: contextlib.AbstractAsyncContextManager[AsyncConnection] | None = None
        self._connection: AsyncConnection | None = None

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *problem: Any) -> None:
        if self._driver is not None:
            self._drivers.give_back(self._driver, whole=self._is_whole)
        if self._others is not None:
            await self._others.__aexit__(*problem)

    async def fetch(self, sql: str, values: list[Any], /) -> Sequence[Any]:
        """All rows; asyncpg's records are read like tuples.

        A connection that was cut while it lay idle shows it at its next use; a look does no harm twice.
        """
        if self._driver is None:
            self._driver = await self._drivers.take(self._left())
        try:
            return await self._fetch(sql, values)
        except CUT:
            cut, self._driver = self._driver, None
            self._drivers.give_back(cut, whole=False)
            self._drivers.renew()
            self._driver = await self._drivers.take(self._left())
            return await self._fetch(sql, values)

    async def _fetch(self, sql: str, values: list[Any]) -> Sequence[Any]:
        self._is_whole = False
        try:
            rows = await self._driver.fetch(sql, *values, timeout=self._left())
        except asyncpg.PostgresError:  # an answer, too
            self._is_whole = True
            raise
        self._is_whole = True
        return cast(Sequence[Any], rows)

    def _left(self) -> float:
        """Seconds, not less than what the driver takes for a time."""
        return max(self._until - time.monotonic(), _LEAST_SECONDS)

    async def execute(self, statement: Executable, parameters: Any = None, /) -> Result[Any]:
        """Run one statement."""
        async with asyncio.timeout(self._left()):
            if self._connection is None:
                others = self._engine.connect()
                self._connection = await others.__aenter__()
                self._others = others
            return await self._connection.execute(statement, parameters)
