"""asyncpg's connection pool as this service uses it: a connection for one statement or one transaction at a time."""

import asyncio
import contextlib
import math
from collections.abc import Awaitable, Callable
from typing import TypeVar

import asyncpg

from profilesvc.database.pool_usage import PoolUsage
from profilesvc.database.postgres import connect
from profilesvc.database.unavailable import is_of_another_node

Result = TypeVar("Result")
_CLOSE_SECONDS = 1.0
# asyncpg reports a lost connection by several classes.
CUT = (
    asyncpg.PostgresConnectionError,
    asyncpg.AdminShutdownError,
    asyncpg.InterfaceError,
    asyncpg.InternalClientError,
    ConnectionError,
)


async def _keep_session(_connection: object) -> None:
    """Reset nothing: no statement of the service leaves anything behind in its session."""


class PostgresPool:
    """At most `size` connections, opened when they are first needed; callers wait while all are in use.

    A connection stays acquired for the next caller, because acquiring and releasing one costs as much CPU as a query on
    it (45 µs).
    """

    def __init__(self, connect_args: dict[str, object], size: int) -> None:
        self._connect_args, self._size = connect_args, size
        self._pool: asyncpg.Pool | None = None
        self._free = asyncio.Semaphore(size)
        self._idle: list[asyncpg.Connection] = []  # acquired, not in use
        self._callers = 0
        self._must_renew = False

    def usage(self) -> PoolUsage:
        """Return how many connections are in use and how many callers wait."""
        return PoolUsage(self._size, min(self._callers, self._size), max(self._callers - self._size, 0))

    async def run(
        self,
        work: Callable[[asyncpg.Connection], Awaitable[Result]],
        seconds: float,
        has_started: Callable[[], bool] = lambda: False,
    ) -> Result:
        """Call `work` with a connection that no other caller uses meanwhile, and again if it was cut while it was idle.

        If one connection was cut, all others are replaced before their next use, because a restart or a firewall cuts
        them together. A call that `has_started` to change something is not repeated.

        Raises:
            TimeoutError: the connection or the work took longer than `seconds`.
        """
        deadline, can_repeat = asyncio.get_running_loop().time() + seconds, True
        while True:
            connection, is_intact = None, False
            self._callers += 1
            try:
                async with asyncio.timeout_at(deadline), self._free:
                    pool, idle = await self._opened(), self._idle
                    connection = idle.pop() if idle else await pool.acquire()
                    result = await work(connection)
            except CUT as error:
                if not (is_intact := is_of_another_node(error)):
                    self.renew()
                if is_intact or connection is None or has_started() or not can_repeat:
                    raise
                can_repeat = False
            except asyncpg.PostgresError:  # the server has responded
                is_intact = True
                raise
            else:
                is_intact = True
                return result
            finally:
                self._callers -= 1
                if connection is not None:
                    await self._release(connection, idle, is_intact)

    async def _release(self, connection: asyncpg.Connection, idle: list[asyncpg.Connection], is_intact: bool) -> None:
        """Keep a connection for the next caller, or release it, or cut it; `idle` is the list of when it was taken."""
        if not is_intact:  # a statement was interrupted on it, so its state is unknown
            _cut(connection)
        elif idle is self._idle:  # not renewed meanwhile
            idle.append(connection)
        elif self._pool is not None:
            await self._pool.release(connection)

    async def _opened(self) -> asyncpg.Pool:
        if self._pool is None:
            # Recycling by age or by number of queries is off: the server ends sessions, the service does not.
            self._pool = asyncpg.create_pool(
                min_size=0,
                max_size=self._size,
                max_queries=math.inf,
                max_inactive_connection_lifetime=0,
                connect=connect,
                reset=_keep_session,
                **{**self._connect_args, "command_timeout": None},  # `run` limits the time
            )
            await self._pool  # with min_size=0 this opens no connection
        if self._must_renew:
            self._must_renew = False
            await self._pool.expire_connections()
        return self._pool

    def renew(self) -> None:
        """Replace every connection before its next use, those in use too."""
        self._must_renew = True
        for connection in self._take_idle():
            _cut(connection)

    def _take_idle(self) -> list[asyncpg.Connection]:
        """Return the idle connections; those in use will be released."""
        idle, self._idle = self._idle, []
        return idle

    async def close(self) -> None:
        """Close every connection; those still in use after a second are cut."""
        if self._pool is None:
            return
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_CLOSE_SECONDS):
                for connection in self._take_idle():
                    await self._pool.release(connection)
                await self._pool.close()
        await asyncio.sleep(0)  # in which the transports of those that were cut are closed


def _cut(connection: asyncpg.Connection) -> None:
    """Close a connection without waiting for the server; its place in the pool is free again."""
    with contextlib.suppress(asyncpg.InterfaceError):  # the pool has dropped it already
        connection.terminate()
