"""The Citus cluster that PROFILESVC_TEST_CITUS_URL names: any database of its coordinator that knows its nodes.

No package registry has Citus, so tests of a cluster are skipped without one. Each process that tests has databases of
its own on all nodes.
"""

import asyncio
import contextlib
import json
import os
import re
from collections.abc import Iterator, Sequence
from typing import Any

import asyncpg
import pytest
from sqlalchemy import make_url

from support.waiting import until_async

CITUS = "PROFILESVC_TEST_CITUS_URL"
SHARDS = 4  # of each table, because each test empties and fills them
on_a_cluster = pytest.mark.skipif(CITUS not in os.environ, reason=f"needs a Citus cluster: set {CITUS} to one")

on_one_server = pytest.mark.skipif(CITUS in os.environ, reason="reads what one server has, not a cluster")


def _own(database: str) -> str:
    """The name of a database of this process."""
    start = f"test_{os.environ.get('PYTEST_XDIST_WORKER', 'main')}_"
    return database if database.startswith(start) else start + database


class Nodes:
    """The nodes of the cluster, the coordinator first."""

    def __init__(self, url: str) -> None:
        self._url = make_url(url).set(drivername="postgresql")
        self.addresses = asyncio.run(self._read())

    async def _read(self) -> list[tuple[str, int]]:
        connection = await asyncpg.connect(self._url.render_as_string(hide_password=False))
        rows = await connection.fetch("SELECT nodename, nodeport FROM pg_dist_node ORDER BY groupid")
        await connection.close()
        return [tuple(row) for row in rows]

    def url(self, database: str, node: int = 0) -> str:
        host, port = self.addresses[node]
        url = self._url.set(drivername="postgresql+asyncpg", host=host, port=port, database=_own(database))
        return url.render_as_string(hide_password=False)

    async def connect(self, database: str, node: int = 0) -> asyncpg.Connection:
        return await asyncpg.connect(self.url(database, node).replace("+asyncpg", ""))

    async def _maintained(self, node: int) -> asyncpg.Connection:
        host, port = self.addresses[node]
        url = self._url.set(host=host, port=port, database="postgres")
        return await asyncpg.connect(url.render_as_string(hide_password=False))

    async def create(self, database: str) -> None:
        """Create a database on all nodes, as an operator does."""
        await self.drop(database)
        for node in range(len(self.addresses)):
            connection = await self._maintained(node)
            await connection.execute(f"CREATE DATABASE {_own(database)}")
            await connection.close()
            connection = await self.connect(database, node)
            await connection.execute("CREATE EXTENSION citus")
            await connection.close()
        connection = await self.connect(database)
        await connection.execute("SELECT citus_set_coordinator_host($1, $2)", *self.addresses[0])
        for address in self.addresses[1:]:
            await _added(connection, address)
        await connection.close()

    async def drop(self, database: str) -> None:
        for node in range(len(self.addresses)):
            connection = await self._maintained(node)
            await connection.execute(f"DROP DATABASE IF EXISTS {_own(database)} WITH (FORCE)")
            await connection.close()


async def _added(coordinator: asyncpg.Connection, address: tuple[str, int]) -> None:
    """Add a node; on a busy machine it may fail while other processes add theirs."""

    async def is_added() -> bool:
        with contextlib.suppress(asyncpg.PostgresError):
            await coordinator.execute("SELECT citus_add_node($1, $2)", *address)
            return True
        return False

    await until_async(is_added, f"Citus to add {address}", every=2)


async def tasks(database: asyncpg.Connection, statement: str, values: Sequence[Any]) -> list[int]:
    """How many shards each distributed part of a statement goes to; nothing for tables that each node has."""
    try:
        plan = await database.fetchval(f"EXPLAIN (FORMAT JSON) {statement}", *values)
    except asyncpg.FeatureNotSupportedError:  # it runs INSERT ... SELECT with parameters, but does not explain it
        plan = await database.fetchval(f"EXPLAIN (FORMAT JSON) {_with_values(statement, values)}")
    return list(_counts(json.loads(plan)))


def _with_values(statement: str, values: Sequence[Any]) -> str:
    """The statement with its values, which are strings and numbers, in place of the parameters."""
    literals = {
        f"${place}": str(value) if isinstance(value, int) else "'" + str(value).replace("'", "''") + "'"
        for place, value in enumerate(values, 1)
    }
    return re.sub(r"\$\d+", lambda found: literals[found[0]], statement)


def _counts(part: Any) -> Iterator[int]:
    if isinstance(part, dict):
        if "Task Count" in part:
            yield part["Task Count"]
        part = list(part.values())
    if isinstance(part, list):
        for each in part:
            yield from _counts(each)
