"""Transactions of prepared statements, run on each database's driver."""

import asyncio
import sqlite3
import time
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple, Protocol

import asyncpg

from profilesvc.database.postgres_pool import PostgresPool


class Executions(NamedTuple):
    """A statement of a transaction, and the positional values of each of its executions."""

    sql: str
    rows: list[list[object]]


class Writer(Protocol):
    """Commits all steps or none."""

    async def commit(self, steps: list[Executions], seconds: float) -> None: ...
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

    def _commit(self, steps: list[Executions], until: float) -> None:
        connection = self._connection = self._connection or self._opened()
        connection.execute(f"PRAGMA busy_timeout={max(0, int((until - time.monotonic()) * 1000))}")
        connection.execute("BEGIN IMMEDIATE")
        try:
            if time.monotonic() > until:  # SQLite adds up the sleeps it asked for, and a busy machine oversleeps
                raise TimeoutError
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
        has_started = False

        async def work(connection: asyncpg.Connection) -> None:
            nonlocal has_started
            async with connection.transaction():
                has_started = True
                for sql, rows in steps:
                    await connection.executemany(sql, rows)

        await self._pool.run(work, seconds, lambda: has_started)

    async def close(self) -> None:
        """Close nothing: the readers use the same pool and close it."""
