"""The service on a Citus cluster: on any node, while shards move, and while a node is down."""

import asyncio
import contextlib
import itertools
import os
import signal
import time
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import asyncpg
import httpx
import pytest

from conftest import client_of, make_settings
from profilesvc.bootstrap import Runtime, create_app
from profilesvc.services import tokens
from support.api import ALICE, BOB, assert_error, assert_ok
from support.database.citus import on_a_cluster
from support.waiting import deadline, until_async

if TYPE_CHECKING:
    from conftest import Cluster

pytestmark = [on_a_cluster, pytest.mark.postgres]
KEYS, HEARTBEAT = "/api/v1/developer/credentials", "/api/v1/api-keys/heartbeat"
NEW_KEY = {"name": "Site", "business_id": 10, "assigned_location_id": "locations/111"}
OWNERS = {ALICE: 1, BOB: 2}
_SHARD = "SELECT get_shard_id_for_distribution_column('users', $1::bigint)"
_NODE = "SELECT nodeport FROM pg_dist_shard_placement WHERE shardid = $1"
_MOVE = "SELECT citus_move_shard_placement($1, 'HOST', $2, 'HOST', $3, shard_transfer_mode := 'force_logical')"


class Shards:
    """Where the rows of an owner are, and how they are moved, as the operator's rebalancing does."""

    def __init__(self, database: asyncpg.Connection, cluster: "Cluster") -> None:
        self._database, self._nodes = database, cluster.nodes.addresses

    async def port(self, owner: int) -> int:
        return int(await self._database.fetchval(_NODE, await self._database.fetchval(_SHARD, owner)))

    async def move(self, owner: int, port: int) -> None:
        """Move the shards of an owner, and those that are placed with them."""
        before = await self.port(owner)
        if before != port:
            shard = await self._database.fetchval(_SHARD, owner)
            await self._database.execute("SET statement_timeout = 0; SET lock_timeout = 0")
            await self._database.execute("CALL citus_cleanup_orphaned_resources()")  # else it cannot be moved back
            await self._database.execute(_MOVE.replace("HOST", self._nodes[1][0]), shard, before, port)


@pytest.fixture
async def shards(postgres: "Cluster") -> AsyncIterator[Shards]:
    await asyncio.to_thread(postgres.restored, "work")
    database = await postgres.connect("work")
    moved = Shards(database, postgres)
    ports = [port for _, port in postgres.nodes.addresses[1:]]
    await moved.move(OWNERS[ALICE], ports[0])
    await moved.move(OWNERS[BOB], ports[1])
    yield moved
    await database.close()


@contextlib.asynccontextmanager
async def serving(cluster: "Cluster", folder: Path, node: int) -> AsyncIterator[dict[str, httpx.AsyncClient]]:
    """Clients of Alice and Bob of a process that is connected to one node."""
    app = create_app(make_settings(folder, cluster.url("work", node)), Runtime())
    async with app.test_app(), contextlib.AsyncExitStack() as stack:
        services: Any = app.extensions["profilesvc"]
        yield {
            email: await stack.enter_async_context(client_of(app, await tokens.user_token(services, email)))
            for email in OWNERS
        }


@contextlib.contextmanager
def stopped(data: str) -> Iterator[None]:
    """A node of this machine whose processes are stopped, as on a host that was cut off or has a frozen disk."""
    server = int(Path(data, "postmaster.pid").read_text("utf-8").split()[0])
    children = Path(f"/proc/{server}/task/{server}/children").read_text("utf-8").split()
    for pid in (server, *map(int, children)):
        os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        for pid in (*map(int, children), server):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGCONT)


def crash(data: str) -> None:
    """Kill a process of a node of this machine, so that the node ends all sessions and recovers from its log."""
    server = int(Path(data, "postmaster.pid").read_text("utf-8").split()[0])
    for child in Path(f"/proc/{server}/task/{server}/children").read_text("utf-8").split():
        if b"background writer" in Path(f"/proc/{child}/cmdline").read_bytes():
            os.kill(int(child), signal.SIGKILL)
            return


async def data_of(cluster: "Cluster", port: int) -> str:
    """The folder of a node on this machine."""
    node = [port for _, port in cluster.nodes.addresses].index(port)
    connection = await cluster.nodes.connect("work", node)
    data = str(await connection.fetchval("SHOW data_directory"))
    await connection.close()
    if not await asyncio.to_thread(Path(data).is_dir):
        pytest.skip("the nodes are on other machines")
    return data


async def new_key(user: httpx.AsyncClient) -> dict[str, Any]:
    key = assert_ok(await user.post(KEYS, json=NEW_KEY), 201)
    grant = {"grant_type": "client_credentials", **{name: key[name] for name in ("client_id", "client_secret")}}
    return {**key, **assert_ok(await user.post("/api/v1/auth/token", json=grant))}


async def test_processes_on_different_nodes_answer_alike(postgres: "Cluster", shards: Shards, tmp_path: Path) -> None:
    async with contextlib.AsyncExitStack() as stack:
        nodes = [
            (await stack.enter_async_context(serving(postgres, tmp_path, node)))[ALICE]
            for node in range(len(postgres.nodes.addresses))
        ]
        made = [await new_key(node) for node in nodes]
        lists = [assert_ok(await node.get(KEYS))["credentials"] for node in nodes]
        for key in itertools.chain(*lists):
            del key["last_used_at"]  # stored a moment after the use
        assert lists[1:] == lists[:-1]
        for node in nodes:
            for key in made:
                headers = {"Authorization": f"Bearer {key['access_token']}"}
                assert_ok(await node.post(HEARTBEAT, json={}, headers=headers))
        for node, key in zip(nodes, reversed(made), strict=True):
            assert_ok(await node.delete(f"{KEYS}/{key['client_id']}"))
            for each in nodes:
                headers = {"Authorization": f"Bearer {key['access_token']}"}
                assert_error(await each.post(HEARTBEAT, json={}, headers=headers), 401, "AUTH_INVALID_TOKEN")


async def test_no_request_fails_and_nothing_is_lost_while_shards_move(
    postgres: "Cluster", shards: Shards, tmp_path: Path
) -> None:
    acknowledged: list[str] = []
    requests = 0
    async with serving(postgres, tmp_path, 0) as users, serving(postgres, tmp_path, 1) as others:
        key = await new_key(users[ALICE])
        headers = {"Authorization": f"Bearer {key['access_token']}"}
        end = asyncio.Event()

        async def beat(user: httpx.AsyncClient) -> None:
            nonlocal requests
            while not end.is_set():
                assert_ok(await user.post(HEARTBEAT, json={}, headers=headers))
                assert_ok(await user.get(KEYS))
                requests += 2

        async def make(user: httpx.AsyncClient) -> None:
            nonlocal requests
            while not end.is_set():
                key = assert_ok(await user.post(KEYS, json=NEW_KEY), 201)
                assert_ok(await user.delete(f"{KEYS}/{key['client_id']}"))
                acknowledged.append(key["client_id"])
                requests += 2

        async def move() -> None:
            home, away = await shards.port(OWNERS[ALICE]), await shards.port(OWNERS[BOB])
            for target in (away, home, away, home):
                await shards.move(OWNERS[ALICE], target)
            end.set()

        await asyncio.gather(beat(users[ALICE]), beat(others[ALICE]), make(users[ALICE]), make(others[ALICE]), move())
    assert requests > 20
    assert len(acknowledged) > 2
    database = await postgres.connect("work")
    stored = {row[0] for row in await database.fetch("SELECT client_id FROM keys WHERE revoked_at IS NOT NULL")}
    await database.close()
    assert set(acknowledged) <= stored


async def test_a_node_that_is_down_fails_its_owners_only(postgres: "Cluster", shards: Shards, tmp_path: Path) -> None:
    data = await data_of(postgres, await shards.port(OWNERS[ALICE]))
    async with serving(postgres, tmp_path, 0) as users:
        for user in users.values():
            assert_ok(await user.get(KEYS))
        with stopped(data):
            for _ in range(2):
                async with deadline(6, "503 for an owner of the node"):
                    refused = await users[ALICE].get(KEYS)
                assert assert_error(refused, 503, "SERVICE_UNAVAILABLE") is not None
                assert int(refused.headers["Retry-After"]) > 0
                for _ in range(5):
                    async with deadline(1, "the keys of an owner of another node"):
                        assert_ok(await users[BOB].get(KEYS))
            ready = await users[BOB].get("/readyz")
            assert (ready.status_code, ready.json()["status"]) == (200, "degraded")
            assert ready.json()["checks"]["nodes"] is False

        async def is_back() -> bool:
            answers = [(await users[ALICE].get(KEYS)).status_code, (await users[ALICE].get("/readyz")).json()["status"]]
            return answers == [200, "ok"]

        await until_async(is_back, "the node to serve its owners again", every=0.2)


async def test_a_session_does_not_grow_with_each_statement(postgres: "Cluster", shards: Shards) -> None:
    """In Citus 14.0 it does, by 39 KB for each on a shard of its own node, if it has general plans."""
    for node in range(len(postgres.nodes.addresses)):
        session, sizes = await postgres.nodes.connect("work", node), []
        query = await session.prepare("SELECT id FROM keys WHERE owner_id = $1 AND client_id = $2")
        for _ in range(3):
            for _ in range(100):
                await query.fetch(OWNERS[ALICE], "svcid_1_unknown")
            sizes.append(await session.fetchval("SELECT sum(total_bytes) FROM pg_backend_memory_contexts"))
        await session.close()
        assert sizes[2] - sizes[1] < 500_000, node


async def test_a_worker_that_crashes_loses_nothing(postgres: "Cluster", shards: Shards, tmp_path: Path) -> None:
    """Its owners get 503 until it is back. An operation that was committed on it in two phases is completed later."""
    data = await data_of(postgres, await shards.port(OWNERS[ALICE]))
    made, ended, statuses = set(), set(), set()
    beaten = 0.0
    async with serving(postgres, tmp_path, 0) as users:
        key = await new_key(users[ALICE])
        headers = {"Authorization": f"Bearer {key['access_token']}"}
        end = asyncio.Event()

        async def beat() -> None:
            nonlocal beaten
            while not end.is_set():
                at = time.time()
                response = await users[ALICE].post(HEARTBEAT, json={}, headers=headers)
                statuses.add(response.status_code)
                if response.is_success:
                    beaten = at

        async def make() -> None:
            while not end.is_set():
                response = await users[ALICE].post(KEYS, json=NEW_KEY)
                statuses.add(response.status_code)
                if response.is_success:
                    made.add(made_id := response.json()["data"]["client_id"])
                    response = await users[ALICE].delete(f"{KEYS}/{made_id}")
                    statuses.add(response.status_code)
                    if response.is_success:
                        ended.add(made_id)

        async def fail() -> None:
            for _ in range(3):
                before = len(made)
                await asyncio.to_thread(crash, data)
                await until_async(lambda: len(made) >= before + 3, "3 keys after the crash", 60, every=0.1)  # noqa: B023
            end.set()

        await asyncio.gather(beat(), beat(), make(), make(), fail())
    assert statuses == {200, 201, 503}
    for node in range(len(postgres.nodes.addresses)):
        connection = await postgres.nodes.connect("work", node)
        await connection.execute("SELECT recover_prepared_transactions()")  # else within a minute
        await connection.close()
    database = await postgres.connect("work")
    rows = await database.fetch("SELECT client_id, revoked_at FROM keys")
    query = "SELECT id FROM keys WHERE owner_id = $1 AND client_id = $2"
    number = await database.fetchval(query, OWNERS[ALICE], key["client_id"])
    query = "SELECT last_heartbeat_at FROM connections WHERE owner_id = $1 AND key_id = $2"
    last = await database.fetchval(query, OWNERS[ALICE], number)
    await database.close()
    assert made <= {row["client_id"] for row in rows}
    assert ended <= {row["client_id"] for row in rows if row["revoked_at"] is not None}
    assert last >= int(beaten * 1000)
