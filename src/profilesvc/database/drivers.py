"""Connections of the PostgreSQL driver, lent for one unit each.

The driver's own pool costs more than the query that a connection is taken for: a task, a lock and a proxy for each use,
and four statements that reset a session in which nothing was left behind.
"""

import asyncio
import time
from typing import Any

import asyncpg

from profilesvc.database.pools import Pool
from profilesvc.database.postgres import connect

# The driver tells of a lost connection in more than one way.
CUT = (
    asyncpg.PostgresConnectionError,
    asyncpg.AdminShutdownError,
    asyncpg.InterfaceError,
    asyncpg.InternalClientError,
    ConnectionError,
)


class Drivers:
    """At most `size` connections; whoever finds none free waits."""

    def __init__(self, connect: dict[str, Any], size: int) -> None:
        self._connect = connect
        self._size, self._wanted = size, 0
        self._free = asyncio.Semaphore(size)
        self._idle: list[Any] = []
        self._current: set[Any] = set()  # made since the last `renew`
        self._is_closed = False

    def standing(self) -> Pool:
        """How many there may be, are lent, are waited for."""
        return Pool(self._size, min(self._wanted, self._size), max(self._wanted - self._size, 0))

    async def take(self, seconds: float) -> Any:
        """A connection. TimeoutError when none was free, or none could be made, in time."""
        self._wanted += 1
        try:
            return await self._taken(seconds)
        except BaseException:
            self._wanted -= 1
            raise

    async def _taken(self, seconds: float) -> Any:
        until = time.monotonic() + seconds
        if self._free.locked():
            async with asyncio.timeout(seconds):
                await self._free.acquire()
        else:  # without a timer
            await self._free.acquire()
        while self._idle:
            if not (connection := self._idle.pop()).is_closed():  # as after a restart of the server
                return connection
            self._current.discard(connection)
        return await self._opened(until)

    async def _opened(self, until: float) -> Any:
        try:
            async with asyncio.timeout(until - time.monotonic()):
                connection = await connect(**self._connect)
        except BaseException:
            self._free.release()
            raise
        self._current.add(connection)
        return connection

    def give_back(self, connection: Any, *, whole: bool) -> None:
        """Let others have it, unless a statement was interrupted on it: nobody knows what it would answer next."""
        if whole and connection in self._current and not self._is_closed and not connection.is_closed():
            self._idle.append(connection)
        else:
            self._current.discard(connection)
            connection.terminate()
        self._wanted -= 1
        self._free.release()

    def renew(self) -> None:
        """Make new ones from now on: if one was cut, or its server became read-only, the others are no better.

        Those that are lent end when they are given back.
        """
        self._current.clear()
        while self._idle:
            self._idle.pop().terminate()

    async def close(self) -> None:
        """Close those that are not lent; the others end when they are given back."""
        self._is_closed = True
        while self._idle:
            await self._idle.pop().close()
