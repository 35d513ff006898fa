"""How a transaction of prepared statements reaches each database: on the driver itself."""

import asyncio
import sqlite3
import time
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple, Protocol

import asyncpg

from profilesvc.database.drivers import CUT, Drivers


class Executions(NamedTuple):
    """A statement of a transaction, and the positional values of each of its executions."""

    sql: str
    rows: list[list[Any]]


class Writer(Protocol):
    """Commits all steps or none."""

    async def commit(self, steps: list[Executions], seconds: float) -> None: ...
    async def close(self) -> None: ...


class SqliteWriter:
    """One connection on a thread of its own: a transaction is one trip there, however many statements it has."""

    def __init__(self, path: str, pragmas: Iterable[str]) -> None:
        self._path, self._pragmas = path, pragmas
        self._thread = ThreadPoolExecutor(1, "profilesvc-writer")
        self._connection: sqlite3.Connection | None = None

    async def commit(self, steps: list[Executions], seconds: float) -> None:
        """Return when it is durable; the file's lock is waited for as long as `seconds`."""
        until = time.monotonic() + seconds
        await asyncio.get_running_loop().run_in_executor(self._thread, self._commit, steps, until)

    def _commit(self, steps: list[Executions], until: float) -> None:
        connection = self._connection = self._connection or self._opened()
        connection.execute(f"PRAGMA busy_timeout={max(0, int((until - time.monotonic()) * 1000))}")
        connection.execute("BEGIN IMMEDIATE")
        try:
            for sql, rows in steps:
                connection.executemany(sql, rows)
            connection.execute("COMMIT")
        except BaseException:
            if connection.in_transaction:
                connection.execute("ROLLBACK")
            raise

    def _opened(self) -> sqlite3.Connection:
        connection = sqlite3.connect(self._path, isolation_level=None)
        for pragma in self._pragmas:
            connection.execute(f"PRAGMA {pragma}")
        return connection

    async def close(self) -> None:
        """End the thread; a commit that runs is finished."""
        if self._connection is not None:  # of that thread, like all that is done with it
            await asyncio.get_running_loop().run_in_executor(self._thread, self._connection.close)
        self._thread.shutdown()


class PostgresWriter:
    """A connection of the driver for each transaction."""

    def __init__(self, drivers: Drivers) -> None:
        self._drivers = drivers

    async def commit(self, steps: list[Executions], seconds: float) -> None:
        """Return when it is durable. TimeoutError."""
        async with asyncio.timeout(seconds):
            if not await self._committed(steps, seconds):
                self._drivers.renew()
                await self._committed(steps, seconds, is_last=True)

    async def _committed(self, steps: list[Executions], seconds: float, *, is_last: bool = False) -> bool:
        """False if the connection was cut while it was idle: nothing has begun, so it can be tried on another one."""
        connection = await self._drivers.take(seconds)
        is_begun = is_whole = False
        try:
            async with connection.transaction():
                is_begun = True
                for sql, rows in steps:
                    await connection.executemany(sql, rows)
            is_whole = True
        except CUT:
            if is_begun or is_last:
                raise
        except asyncpg.PostgresError:
            is_whole = True
            raise
        finally:
            self._drivers.give_back(connection, whole=is_whole)
        return is_whole

    async def close(self) -> None:
        """The connections are the readers' too, and end with them."""
