"""The provider's quota in a real Valkey, shared by processes, and in a cluster."""

import asyncio
import subprocess
import sys
from collections.abc import AsyncIterator

import pytest
from redis import Redis

from profilesvc.domain.request import low_priority
from profilesvc.domain.time import FrozenClock
from profilesvc.limits.counters import MemoryWindows
from profilesvc.limits.redis import SharedWindows
from profilesvc.provider.port import ProviderError, QuotaStanding
from profilesvc.provider.quota import Counters, Quota, counting
from profilesvc.settings import ProviderSettings
from support.database.redis_server import RedisServer
from support.network.ports import free_port
from support.simulated_time import START

API, LIMIT, GREEDY, OTHER = "posts", 20, 1, 2
_PROCESS = """
import asyncio, sys
from profilesvc.domain.time import SystemClock
from profilesvc.limits.counters import MemoryWindows
from profilesvc.limits.redis import SharedWindows
from profilesvc.provider.quota import Counters, Quota, counting
from profilesvc.settings import ProviderSettings

async def main(url, owner, calls):
    windows = SharedWindows(url, MemoryWindows(SystemClock()), timeout=60)
    quota = Quota(ProviderSettings(), Counters(windows, counting(windows)), ("posts",))
    turns = await asyncio.gather(*(quota.turn("posts", owner, 0) for _ in range(calls)), return_exceptions=True)
    print(turns.count(None))
    await windows.close()

asyncio.run(main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3])))
"""


def clear(server: RedisServer) -> None:
    with Redis.from_url(server.url) as client:
        client.flushdb()


def quota_at(url: str, pause: float = 0.0) -> tuple[Quota, SharedWindows]:
    windows = SharedWindows(url, MemoryWindows(FrozenClock(START)), pause=pause, timeout=60)
    settings = ProviderSettings(requests_per_minute=LIMIT, updates_per_day=LIMIT)
    return Quota(settings, Counters(windows, counting(windows)), (API, "information")), windows


@pytest.fixture(params=["redis_server", "redis_cluster"])
async def processes(request: pytest.FixtureRequest) -> AsyncIterator[tuple[Quota, Quota]]:
    server = request.getfixturevalue(request.param)
    for each in server.servers if request.param == "redis_cluster" else [server]:
        clear(each)
    made = quota_at(server.url), quota_at(server.url)
    yield made[0][0], made[1][0]
    for _, windows in made:
        await windows.close()


async def granted(quota: Quota, owner: int, *, updates: bool = False) -> int:
    """The requests or updates until a refusal."""
    count = 0
    while True:
        try:
            await (quota.count_update(API, owner) if updates else quota.turn(API, owner, 0))
        except ProviderError:
            return count
        count += 1


async def test_processes_share_the_requests_of_an_owner_and_of_all(processes: tuple[Quota, Quota]) -> None:
    one, two = processes
    await two.turn(API, GREEDY, 0)
    assert [await granted(one, GREEDY), await granted(two, GREEDY)] == [7, 0]
    assert [await granted(two, OTHER), await granted(one, 3), await granted(two, 4)] == [8, 4, 0]
    assert await one.standing() == [QuotaStanding(API, LIMIT, LIMIT), QuotaStanding("information", LIMIT, 0)]


async def test_processes_share_the_updates_of_a_day(processes: tuple[Quota, Quota]) -> None:
    one, two = processes
    await two.count_update(API, GREEDY)
    assert [await granted(quota, GREEDY, updates=True) for quota in (one, two)] == [7, 0]
    assert [await granted(quota, OTHER, updates=True) for quota in (one, two)] == [8, 0]


async def test_processes_share_what_background_work_may_use(processes: tuple[Quota, Quota]) -> None:
    one, two = processes
    with low_priority():
        assert [await granted(one, GREEDY), await granted(two, OTHER), await granted(one, 3)] == [8, 2, 0]
    assert await granted(two, 3) == 8


async def test_four_processes_send_no_more_than_the_quota(redis_server: RedisServer) -> None:
    clear(redis_server)
    words = [sys.executable, "-c", _PROCESS, redis_server.url]
    started = [
        await asyncio.create_subprocess_exec(*words, str(owner), "200", stdout=subprocess.PIPE) for owner in range(4)
    ]
    counts = [int((await process.communicate())[0]) for process in started]
    assert sum(counts) == 300
    assert max(counts) <= 120


async def test_each_process_counts_on_its_own_while_the_server_fails() -> None:
    quota, windows = quota_at(f"redis://127.0.0.1:{free_port()}", pause=60)
    assert [await granted(quota, owner) for owner in (GREEDY, OTHER, 3)] == [8, 8, 4]
    await windows.close()
