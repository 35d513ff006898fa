"""A Redis Cluster that loses a server: each process counts on its own until the replica has taken over."""

import asyncio
import collections
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from redis import Redis

from profilesvc.domain.rates import Window
from profilesvc.domain.time import MINUTE, FrozenClock
from profilesvc.limits.counters import MemoryWindows
from profilesvc.limits.redis import PAUSE_SECONDS, SharedWindows
from support.database.redis_server import RedisCluster
from support.program import caller, command, serving
from support.waiting import deadline, until_async

KEYS = [f"{{key{number}}}" for number in range(30)]  # on all servers; what is in braces selects one
MANY = Window(100_000, MINUTE)
BACK_SECONDS = 60.0  # on a busy machine; otherwise it takes two or three
LATE_SECONDS = 3.0
LOST_SECONDS = 10.0


@pytest.fixture
def replicated() -> Iterator[RedisCluster]:
    cluster = RedisCluster(replicas=True)
    yield cluster
    cluster.stop()


def counting(cluster: RedisCluster) -> SharedWindows:
    """Windows of a process."""
    return SharedWindows(cluster.url, MemoryWindows(FrozenClock(1)), pause=0.2)


def counted(cluster: RedisCluster) -> int:
    """The requests of users that the servers that are left have counted."""
    count = 0
    for server in (*cluster.servers[1:], *cluster.replicas):
        with Redis.from_url(server.url) as redis:
            count += sum(int(redis.llen(key)) for key in redis.keys("profilesvc:*reads-per-user*"))
    return count


async def apart(one: SharedWindows, other: SharedWindows, keys: list[str]) -> list[str]:
    """Return the keys for which the second process does not see what the first has counted, in windows not used yet."""
    turn = time.monotonic()
    pairs = {key: [(await each.take(f"{key}-{turn}", MANY))[1].left for each in (one, other)] for key in keys}
    return [key for key, (before, after) in pairs.items() if after >= before]


async def test_a_cluster_that_loses_a_server_rejects_no_caller_and_counts_again(replicated: RedisCluster) -> None:
    one, other, loaded = (counting(replicated) for _ in range(3))
    assert await apart(one, other, KEYS) == []
    granted: list[bool] = []
    is_over = asyncio.Event()

    async def load() -> None:
        while not is_over.is_set():
            for key in KEYS:
                async with deadline(LATE_SECONDS, "a place in a window"):
                    granted.append((await loaded.take(f"load-{key}", MANY))[0])
                await asyncio.sleep(0.001)  # counting in memory lets no other task run

    callers = [asyncio.create_task(load()) for _ in range(4)]
    try:
        await asyncio.sleep(0.2)
        before = len(granted)
        await asyncio.to_thread(replicated.servers[0].kill)
        await until_async(lambda: apart(one, other, KEYS), "counts that differ", BACK_SECONDS, every=0)

        async def are_together() -> bool:
            return not await apart(one, other, KEYS)

        await until_async(are_together, "counts of both processes", BACK_SECONDS, every=0.05)
    finally:  # otherwise a failure would wait forever for the callers to end
        is_over.set()
        await asyncio.gather(*callers)
    assert len(granted) > before
    assert all(granted)
    for windows in (one, other, loaded):
        await windows.close()


@pytest.mark.long
def test_no_request_fails_while_a_server_is_lost(replicated: RedisCluster, tmp_path: Path) -> None:
    """All are answered in time, and the limit holds again when the replica counts."""
    settings = {"LIMITS__STORAGE_URL": replicated.url, "LIMITS__READS_PER_USER": "100000/minute"}
    with serving(tmp_path, "serve", "--demo", "--port", "0", **settings) as server:
        token = command(tmp_path, "users", "token", "alice@example.com").stdout.strip()
        with caller(server, token) as alice:
            statuses, waits = collections.Counter[int](), [0.0]
            end = time.monotonic() + PAUSE_SECONDS + LOST_SECONDS
            killed = False
            while time.monotonic() < end:
                begun = time.monotonic()
                statuses[alice.get("/api/v1/businesses").status_code] += 1
                waits.append(time.monotonic() - begun)
                if not killed and statuses.total() > 20:
                    replicated.servers[0].kill()
                    killed = True
            before = counted(replicated)
            assert alice.get("/api/v1/businesses").is_success
            after = counted(replicated)
    assert statuses.keys() == {200}
    assert max(waits) < LATE_SECONDS
    assert after > before
