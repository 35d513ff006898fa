"""The allowance of a day in a real Valkey, shared by processes, and in a cluster."""

import asyncio
import subprocess
import sys
import time
from collections.abc import AsyncIterator

import pytest
from redis import Redis

from profilesvc.domain.time import DAY, HOUR, FrozenClock
from profilesvc.limits.allowance import MemoryAllowance, Refused
from profilesvc.limits.redis_allowance import SharedAllowance
from support.ports import free_port
from support.redis_server import RedisCluster, RedisServer
from support.simulated_time import START
from support.waiting import deadline

LIMIT, ALICE, BOB, CAROL = 16, 1, 2, 3
_PATTERN = "{profilesvc:allowance}:*"
_PROCESS = """
import asyncio, sys
from profilesvc.domain.time import SystemClock
from profilesvc.limits.allowance import MemoryAllowance
from profilesvc.limits.redis_allowance import SharedAllowance

async def main(url, calls):
    allowance = SharedAllowance(url, MemoryAllowance(SystemClock()), timeout=60)
    results = await asyncio.gather(*(allowance.take(1, 300) for _ in range(calls)))
    print(results.count(None))
    await allowance.close()

asyncio.run(main(sys.argv[1], int(sys.argv[2])))
"""


def allowance_at(url: str, pause: float = 0.0) -> SharedAllowance:
    return SharedAllowance(url, MemoryAllowance(FrozenClock(START)), pause=pause, timeout=60)


def clear(server: RedisServer) -> None:
    with Redis.from_url(server.url) as client:
        for key in client.keys(_PATTERN):
            client.delete(key)


@pytest.fixture
async def processes(redis_server: RedisServer) -> AsyncIterator[tuple[SharedAllowance, SharedAllowance]]:
    clear(redis_server)
    made = allowance_at(redis_server.url), allowance_at(redis_server.url)
    yield made
    for allowance in made:
        await allowance.close()


def age(server: RedisServer, milliseconds: int) -> None:
    """Make everything that is stored older, because the server's clock cannot be set."""
    with Redis.from_url(server.url) as client:
        for key in client.keys(_PATTERN):
            for member, score in client.zrange(key, 0, -1, withscores=True):
                client.zadd(key, {member: score - milliseconds})


async def granted(allowance: SharedAllowance, owner: int) -> int:
    """The uses until a refusal."""
    count = 0
    while await allowance.take(owner, LIMIT) is None:
        count += 1
    return count


async def test_four_processes_grant_an_owner_half(
    processes: tuple[SharedAllowance, SharedAllowance], redis_server: RedisServer
) -> None:
    assert await processes[0].take(BOB, 300) is None
    words = [sys.executable, "-c", _PROCESS, redis_server.url, "200"]
    started = [await asyncio.create_subprocess_exec(*words, stdout=subprocess.PIPE) for _ in range(4)]
    async with deadline(100, "four processes"):
        assert sum([int((await process.communicate())[0]) for process in started]) == 150


async def test_owners_share_as_in_memory(
    processes: tuple[SharedAllowance, SharedAllowance], redis_server: RedisServer
) -> None:
    one, two = processes
    assert await granted(one, ALICE) == LIMIT
    assert await two.take(BOB, LIMIT) in [Refused(DAY - late, by_share=False) for late in range(60_000)]
    age(redis_server, DAY)
    assert [await granted(two, ALICE), await granted(one, BOB), await granted(two, CAROL)] == [8, 4, 2]
    age(redis_server, HOUR)
    refused = await one.take(ALICE, LIMIT)
    assert refused is not None
    assert refused.by_share
    assert DAY - HOUR - 60_000 < refused.wait <= DAY - HOUR
    age(redis_server, 7 * DAY)
    assert await granted(one, ALICE) == LIMIT  # the others have not asked for a week


async def test_little_is_kept_and_all_keys_expire(
    processes: tuple[SharedAllowance, SharedAllowance], redis_server: RedisServer
) -> None:
    for owner in range(1, 10):
        await granted(processes[0], owner)
    with Redis.from_url(redis_server.url) as client:
        sizes = {key.decode().partition("}:")[2]: client.zcard(key) for key in client.keys(_PATTERN)}
        assert all(client.pttl(key) > 0 for key in client.keys(_PATTERN))
    assert (sizes.pop("asked"), sizes.pop("all")) == (2, LIMIT)
    assert sum(sizes.values()) == LIMIT


@pytest.mark.long
async def test_a_use_costs_the_same_after_ten_thousand(
    processes: tuple[SharedAllowance, SharedAllowance], redis_server: RedisServer
) -> None:
    """A script that reads all entries would need 30 times as long."""

    async def seconds(calls: int) -> float:
        started = time.perf_counter()
        for number in range(calls):
            await processes[0].take(number % 50, 20_000)
        return (time.perf_counter() - started) / calls

    few = min([await seconds(100) for _ in range(3)])
    with Redis.from_url(redis_server.url) as client:
        now = int(client.time()[0]) * 1000
        for key in ("all", "of:1"):
            members = {f"old{number}": now - 1000 for number in range(9_000)}
            client.zadd(f"{{profilesvc:allowance}}:{key}", members)
    many = min([await seconds(100) for _ in range(3)])
    assert many < 5 * few + 0.001


async def test_each_process_counts_on_its_own_while_the_server_fails() -> None:
    allowance = allowance_at(f"redis://127.0.0.1:{free_port()}", pause=60)
    assert await granted(allowance, ALICE) == LIMIT
    assert await allowance.take(BOB, LIMIT) == Refused(DAY, by_share=False)
    await allowance.close()


async def test_uses_before_a_failure_are_counted_after_it() -> None:
    server = RedisServer()
    allowance = allowance_at(server.url)
    for _ in range(LIMIT - 1):
        assert await allowance.take(ALICE, LIMIT) is None
    server.stop()
    assert await granted(allowance, ALICE) == 1
    await allowance.close()


async def test_cluster_has_the_keys_on_one_server(redis_cluster: RedisCluster) -> None:
    allowance = allowance_at(redis_cluster.url)
    results = await asyncio.gather(*(allowance.take(owner % 5, 300) for owner in range(100)))
    assert results == [None] * 100
    await allowance.close()
