"""One process at a time for work that is no transaction, such as a reading of the provider."""

import asyncio
import contextlib
import hashlib
from collections.abc import AsyncIterator
from typing import Any, Protocol

import asyncpg

from profilesvc.domain.errors import ServiceError
from profilesvc.storage.trouble import unavailable_as_refusal

WAIT_SECONDS = 20.0
_PAUSE_SECONDS = 0.05


class Turns(Protocol):
    """What the processes of a service take turns at, by name."""

    def take(self, name: str) -> contextlib.AbstractAsyncContextManager[bool]:
        """Begin when no other process is at it; True when none was. Within this process nobody waits.

        Whoever has waited for 20 s goes on all the same. SERVICE_UNAVAILABLE.
        """
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

    async def close(self) -> None:
        """Nothing is open."""


class PostgresTurns:
    """PostgreSQL's advisory locks, all held by one connection: they end with the process, however that ends."""

    def __init__(self, connect: dict[str, Any]) -> None:
        self._connect = connect
        self._connection: asyncpg.Connection | None = None
        self._turn = asyncio.Lock()

    @contextlib.asynccontextmanager
    async def take(self, name: str) -> AsyncIterator[bool]:
        """See Turns."""
        number = int.from_bytes(hashlib.sha256(name.encode()).digest()[:8], signed=True)
        was_free = is_mine = await self._ask("pg_try_advisory_lock", number)
        deadline = asyncio.get_running_loop().time() + WAIT_SECONDS
        while not is_mine and asyncio.get_running_loop().time() < deadline:
            await asyncio.sleep(_PAUSE_SECONDS)
            is_mine = await self._ask("pg_try_advisory_lock", number)
        try:
            yield was_free
        finally:
            if is_mine:
                with contextlib.suppress(ServiceError):  # what ended the connection ended the lock
                    await self._ask("pg_advisory_unlock", number)

    async def _ask(self, function: str, number: int) -> bool:
        async with self._turn:
            try:
                with unavailable_as_refusal():
                    if self._connection is None:
                        self._connection = await asyncpg.connect(**self._connect)
                    return bool(await self._connection.fetchval(f"SELECT {function}($1)", number))
            except BaseException:  # a lock that nobody knows of must not stay
                if self._connection is not None:
                    self._connection.terminate()
                self._connection = None
                raise

    async def close(self) -> None:
        """Close the connection."""
        if self._connection is not None:
            await self._connection.close()
