"""The budget of the provider's quota in a real Valkey, shared by processes."""

import asyncio
import subprocess
import sys
from collections.abc import AsyncIterator

import pytest
from redis import Redis

from profilesvc.domain.time import HOUR, MINUTE, SECOND, FrozenClock
from profilesvc.limits.budget import PAUSE, Claim, MemoryBudget
from profilesvc.limits.redis_budget import SharedBudget
from support.ports import free_port
from support.redis_server import RedisCluster, RedisServer
from support.simulated_time import START
from support.waiting import patience

API, LIMIT, GREEDY, OTHER = "posts", 20, 1, 2
_KEYS = [f"{{profilesvc:quota:{API}}}:{part}" for part in ("sent", "wanting", "reduced")]
_PROCESS = """
import asyncio, sys
from profilesvc.domain.time import SystemClock
from profilesvc.limits.budget import Claim, MemoryBudget
from profilesvc.limits.redis_budget import SharedBudget

async def main(url, owner, calls):
    budget = SharedBudget(url, MemoryBudget(SystemClock()), timeout=60)
    waits = await asyncio.gather(*(budget.take(Claim("posts", 300, owner)) for _ in range(calls)))
    print(waits.count(0))
    await budget.close()

asyncio.run(main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3])))
"""


def budget_at(url: str, pause: float = 0.0) -> SharedBudget:
    return SharedBudget(url, MemoryBudget(FrozenClock(START)), pause=pause, timeout=60)


@pytest.fixture
async def processes(redis_server: RedisServer) -> AsyncIterator[tuple[SharedBudget, SharedBudget]]:
    with Redis.from_url(redis_server.url) as client:
        client.delete(*_KEYS)
    made = budget_at(redis_server.url), budget_at(redis_server.url)
    yield made
    for budget in made:
        await budget.close()


def age(server: RedisServer, milliseconds: int) -> None:
    """Make everything that is stored older, because the server's clock cannot be set."""
    with Redis.from_url(server.url) as client:
        for key in _KEYS[:2]:
            for member, score in client.zrange(key, 0, -1, withscores=True):
                client.zadd(key, {member: score - milliseconds})
        if reduced := client.hget(_KEYS[2], "at"):
            client.hset(_KEYS[2], "at", int(reduced) - milliseconds)


async def granted(budget: SharedBudget, owner: int, calls: int, *, background: bool = False) -> int:
    return [await budget.take(Claim(API, LIMIT, owner, background)) for _ in range(calls)].count(0)


def test_four_processes_send_no_more_than_the_quota(redis_server: RedisServer) -> None:
    with Redis.from_url(redis_server.url) as client:
        client.delete(*_KEYS)
    started = [
        subprocess.Popen([sys.executable, "-c", _PROCESS, redis_server.url, str(owner), "200"], stdout=subprocess.PIPE)
        for owner in range(4)
    ]
    counts = [int(process.communicate(timeout=patience(120))[0]) for process in started]
    assert sum(counts) == 300


async def test_owner_may_use_all_of_it_in_any_process(processes: tuple[SharedBudget, SharedBudget]) -> None:
    one, two = processes
    assert await granted(one, GREEDY, LIMIT // 2) + await granted(two, GREEDY, LIMIT) == LIMIT
    assert 0 < await one.take(Claim(API, LIMIT, GREEDY)) <= MINUTE
    assert await two.spent(API, LIMIT) == (LIMIT, LIMIT, 1)


async def test_half_stays_free_for_an_owner_of_another_process(
    processes: tuple[SharedBudget, SharedBudget], redis_server: RedisServer
) -> None:
    one, two = processes
    assert await granted(one, GREEDY, LIMIT) == LIMIT
    assert await granted(two, OTHER, 1) == 0
    age(redis_server, MINUTE)
    assert await granted(one, GREEDY, LIMIT) == LIMIT // 2
    assert await granted(two, OTHER, LIMIT) == LIMIT // 2
    age(redis_server, 2 * MINUTE)
    assert await granted(one, GREEDY, LIMIT) == LIMIT  # the other owner has stopped asking


async def test_background_leaves_a_fifth(processes: tuple[SharedBudget, SharedBudget]) -> None:
    one, two = processes
    assert await granted(one, GREEDY, LIMIT, background=True) == LIMIT * 4 // 5
    assert await granted(two, OTHER, LIMIT) == LIMIT // 5


async def test_rejection_shrinks_it_for_all(
    processes: tuple[SharedBudget, SharedBudget], redis_server: RedisServer
) -> None:
    one, two = processes
    assert await one.shrink(API, LIMIT)
    assert not await two.shrink(API, LIMIT)
    assert await granted(two, OTHER, LIMIT) == LIMIT // 2
    age(redis_server, PAUSE)
    assert await two.shrink(API, LIMIT)
    assert (await one.spent(API, LIMIT)).budget == LIMIT // 4
    age(redis_server, 5 * MINUTE)
    assert (await one.spent(API, LIMIT)).budget == LIMIT // 2
    age(redis_server, HOUR)
    assert (await one.spent(API, LIMIT)).budget == LIMIT


async def test_wait_is_the_time_until_the_oldest_request_is_a_minute_old(
    processes: tuple[SharedBudget, SharedBudget], redis_server: RedisServer
) -> None:
    one, _ = processes
    await granted(one, GREEDY, 1)
    age(redis_server, 50 * SECOND)
    await granted(one, GREEDY, LIMIT - 1)
    assert 0 < await one.take(Claim(API, LIMIT, OTHER)) <= 10 * SECOND


async def test_each_process_counts_on_its_own_while_the_server_fails() -> None:
    budget = budget_at(f"redis://127.0.0.1:{free_port()}", pause=60)
    assert await granted(budget, GREEDY, LIMIT + 1) == LIMIT
    assert await budget.shrink(API, LIMIT)
    assert await budget.spent(API, LIMIT) == (LIMIT // 2, LIMIT, 1)
    await budget.close()


async def test_requests_before_a_failure_are_counted_after_it() -> None:
    server = RedisServer()
    budget = budget_at(server.url)
    assert await granted(budget, GREEDY, LIMIT - 1) == LIMIT - 1
    server.stop()
    assert await granted(budget, GREEDY, LIMIT) == 1
    await budget.close()


async def test_cluster_has_the_keys_of_a_budget_on_one_server(redis_cluster: RedisCluster) -> None:
    budget = budget_at(redis_cluster.url)
    waits = await asyncio.gather(*(budget.take(Claim(f"api {n % 5}", 4, GREEDY)) for n in range(30)))
    assert waits.count(0) == 20
    await budget.close()
