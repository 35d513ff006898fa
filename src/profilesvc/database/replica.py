"""Reads that may be old, on a standby of PostgreSQL (D-105): lists, badges and counts, never what decides access."""

import asyncio
import contextlib
import logging
import time
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, NamedTuple, Self, TypeVar

from sqlalchemy import Executable, Result
from sqlalchemy.ext.asyncio import AsyncEngine

from profilesvc.database.disposal import dispose
from profilesvc.database.pool_usage import PoolUsage
from profilesvc.database.postgres import connect_args
from profilesvc.database.postgres_pool import PostgresPool
from profilesvc.database.statements import FastReader, Parameters, PostgresReaders, Readers, Row
from profilesvc.database.unavailable import as_unavailable, reason, sqlstate

log = logging.getLogger("profilesvc")
MAX_LAG_SECONDS = 10.0
CHECK_SECONDS = 5.0  # between two checks
RESPONSE_SECONDS = 1.5  # then the statement runs on the primary
_POLLS, _PAUSE_SECONDS = 4, 0.05
_WRITTEN = "SELECT CAST(pg_current_wal_flush_lsn() AS text)"
# A standby that has replayed all there is has no lag, however long ago that was.
_REPLAYED = (
    "SELECT pg_is_in_recovery(), pg_wal_lsn_diff(CAST(CAST($1 AS text) AS pg_lsn), pg_last_wal_replay_lsn()) <= 0, "
    "CAST(extract(epoch FROM clock_timestamp() - pg_last_xact_replay_timestamp()) AS float8)"
)
_OLDER_TABLES = ("42P01", "42703")  # the standby has not replayed a migration
Value = TypeVar("Value")


class State(NamedTuple):
    """The lag of the standby in seconds, if it is known, and why it is not used; empty if it is."""

    lag: float | None
    problem: str


class Replica:
    """Units of reading on a standby. A statement runs on the primary if the standby cannot be used, or fails."""

    def __init__(self, engine: AsyncEngine, pool_size: int, primary: PostgresPool, readers: Readers) -> None:
        arguments = {**engine.dialect.create_connect_args(engine.url)[1], **connect_args()}
        self._engine, self._pool = engine, PostgresPool(arguments, pool_size)
        self.readers, self.primary_readers = PostgresReaders(engine, self._pool), readers
        self._primary = primary
        self.state = State(None, "not checked yet")
        self._was_used: bool | None = None
        self._check_at = float("-inf")

    def open(self, seconds: float) -> "_Unit":
        """Return a unit that uses connections only while its statements run."""
        return _Unit(self, seconds)

    def usage(self) -> PoolUsage:
        """Return how full the pool is."""
        return self._pool.usage()

    async def close(self) -> None:
        await self.readers.close()
        await dispose(self._engine)

    async def is_usable(self) -> bool:
        """Return whether the standby responds and is not too old. One caller checks every few seconds."""
        if time.monotonic() >= self._check_at:
            await self.check()
        return not self.state.problem

    async def check(self) -> State:
        """Compare the standby with the primary, and return what is known of it now."""
        self._check_at = time.monotonic() + CHECK_SECONDS
        try:
            async with asyncio.timeout(RESPONSE_SECONDS):
                state = await self._compared()
        except Exception as error:
            if not _is_of_replica(error):
                raise
            state = State(None, reason(error))
        self._note(state)
        return state

    def failed(self, error: Exception) -> None:
        """Note a statement that failed, so that the next ones do not wait, too."""
        self._check_at = time.monotonic() + CHECK_SECONDS
        self._note(State(None, reason(error)))

    async def _compared(self) -> State:
        """Poll for a moment, because the age of the last transaction is no lag if the next one is just being sent."""
        written = await self._primary.run(lambda connection: connection.fetchval(_WRITTEN), RESPONSE_SECONDS)
        state = State(None, "")
        for _ in range(_POLLS):
            row = await self._pool.run(lambda connection: connection.fetchrow(_REPLAYED, written), RESPONSE_SECONDS)
            is_standby, has_all, age = row
            if not is_standby:
                return State(None, "it is not a standby")
            state = State(0.0 if has_all else age, "")
            if state.lag is not None and state.lag <= MAX_LAG_SECONDS:
                return state
            await asyncio.sleep(_PAUSE_SECONDS)
        behind = "at an unknown time" if state.lag is None else f"{state.lag:.0f} s behind"
        return State(state.lag, f"it is {behind}")

    def _note(self, state: State) -> None:
        """Keep the state, and log when the standby is used or no longer used."""
        is_used = not state.problem
        if is_used is not self._was_used:
            if is_used:
                log.info("replica used, %.1f s behind", state.lag)
            else:
                log.warning("replica not used: %s", state.problem)
        self.state, self._was_used = state, is_used


class _Unit:
    dialect = "postgresql"

    def __init__(self, replica: Replica, seconds: float) -> None:
        self._replica, self._until = replica, time.monotonic() + seconds
        self._standby: FastReader | None = None
        self._primary: FastReader | None = None
        self._open = contextlib.AsyncExitStack()

    async def __aenter__(self) -> Self:
        if await self._replica.is_usable():
            self._standby = await self._open.enter_async_context(self._replica.readers.open(self._left()))
        return self

    async def __aexit__(self, *problem: Any) -> None:
        await self._open.__aexit__(*problem)

    async def fetch(self, sql: str, values: list[object], /) -> Sequence[Row]:
        """Return all rows, as tuples."""
        return await self._run(lambda reader: reader.fetch(sql, values))

    async def execute(self, statement: Executable, parameters: Parameters | None = None, /) -> Result[Any]:
        """Run one statement."""
        return await self._run(lambda reader: reader.execute(statement, parameters))

    async def _run(self, work: Callable[[FastReader], Awaitable[Value]]) -> Value:
        if self._standby is not None:
            try:
                async with asyncio.timeout(min(RESPONSE_SECONDS, self._left())):
                    return await work(self._standby)
            except Exception as error:
                if not _is_of_replica(error):
                    raise
                self._replica.failed(error)
                self._standby = None
        if self._primary is None:
            opening = self._replica.primary_readers.open(self._left())
            self._primary = await self._open.enter_async_context(opening)
        return await work(self._primary)

    def _left(self) -> float:
        return self._until - time.monotonic()


def _is_of_replica(error: Exception) -> bool:
    """Return whether the primary may be able to run the statement."""
    return as_unavailable(error) is not None or sqlstate(error) in _OLDER_TABLES
