"""The pool of the PostgreSQL driver: a connection serves one unit at a time, and never again after an interruption."""

import asyncio
import socket
from collections.abc import AsyncIterator
from typing import Any

import asyncpg
import pytest

from conftest import Postgres
from profilesvc.database.postgres import connect, connect_args
from profilesvc.database.postgres_pool import PostgresPool
from profilesvc.database.unavailable import as_unavailable, is_lost
from support.waiting import deadline


@pytest.fixture
async def pool(postgres: Postgres) -> AsyncIterator[PostgresPool]:
    made = PostgresPool({"user": "postgres", "database": "work", "host": postgres.host}, 2)
    yield made
    await made.close()


async def pid(connection: Any) -> int:
    """The server process behind a connection: another process means another connection."""
    return int(await connection.fetchval("SELECT pg_backend_pid()"))


async def cut(postgres: Postgres, *pids: int) -> None:
    """End sessions from the outside, as a restart of the server does; return when they have ended."""
    other = await asyncpg.connect(user="postgres", database="work", host=postgres.host)
    for each in pids:
        await other.execute(f"SELECT pg_terminate_backend({each}, 5000)")
    await other.close()


class Hold:
    """Work that keeps its connection until it is released."""

    def __init__(self) -> None:
        self.has_connection, self.end = asyncio.Event(), asyncio.Event()

    async def __call__(self, connection: Any) -> int:
        found = await pid(connection)
        self.has_connection.set()
        await self.end.wait()
        return found


async def test_runs_no_more_at_once_than_its_size(pool: PostgresPool) -> None:
    holds = [Hold(), Hold()]
    running = [asyncio.create_task(pool.run(hold, 5)) for hold in holds]
    for hold in holds:
        await hold.has_connection.wait()
    assert pool.usage() == (2, 2, 0)
    waiting = asyncio.create_task(pool.run(pid, 5))
    await asyncio.sleep(0)
    assert pool.usage() == (2, 2, 1)
    with pytest.raises(TimeoutError):
        await pool.run(pid, 0.01)
    holds[0].end.set()
    assert await waiting == await running[0]
    holds[1].end.set()
    await running[1]
    assert pool.usage() == (2, 0, 0)


async def test_keeps_a_connection_for_the_next_and_after_an_error_response(pool: PostgresPool) -> None:
    first = await pool.run(pid, 5)
    with pytest.raises(asyncpg.UndefinedColumnError):
        await pool.run(lambda connection: connection.fetch("SELECT nonsense"), 5)
    assert await pool.run(pid, 5) == first


async def test_resets_nothing_between_two_uses(pool: PostgresPool) -> None:
    """A reset would be four more statements for each use."""
    await pool.run(lambda connection: connection.execute("SET application_name = 'kept'"), 5)
    assert await pool.run(lambda connection: connection.fetchval("SHOW application_name"), 5) == "kept"


@pytest.mark.parametrize("how", ["timeout", "cancel"])
async def test_closes_a_connection_on_which_a_statement_was_interrupted(pool: PostgresPool, how: str) -> None:
    first = await pool.run(pid, 5)
    slow = asyncio.create_task(
        pool.run(lambda connection: connection.fetch("SELECT pg_sleep(9)"), 0.2 if how == "timeout" else 5)
    )
    if how == "cancel":
        await asyncio.sleep(0.1)
        slow.cancel()
    with pytest.raises((TimeoutError, asyncio.CancelledError)):
        await slow
    assert pool.usage() == (2, 0, 0)
    assert await pool.run(pid, 5) != first


async def test_a_failed_connection_keeps_no_place(postgres: Postgres) -> None:
    nowhere = PostgresPool({"user": "postgres", "database": "no such database", "host": postgres.host}, 1)
    for _ in range(3):
        with pytest.raises(asyncpg.InvalidCatalogNameError):
            await nowhere.run(pid, 5)
    assert nowhere.usage() == (1, 0, 0)
    await nowhere.close()


async def test_close_cuts_connections_in_use(pool: PostgresPool) -> None:
    hold = Hold()
    running = asyncio.create_task(pool.run(hold, 5))
    await hold.has_connection.wait()
    async with deadline(3, "the end of the pool"):
        await pool.close()
    hold.end.set()
    assert await running > 0  # its statement had ended
    with pytest.raises(asyncpg.InterfaceError):
        await pool.run(pid, 5)


async def test_renew_replaces_idle_connections_and_those_in_use(pool: PostgresPool) -> None:
    hold = Hold()
    running = asyncio.create_task(pool.run(hold, 5))
    await hold.has_connection.wait()
    idle = await pool.run(pid, 5)
    pool.renew()
    hold.end.set()
    in_use = await running
    holds = [Hold(), Hold()]
    again = [asyncio.create_task(pool.run(each, 5)) for each in holds]
    for each in holds:
        await each.has_connection.wait()
        each.end.set()
    later = await asyncio.gather(*again)
    assert {idle, in_use}.isdisjoint(later)
    assert await pool.run(pid, 5) in later


async def test_work_on_a_connection_that_was_cut_is_repeated_on_a_new_one(
    pool: PostgresPool, postgres: Postgres
) -> None:
    pids: list[int] = []

    async def is_cut_the_first_time(connection: Any) -> int:
        pids.append(await pid(connection))
        if len(pids) == 1:
            await cut(postgres, pids[0])
        return await pid(connection)

    assert await pool.run(is_cut_the_first_time, 5) == pids[1] != pids[0]
    assert pool.usage() == (2, 0, 0)


async def test_work_that_has_started_is_not_repeated(pool: PostgresPool, postgres: Postgres) -> None:
    calls = 0

    async def is_cut(connection: Any) -> None:
        nonlocal calls
        calls += 1
        await cut(postgres, await pid(connection))
        await pid(connection)

    with pytest.raises((asyncpg.PostgresError, asyncpg.InterfaceError, ConnectionError)):
        await pool.run(is_cut, 5, lambda: True)
    assert calls == 1
    assert await pool.run(pid, 5) > 0


async def test_a_connection_that_was_cut_while_idle_is_replaced(pool: PostgresPool, postgres: Postgres) -> None:
    idle = await pool.run(pid, 5)
    await cut(postgres, idle)
    assert await pool.run(pid, 5) != idle


@pytest.mark.parametrize(
    ("code", "message", "is_unavailable"),
    [
        ("08006", "connection to the remote node failed", True),
        ("XX000", "could not commit transaction for shard 102008 on at least one active node", True),
        ("XX000", "server closed the connection unexpectedly", True),
        ("XX000", "cache lookup failed for relation 16384", False),
    ],
)
async def test_a_lost_node_of_a_cluster_costs_no_connection(
    pool: PostgresPool, code: str, message: str, is_unavailable: bool
) -> None:
    """Citus reports it as an error of the statement; the connection is intact, and so are the others."""
    idle = await pool.run(pid, 5)

    async def lost(connection: Any) -> None:
        await connection.execute(f"DO $$ BEGIN RAISE EXCEPTION '{message}' USING ERRCODE = '{code}'; END $$")

    with pytest.raises(asyncpg.PostgresError) as failure:
        await pool.run(lost, 5)
    assert await pool.run(pid, 5) == idle
    assert not is_lost(failure.value)
    assert (as_unavailable(failure.value) is not None) == is_unavailable


async def test_closing_a_connection_whose_server_is_gone_is_no_error(postgres: Postgres) -> None:
    """SQLAlchemy closes in a task of its own, whose error the event loop would report if its caller has gone."""
    connection = await connect(user="postgres", database="work", host=postgres.host, **connect_args())
    connection._transport.get_extra_info("socket").shutdown(socket.SHUT_RDWR)
    await connection.close()
    assert connection.is_closed()
