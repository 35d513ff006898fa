"""Detects a connection pooler between the service and PostgreSQL, and its pooling mode."""

from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Literal

import asyncpg
from sqlalchemy.ext.asyncio import AsyncEngine

from profilesvc.database.postgres import connect

_ROUNDS, _SECONDS = 4, 5


async def pooling(engine: AsyncEngine) -> Literal["session", "transaction", "statement", "full"] | None:
    """Return the pooling mode, or None without a pooler or a connection; full: it has no second server process.

    A pooler gives each client a process id of its own. With session pooling two clients never share a server process,
    and each keeps its own.
    """
    arguments = engine.dialect.create_connect_args(engine.url)[1]
    async with AsyncExitStack() as stack:
        try:
            one, two = [await stack.enter_async_context(_client(arguments)) for _ in range(2)]
            first = await _server_pid(one)
            if one.get_server_pid() == first:
                return None
            pids = [(await _server_pid(one), await _server_pid(two)) for _ in range(_ROUNDS)]
        except TimeoutError:
            return "full"
        except asyncpg.PostgresError as error:
            return "statement" if "statement pooling" in str(error) else None
        except (OSError, asyncpg.InterfaceError, asyncpg.InternalClientError):
            return None
    return "session" if first != pids[0][1] and set(pids) == {(first, pids[0][1])} else "transaction"


@asynccontextmanager
async def _client(arguments: Mapping[str, object]) -> AsyncIterator[asyncpg.Connection]:
    """Open a connection without start-up settings, which a pooler may reject, and without named statements."""
    client = await connect(**{**arguments, "timeout": _SECONDS, "statement_cache_size": 0})
    try:
        yield client
    finally:
        client.terminate()


async def _server_pid(client: asyncpg.Connection) -> object:
    """Return the process id of the server now; a transaction keeps it for the two steps of a query."""
    async with client.transaction():
        return await client.fetchval("SELECT pg_backend_pid()", timeout=_SECONDS)
