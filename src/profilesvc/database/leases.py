"""Leases between the processes of a service, for work outside a transaction, such as reading the provider.

A lease is a row with an expiry, so that nothing depends on a session: a pooler may give each transaction another one.
The database's clock decides when it ends. The table is UNLOGGED on PostgreSQL, because a lease is short and need not
survive a crash: taking it does not wait for the disk or for a standby.
"""

import asyncio
import contextlib
import contextvars
import secrets
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from typing import Protocol, TypeVar

import asyncpg
from sqlalchemy.ext.asyncio import AsyncEngine

from profilesvc.database.postgres import BUSY_SECONDS, connect_args
from profilesvc.database.postgres_pool import PostgresPool
from profilesvc.database.unavailable import raising_unavailable
from profilesvc.domain.errors import ServiceError
from profilesvc.domain.rates import Window

Result = TypeVar("Result")
WAIT_SECONDS = 20.0
LEASE_SECONDS = 5.0  # the longest wait for a process that was killed while it had the lease
_PAUSE_SECONDS = 0.05
_NOW = "CAST(extract(epoch FROM clock_timestamp()) * 1000 AS bigint)"
_TABLE = (
    "CREATE UNLOGGED TABLE IF NOT EXISTS leases (name varchar(300) NOT NULL, slot integer NOT NULL, "
    "holder varchar(32) NOT NULL, asked_at bigint NOT NULL, until bigint NOT NULL, "
    "CONSTRAINT pk_leases PRIMARY KEY (name, slot));"
    "CREATE INDEX IF NOT EXISTS ix_leases_until ON leases (until)"
)
# What PostgreSQL raises if two processes create a table at once.
_EXISTS = (asyncpg.UniqueViolationError, asyncpg.DuplicateTableError, asyncpg.DuplicateObjectError)
# The holder may repeat it: to renew the lease, or after a lost connection. `asked_at` is the time in the condition,
# because Citus accepts no clock there.
_TAKE = (
    "INSERT INTO leases (name, slot, holder, asked_at, until) "  # noqa: S608  constants
    f"VALUES ($1, $2, $3, {_NOW}, {_NOW} + $4) ON CONFLICT (name, slot) DO UPDATE "
    "SET holder = excluded.holder, asked_at = excluded.asked_at, until = excluded.until "
    "WHERE leases.until <= excluded.asked_at OR leases.holder = excluded.holder RETURNING true"
)
_END = "DELETE FROM leases WHERE name = $1 AND holder = $2"
_ONLY = 0  # the slot of a lease that is no window

# A window is as many leases as it has room for: each counted request holds one of them until the window has passed.
_TAKEN = f"SELECT slot, until - {_NOW} FROM leases WHERE name = $1 AND until > {_NOW}"  # noqa: S608  constants


class Leases(Protocol):
    """Leases by name that one holder has at a time."""

    def hold(self, name: str, patience: float = WAIT_SECONDS) -> contextlib.AbstractAsyncContextManager[bool]:
        """Hold a lease for the block; yield whether it was free at once.

        After `patience` seconds of waiting the block runs without the lease. A process that was killed holds its
        leases for 5 s.

        Raises:
            ServiceError: SERVICE_UNAVAILABLE.
        """


class SingleProcessLeases:
    """Leases of the only process there is: always free."""

    @contextlib.asynccontextmanager
    async def hold(self, name: str, patience: float = WAIT_SECONDS) -> AsyncIterator[bool]:
        """See Leases."""
        yield True


class PostgresLeases:
    """Leases in the table `leases`; `in_time` yields the seconds of a statement and raises SERVICE_UNAVAILABLE."""

    def __init__(self, pool: PostgresPool, in_time: Callable[[], contextlib.AbstractContextManager[float]]) -> None:
        self._pool, self._in_time = pool, in_time

    async def create_table(self) -> None:
        """Create the table of leases in a database without it, for the lease of the first migration."""
        with self._in_time() as seconds, contextlib.suppress(*_EXISTS):
            await self._pool.run(lambda connection: connection.execute(_TABLE), seconds)

    @contextlib.asynccontextmanager
    async def hold(self, name: str, patience: float = WAIT_SECONDS) -> AsyncIterator[bool]:
        """See Leases."""
        holder = secrets.token_hex(16)
        is_held = was_free = await self._take(name, holder)
        deadline = asyncio.get_running_loop().time() + patience
        while not is_held and asyncio.get_running_loop().time() < deadline:
            await asyncio.sleep(_PAUSE_SECONDS)
            is_held = await self._take(name, holder)
        if not is_held:
            yield was_free
            return
        # An empty context gives the renewals their own time, not that of the request.
        renewing = asyncio.get_running_loop().create_task(self._renew(name, holder), context=contextvars.Context())
        try:
            yield was_free
        finally:
            while not renewing.done():  # Python 3.11 can lose a cancellation
                renewing.cancel()
                await asyncio.wait([renewing], timeout=1)
            with contextlib.suppress(ServiceError):  # the lease ends by itself
                await self._run(lambda connection: connection.execute(_END, name, holder))

    async def spend(self, name: str, window: Window) -> int:
        """Count a request of all processes in a moving window; return 0, or the milliseconds until there is room.

        Raises:
            ServiceError: SERVICE_UNAVAILABLE.
        """
        while True:
            rows: list[tuple[int, int]] = await self._run(lambda connection: connection.fetch(_TAKEN, name))
            taken = dict(rows)
            free = next((slot for slot in range(window.limit) if slot not in taken), None)
            if free is None:
                return max(min(taken.values()), 1)
            if await self._take(name, secrets.token_hex(16), window.length, free):  # no other process was first
                return 0

    async def _take(self, name: str, holder: str, length: int | None = None, slot: int = _ONLY) -> bool:
        """Take or renew a lease for some milliseconds; return False if another holder has it."""
        values = name, slot, holder, int(LEASE_SECONDS * 1000) if length is None else length
        return await self._run(lambda connection: connection.fetchval(_TAKE, *values)) is not None

    async def _renew(self, name: str, holder: str) -> None:
        while True:
            await asyncio.sleep(LEASE_SECONDS / 3)
            with contextlib.suppress(ServiceError):
                await self._take(name, holder)

    async def _run(self, work: Callable[[asyncpg.Connection], Awaitable[Result]]) -> Result:
        with self._in_time() as seconds:
            return await self._pool.run(work, seconds)


@contextlib.asynccontextmanager
async def in_database(engine: AsyncEngine) -> AsyncIterator[PostgresLeases]:
    """Open the leases of a PostgreSQL database that may still be empty, for the operator's commands."""

    @contextlib.contextmanager
    def in_time() -> Iterator[float]:
        with raising_unavailable():
            yield BUSY_SECONDS

    pool = PostgresPool({**engine.dialect.create_connect_args(engine.url)[1], **connect_args()}, 1)
    try:
        leases = PostgresLeases(pool, in_time)
        await leases.create_table()
        yield leases
    finally:
        await pool.close()
