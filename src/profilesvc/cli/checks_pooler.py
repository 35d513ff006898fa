"""Whether `doctor` finds a connection pooler between the service and PostgreSQL, and how it pools."""

from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from typing import TYPE_CHECKING, Any

import asyncpg

from profilesvc.cli.checks import Check
from profilesvc.storage.postgres import connect

if TYPE_CHECKING:
    from sqlalchemy.ext.asyncio import AsyncEngine

_ROUNDS, _SECONDS = 4, 5
_HINT = "set pool_mode = session in PgBouncer: the service needs prepared statements and advisory locks to last"


async def pooler(engine: "AsyncEngine") -> Check | None:
    """The pooler, None for none. What prevents a connection is for another check to report.

    A pooler gives each client a process id of its own. If it pools by session, two clients never share a server process
    and neither changes its own.
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
            return Check("pooler", "warn", "no server process for a second client", "is its pool_size large enough?")
        except asyncpg.PostgresError as error:
            is_by_statement = "statement pooling" in str(error)
            return Check("pooler", "fail", "it pools by statement", _HINT) if is_by_statement else None
        except (OSError, asyncpg.InterfaceError, asyncpg.InternalClientError):
            return None
    if first != pids[0][1] and set(pids) == {(first, pids[0][1])}:
        return Check("pooler", "ok", "it pools by session")
    return Check("pooler", "fail", "it pools by transaction", _HINT)


@asynccontextmanager
async def _client(arguments: Mapping[str, Any]) -> AsyncIterator[Any]:
    """A connection without the settings at its start, which a pooler may refuse, and without named statements."""
    client = await connect(**{**arguments, "timeout": _SECONDS, "statement_cache_size": 0})
    try:
        yield client
    finally:
        client.terminate()


async def _server_pid(client: Any) -> Any:
    """Which process of the server answers now; a transaction keeps it for the two steps of a query."""
    async with client.transaction():
        return await client.fetchval("SELECT pg_backend_pid()", timeout=_SECONDS)
