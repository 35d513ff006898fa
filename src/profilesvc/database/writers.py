"""Transactions of prepared statements, run on each database's driver."""

import asyncio
import sqlite3
import time
from collections.abc import Awaitable, Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple, Protocol, TypeVar

import asyncpg

from profilesvc.database.postgres_pool import PostgresPool


class Executions(NamedTuple):
    """A statement of a transaction, and the positional values of each of its executions."""

    sql: str
    rows: list[list[object]]


Result = TypeVar("Result")


class Transaction(Protocol):
    """A transaction of prepared statements that reads what it decides on."""

    async def fetch(self, step: Executions) -> list[Mapping[str, Any]]:
        """Run a statement with each row of values, and return the rows of all executions in their order."""


Work = Callable[[Transaction], Awaitable[Result]]


class Writer(Protocol):
    """Commits all steps or none."""

    async def commit(self, steps: list[Executions], seconds: float) -> None: ...
    async def transact(self, work: Work[Result], seconds: float) -> Result: ...
    async def close(self) -> None: ...


class SqliteWriter:
    """One connection on a thread of its own: a transaction is handed to it once, however many statements it has."""

    def __init__(self, path: str, pragmas: Iterable[str]) -> None:
        self._path, self._pragmas = path, pragmas
        self._thread = ThreadPoolExecutor(1, "profilesvc-writer")
        self._connection: sqlite3.Connection | None = None

    async def commit(self, steps: list[Executions], seconds: float) -> None:
        """Return when the steps are durable; wait at most `seconds` for the lock of the file.

        Raises:
            TimeoutError: the lock came too late, and nothing is written.
        """
        until = time.monotonic() + seconds
        await asyncio.get_running_loop().run_in_executor(self._thread, self._commit, steps, until)

    async def transact(self, work: Work[Result], seconds: float) -> Result:
        """Call `work` in a transaction. See `commit`."""
        loop, until = asyncio.get_running_loop(), time.monotonic() + seconds
        try:
            await loop.run_in_executor(self._thread, self._begin, until)
            result = await work(self)
            await loop.run_in_executor(self._thread, self._end, "COMMIT")
        except BaseException:
            await asyncio.shield(loop.run_in_executor(self._thread, self._end, "ROLLBACK"))
            raise
        return result

    async def fetch(self, step: Executions) -> list[Mapping[str, Any]]:
        """See Transaction."""
        return await asyncio.get_running_loop().run_in_executor(self._thread, self._fetch, step)

    def _fetch(self, step: Executions) -> list[Mapping[str, Any]]:
        assert self._connection is not None, "inside transact()"
        return [result for row in step.rows for result in self._connection.execute(step.sql, row).fetchall()]

    def _begin(self, until: float) -> None:
        connection = self._connection = self._connection or self._opened()
        connection.execute(f"PRAGMA busy_timeout={max(0, int((until - time.monotonic()) * 1000))}")
        connection.execute("BEGIN IMMEDIATE")
        if time.monotonic() > until:  # SQLite adds up the sleeps it asked for, and a busy machine oversleeps
            connection.execute("ROLLBACK")
            raise TimeoutError

    def _end(self, how: str) -> None:
        if self._connection is not None and self._connection.in_transaction:
            self._connection.execute(how)

    def _commit(self, steps: list[Executions], until: float) -> None:
        self._begin(until)
        assert self._connection is not None
        try:
            for sql, rows in steps:
                self._connection.executemany(sql, rows)
            self._connection.execute("COMMIT")
        except BaseException:
            self._end("ROLLBACK")
            raise

    async def empty_log(self, seconds: float) -> bool:
        """Write the log into the file and truncate it; return False if a reader still needs it after `seconds`."""
        return await asyncio.get_running_loop().run_in_executor(self._thread, self._empty_log, seconds)

    def _empty_log(self, seconds: float) -> bool:
        connection = self._connection = self._connection or self._opened()
        connection.execute(f"PRAGMA busy_timeout={int(seconds * 1000)}")
        is_busy, _, _ = connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
        return not is_busy

    def _opened(self) -> sqlite3.Connection:
        connection = sqlite3.connect(self._path, isolation_level=None)
        connection.row_factory = sqlite3.Row  # read by name, like the rows of asyncpg
        for pragma in self._pragmas:
            connection.execute(f"PRAGMA {pragma}")
        return connection

    async def close(self) -> None:
        """End the thread when a running commit has finished."""
        if self._connection is not None:  # SQLite's connection belongs to its thread
            await asyncio.get_running_loop().run_in_executor(self._thread, self._connection.close)
        self._thread.shutdown()


class PostgresWriter:
    """A connection of the driver for each transaction."""

    def __init__(self, pool: PostgresPool) -> None:
        self._pool = pool

    async def commit(self, steps: list[Executions], seconds: float) -> None:
        """Return when the steps are durable.

        Raises:
            TimeoutError: they are not after `seconds`.
        """

        async def execute(connection: asyncpg.Connection) -> None:
            for sql, rows in steps:
                await connection.executemany(sql, rows)

        await self._run(execute, seconds)

    async def transact(self, work: Work[Result], seconds: float) -> Result:
        """Call `work` in a transaction. See `commit`."""
        return await self._run(lambda connection: work(_PostgresTransaction(connection)), seconds)

    async def _run(self, work: Callable[[asyncpg.Connection], Awaitable[Result]], seconds: float) -> Result:
        has_started = False

        async def run(connection: asyncpg.Connection) -> Result:
            nonlocal has_started
            async with connection.transaction():
                has_started = True
                return await work(connection)

        return await self._pool.run(run, seconds, lambda: has_started)

    async def close(self) -> None:
        """Close nothing: the readers use the same pool and close it."""


class _PostgresTransaction:
    def __init__(self, connection: asyncpg.Connection) -> None:
        self._connection = connection

    async def fetch(self, step: Executions) -> list[Mapping[str, Any]]:
        """See Transaction; all executions are sent at once."""
        rows: list[Mapping[str, Any]] = await self._connection.fetchmany(step.sql, step.rows)
        return rows
