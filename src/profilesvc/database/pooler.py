"""Detects a connection pooler between the service and PostgreSQL, and what it supports."""

import secrets
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Literal

import asyncpg
from sqlalchemy.ext.asyncio import AsyncEngine

from profilesvc.database.postgres import connect

Pooling = Literal["session", "transaction", "transaction, unprepared", "statement", "full"]
_ROUNDS, _SECONDS = 4, 5
_REMEDY = "use PgBouncer 1.21 or later with max_prepared_statements above 0, or set pool_mode = session"
_PROBLEMS: dict[Pooling, str] = {
    "transaction, unprepared": "it pools by transaction and does not support prepared statements",
    "statement": "it pools by statement, so that no transaction is possible",
}


def problem(pooling: Pooling | None) -> tuple[str, str] | None:
    """Return why the service cannot work with such a pooler, and the remedy; None if it can."""
    reason = None if pooling is None else _PROBLEMS.get(pooling)
    return None if reason is None else (reason, _REMEDY)


async def pooling(engine: AsyncEngine) -> Pooling | None:
    """Return what the pooler does, or None without a pooler or a connection; full: it has no second server process.

    A pooler gives each client a process id of its own. With session pooling two clients never share a server process,
    and each keeps its own.
    """
    arguments = engine.dialect.create_connect_args(engine.url)[1]
    async with AsyncExitStack() as stack:
        try:
            one = await stack.enter_async_context(_client(arguments))
            first = await _server_pid(one)
            if one.get_server_pid() == first:
                return None
            two = await stack.enter_async_context(_client(arguments))
            pids = [(await _server_pid(one), await _server_pid(two)) for _ in range(_ROUNDS)]
            if first != pids[0][1] and set(pids) == {(first, pids[0][1])}:
                return "session"
            return "transaction" if await _keeps_statements(one) else "transaction, unprepared"
        except TimeoutError:
            return "full"
        except asyncpg.PostgresError as error:
            return "statement" if "statement pooling" in str(error) else None
        except (OSError, asyncpg.InterfaceError, asyncpg.InternalClientError):
            return None


@asynccontextmanager
async def _client(arguments: Mapping[str, object]) -> AsyncIterator[asyncpg.Connection]:
    """Open a connection without named statements."""
    client = await connect(**{**arguments, "timeout": _SECONDS, "statement_cache_size": 0})
    try:
        yield client
    finally:
        client.terminate()


async def _server_pid(client: asyncpg.Connection) -> object:
    """Return the process id of the server now; a transaction keeps it for the two steps of a query."""
    async with client.transaction():
        return await client.fetchval("SELECT pg_backend_pid()", timeout=_SECONDS)


async def _keeps_statements(client: asyncpg.Connection) -> bool:
    """Return whether clients can have prepared statements: the pooler gives them names of its own at the server."""
    try:
        async with client.transaction():
            name = f"profilesvc_{secrets.token_hex(8)}"
            statement = await client.prepare("SELECT $1::text", name=name, timeout=_SECONDS)
            query = "SELECT count(*) FROM pg_prepared_statements WHERE name = $1"
            return not await client.fetchval(query, await statement.fetchval(name), timeout=_SECONDS)
    except asyncpg.InvalidSQLStatementNameError:
        return False
