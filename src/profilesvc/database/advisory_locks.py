"""Locks between the processes of a service, for work outside a transaction, such as reading the provider."""

import asyncio
import contextlib
import hashlib
from collections.abc import AsyncIterator
from typing import Any, Protocol

import asyncpg

from profilesvc.database.postgres import connect
from profilesvc.database.postgres_pool import CUT
from profilesvc.database.unavailable import as_unavailable, raising_unavailable

WAIT_SECONDS = 20.0
_PAUSE_SECONDS = 0.05


class AdvisoryLocks(Protocol):
    """Locks by name that one process holds at a time."""

    def hold(self, name: str) -> contextlib.AbstractAsyncContextManager[bool]:
        """Hold a lock for the block; yield whether it was free at once.

        A process that already holds the lock gets it again without waiting. After 20 s of waiting the block runs
        without the lock.

        Raises:
            ServiceError: SERVICE_UNAVAILABLE.
        """
        ...

    def renew(self) -> None:
        """Use a new connection from now on, because the server of the old one became read-only."""
        ...

    async def close(self) -> None: ...


class SingleProcessLocks:
    """Locks of the only process there is: always free."""

    @contextlib.asynccontextmanager
    async def hold(self, name: str) -> AsyncIterator[bool]:
        """See AdvisoryLocks."""
        yield True

    def renew(self) -> None:
        """Do nothing: there is no connection."""

    async def close(self) -> None:
        """Do nothing: there is no connection."""


class PostgresAdvisoryLocks:
    """PostgreSQL's advisory locks, all on one connection, so that they end with the process however it ends."""

    def __init__(self, connect_args: dict[str, object]) -> None:
        self._connect_args = connect_args
        self._connection: Any = None
        self._in_use = asyncio.Lock()

    @contextlib.asynccontextmanager
    async def hold(self, name: str) -> AsyncIterator[bool]:
        """See AdvisoryLocks."""
        number = int.from_bytes(hashlib.sha256(name.encode()).digest()[:8], signed=True)
        holder = await self._try(number)
        was_free = holder is not None
        deadline = asyncio.get_running_loop().time() + WAIT_SECONDS
        while holder is None and asyncio.get_running_loop().time() < deadline:
            await asyncio.sleep(_PAUSE_SECONDS)
            holder = await self._try(number)
        try:
            yield was_free
        finally:
            if holder is not None:
                await self._release(number, holder)

    async def _try(self, number: int) -> asyncpg.Connection | None:
        """Return the connection that holds the lock now, or None while another process holds it.

        A restart of the server cuts the connection. That shows at its next use, so the second try is on a new one.
        """
        async with self._in_use:
            with raising_unavailable():
                try:
                    return await self._lock(number)
                except CUT:
                    return await self._lock(number)

    async def _lock(self, number: int) -> asyncpg.Connection | None:
        try:
            if self._connection is None or self._connection.is_closed():
                self._connection = await connect(**self._connect_args)
            connection = self._connection  # another task may replace it meanwhile
            is_held = await connection.fetchval("SELECT pg_try_advisory_lock($1)", number)
        except BaseException:  # the lock may be held all the same: release it by closing the connection
            self.renew()
            raise
        return connection if is_held else None

    async def _release(self, number: int, holder: asyncpg.Connection) -> None:
        async with self._in_use:
            if holder is not self._connection:  # the lock ended with its connection
                return
            try:
                await holder.fetchval("SELECT pg_advisory_unlock($1)", number)
            except BaseException as error:
                self.renew()
                if as_unavailable(error) is None:
                    raise

    def renew(self) -> None:
        """Close the connection, which releases its locks; the next lock opens another one."""
        if self._connection is not None:
            self._connection.terminate()
        self._connection = None

    async def close(self) -> None:
        if self._connection is not None:
            await self._connection.close()
