"""One process at a time for work that is no transaction, such as a reading of the provider."""

import asyncio
import contextlib
import hashlib
from collections.abc import AsyncIterator
from typing import Any, Protocol

import asyncpg

from profilesvc.database.postgres import connect
from profilesvc.database.postgres_pool import CUT
from profilesvc.database.unavailable import refusal, unavailable_as_refusal

WAIT_SECONDS = 20.0
_PAUSE_SECONDS = 0.05


class Turns(Protocol):
    """What the processes of a service take turns at, by name."""

    def take(self, name: str) -> contextlib.AbstractAsyncContextManager[bool]:
        """Begin when no other process is at it; True when none was. Within this process nobody waits.

        Whoever has waited for 20 s goes on all the same. SERVICE_UNAVAILABLE.
        """
        ...

    def renew(self) -> None:
        """Ask on a new connection from now on: the server of the old one became read-only."""
        ...

    async def close(self) -> None:
        """Give back what was opened."""
        ...


class Alone:
    """Turns of the only process there is."""

    @contextlib.asynccontextmanager
    async def take(self, name: str) -> AsyncIterator[bool]:
        """See Turns."""
        yield True

    def renew(self) -> None:
        """Nothing is open."""

    async def close(self) -> None:
        """Nothing is open."""


class PostgresTurns:
    """PostgreSQL's advisory locks, all held by one connection: they end with the process, however that ends."""

    def __init__(self, connect: dict[str, Any]) -> None:
        self._connect = connect
        self._connection: Any = None
        self._turn = asyncio.Lock()

    @contextlib.asynccontextmanager
    async def take(self, name: str) -> AsyncIterator[bool]:
        """See Turns."""
        number = int.from_bytes(hashlib.sha256(name.encode()).digest()[:8], signed=True)
        held_by = await self._try(number)
        was_free = held_by is not None
        deadline = asyncio.get_running_loop().time() + WAIT_SECONDS
        while held_by is None and asyncio.get_running_loop().time() < deadline:
            await asyncio.sleep(_PAUSE_SECONDS)
            held_by = await self._try(number)
        try:
            yield was_free
        finally:
            if held_by is not None:
                await self._give_back(number, held_by)

    async def _try(self, number: int) -> asyncpg.Connection | None:
        """The connection that holds the lock now, None while another process has it.

        A restart of the server ends the connection, and that shows at its next use: then it is asked on a new one.
        """
        async with self._turn:
            with unavailable_as_refusal():
                try:
                    return await self._locked(number)
                except CUT:
                    return await self._locked(number)

    async def _locked(self, number: int) -> asyncpg.Connection | None:
        try:
            if self._connection is None or self._connection.is_closed():
                self._connection = await connect(**self._connect)
            asked = self._connection  # another one may follow while this one waits
            is_mine = await asked.fetchval("SELECT pg_try_advisory_lock($1)", number)
        except BaseException:  # a lock that nobody knows of must not stay
            self.renew()
            raise
        return asked if is_mine else None

    async def _give_back(self, number: int, held_by: asyncpg.Connection) -> None:
        async with self._turn:
            if held_by is not self._connection:  # the lock ended with its connection
                return
            try:
                await held_by.fetchval("SELECT pg_advisory_unlock($1)", number)
            except BaseException as error:
                self.renew()
                if refusal(error) is None:
                    raise

    def renew(self) -> None:
        """End the connection, and with it its locks; the next turn makes another one."""
        if self._connection is not None:
            self._connection.terminate()
        self._connection = None

    async def close(self) -> None:
        """Close the connection."""
        if self._connection is not None:
            await self._connection.close()
