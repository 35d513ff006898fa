"""Leases between the processes of a service, for work outside a transaction, such as reading the provider.

A lease is a row with an expiry, so that nothing depends on a session: a pooler may give each transaction another one.
The database's clock decides when it ends. The table is UNLOGGED on PostgreSQL, because a lease is short and need not
survive a crash: taking it does not wait for the disk or for a standby.
"""

import asyncio
import contextlib
import contextvars
import secrets
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Protocol

import asyncpg
from sqlalchemy.ext.asyncio import AsyncEngine

from profilesvc.database.postgres import BUSY_SECONDS, connect_args
from profilesvc.database.postgres_pool import PostgresPool
from profilesvc.database.unavailable import raising_unavailable
from profilesvc.domain.errors import ServiceError
from profilesvc.domain.rates import Window

WAIT_SECONDS = 20.0
LEASE_SECONDS = 5.0  # the longest wait for a process that was killed while it had the lease
_PAUSE_SECONDS = 0.05
_NOW = "CAST(extract(epoch FROM clock_timestamp()) * 1000 AS bigint)"
_TABLE = (
    "CREATE UNLOGGED TABLE IF NOT EXISTS leases (name varchar(300) NOT NULL, holder varchar(32) NOT NULL, "
    "until bigint NOT NULL, CONSTRAINT pk_leases PRIMARY KEY (name));"
    "CREATE INDEX IF NOT EXISTS ix_leases_until ON leases (until)"
)
# What PostgreSQL raises if two processes create a table at once.
_EXISTS = (asyncpg.UniqueViolationError, asyncpg.DuplicateTableError, asyncpg.DuplicateObjectError)
# The holder may repeat it: to renew the lease, or after a lost connection.
_TAKE = (
    f"INSERT INTO leases (name, holder, until) VALUES ($1, $2, {_NOW} + $3) ON CONFLICT (name) DO UPDATE "  # noqa: S608  constants
    "SET holder = excluded.holder, until = excluded.until "
    f"WHERE leases.until < {_NOW} OR leases.holder = excluded.holder RETURNING true"
)
_END = "DELETE FROM leases WHERE name = $1 AND holder = $2"

# A window is as many leases as it has room for: each counted request occupies one of them until the window has passed.
_SPEND = (
    "INSERT INTO leases (name, holder, until) "  # noqa: S608  constants
    f"SELECT $1::text || ' ' || slot, '', {_NOW} + $2::bigint FROM generate_series(1, $3::int) AS slot "
    f"WHERE NOT EXISTS (SELECT FROM leases WHERE name = $1::text || ' ' || slot AND until > {_NOW}) "
    "ORDER BY slot LIMIT 1 ON CONFLICT (name) DO UPDATE SET until = excluded.until "
    f"WHERE leases.until <= {_NOW} RETURNING true"
)
_FULL_FOR = (
    f"SELECT min(until) - {_NOW} FROM leases WHERE until > {_NOW} AND name IN "  # noqa: S608  constants
    "(SELECT $1::text || ' ' || slot FROM generate_series(1, $2::int) AS slot) HAVING count(*) = $2::int"
)


class Leases(Protocol):
    """Leases by name that one holder has at a time."""

    def hold(self, name: str, patience: float = WAIT_SECONDS) -> contextlib.AbstractAsyncContextManager[bool]:
        """Hold a lease for the block; yield whether it was free at once.

        After `patience` seconds of waiting the block runs without the lease. A process that was killed holds its
        leases for 5 s.

        Raises:
            ServiceError: SERVICE_UNAVAILABLE.
        """
        ...


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
            renewing.cancel()
            await asyncio.wait([renewing])
            with contextlib.suppress(ServiceError):  # the lease ends by itself
                await self._run(_END, name, holder)

    async def spend(self, name: str, window: Window) -> int:
        """Count a request of all processes in a moving window; return 0, or the milliseconds until there is room.

        Raises:
            ServiceError: SERVICE_UNAVAILABLE.
        """
        while True:
            if await self._run(_SPEND, name, window.length, window.limit) is not None:
                return 0
            wait = await self._run(_FULL_FOR, name, window.limit)
            if isinstance(wait, int):  # otherwise another process took the same lease at that moment
                return max(wait, 1)

    async def _take(self, name: str, holder: str) -> bool:
        return await self._run(_TAKE, name, holder, int(LEASE_SECONDS * 1000)) is not None

    async def _renew(self, name: str, holder: str) -> None:
        while True:
            await asyncio.sleep(LEASE_SECONDS / 3)
            with contextlib.suppress(ServiceError):
                await self._take(name, holder)

    async def _run(self, statement: str, *values: object) -> object:
        with self._in_time() as seconds:
            return await self._pool.run(lambda connection: connection.fetchval(statement, *values), seconds)


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
