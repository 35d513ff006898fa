"""Connections of the PostgreSQL driver, lent for one unit each.

The driver's own pool costs more than the query that a connection is taken for: a task, a lock and a proxy for each use,
and four statements that reset a session in which nothing was left behind.
"""

import asyncio
from typing import Any

import asyncpg

from profilesvc.storage.pools import Pool

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
        if self._idle and not self._free.locked():  # without a timer where nobody is waited for
            await self._free.acquire()
            return self._idle.pop()
        async with asyncio.timeout(seconds):
            await self._free.acquire()
            return self._idle.pop() if self._idle else await self._opened(seconds)

    async def _opened(self, seconds: float) -> Any:
        try:
            return await asyncpg.connect(**{**self._connect, "timeout": seconds})
        except BaseException:
            self._free.release()
            raise

    def give_back(self, connection: Any, *, whole: bool) -> None:
        """Let others have it, unless a statement was interrupted on it: nobody knows what it would answer next."""
        if whole and not self._is_closed and not connection.is_closed():
            self._idle.append(connection)
        else:
            connection.terminate()
        self._wanted -= 1
        self._free.release()

    def drop_idle(self) -> None:
        """Make new ones from now on: where one was cut the others were too."""
        while self._idle:
            self._idle.pop().terminate()

    async def close(self) -> None:
        """Close those that are not lent; the others end when they are given back."""
        self._is_closed = True
        while self._idle:
            await self._idle.pop().close()
