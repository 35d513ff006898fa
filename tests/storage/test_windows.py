"""Windows that count: in memory and in Redis, by the same tests; and what happens while Redis is away."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable

import pytest
import time_machine
from hypothesis import given
from hypothesis import strategies as st
from redis.asyncio import Redis

from profilesvc.domain.rates import Standing, Window, Windows
from profilesvc.domain.time import HOUR, MINUTE, SECOND, FrozenClock
from profilesvc.limits.counters import MemoryWindows
from profilesvc.limits.redis import TIMEOUT_SECONDS, SharedWindows
from support.database.redis_server import RedisCluster, RedisServer
from support.network.ports import free_port
from support.waiting import deadline

NOW = 1_767_323_045_678


@given(steps=st.lists(st.integers(0, 40), max_size=80), limit=st.integers(1, 5))
def test_no_window_of_time_holds_more_than_the_limit(steps: list[int], limit: int) -> None:
    """And every refusal names the first moment at which one is granted."""
    clock, window, granted = FrozenClock(NOW), Window(limit, 60 * SECOND), list[int]()
    windows = MemoryWindows(clock)

    async def run() -> None:
        for step in steps:
            now = clock.advance(seconds=step)
            ok, standing = await windows.take("x", window)
            recent = [at for at in granted if now - at < window.length]
            assert ok is (len(recent) < limit)
            if ok:
                granted.append(now)
                assert standing.left == limit - len(recent) - 1
            else:
                assert standing == Standing(0, recent[-limit] + window.length - now)

    asyncio.run(run())


Move = Callable[[int], Awaitable[None]]
Rig = tuple[Windows, Move]


@pytest.fixture
def memory() -> Rig:
    """Windows, and how their clock is moved by milliseconds."""
    clock = FrozenClock(NOW)

    async def advance(by: int) -> None:
        clock.advance(milliseconds=by)

    return MemoryWindows(clock), advance


@pytest.fixture(params=["memory", "redis_server", "redis_cluster"])
async def rig(request: pytest.FixtureRequest) -> AsyncIterator[Rig]:
    """In memory, and in Redis by this process's clock; what lives in Redis expires there by its own."""
    if request.param == "memory":
        yield request.getfixturevalue("memory")
        return
    url = request.getfixturevalue(request.param).url
    with time_machine.travel(NOW / SECOND, tick=False) as traveller:

        async def shift(by: int) -> None:
            traveller.shift(by / SECOND)

        windows = SharedWindows(url, MemoryWindows(FrozenClock(NOW)), timeout=60)
        yield windows, shift
        await windows.close()


THREE = Window(3, 10 * SECOND)


async def taken(windows: Windows, count: int, name: str = "x", window: Window = THREE) -> list[bool]:
    return [(await windows.take(name, window))[0] for _ in range(count)]


async def test_grants_the_limit_and_returns_the_time_of_the_next(rig: Rig) -> None:
    windows, move = rig
    ok, first = await windows.take("x", THREE)
    assert (ok, first.left) == (True, 2)
    await move(4 * SECOND)
    assert await taken(windows, 3) == [True, True, False]
    _, standing = await windows.take("x", THREE)
    assert standing.left == 0
    assert 5_500 <= standing.wait <= 6_000
    assert await taken(windows, 1, "y") == [True]
    await move(standing.wait + 1)
    assert await taken(windows, 2) == [True, False]


@pytest.mark.parametrize("step", [HOUR, -HOUR])
async def test_A152_a_clock_that_is_set_by_an_hour_gives_the_limit_back(memory: Rig, step: int) -> None:
    windows, move = memory
    assert await taken(windows, 4) == [True, True, True, False]
    await move(step)
    assert await taken(windows, 4) == [True, True, True, False]
    _, standing = await windows.take("x", THREE)
    assert 0 < standing.wait <= THREE.length


async def test_A152_a_small_step_back_is_over_after_two_windows(memory: Rig) -> None:
    windows, move = memory
    await taken(windows, 3)
    await move(-5 * SECOND)
    ok, standing = await windows.take("x", THREE)
    assert not ok
    assert 0 < standing.wait <= 2 * THREE.length
    await move(standing.wait)
    assert await taken(windows, 1) == [True]


async def test_standing_counts_nothing(rig: Rig) -> None:
    windows, move = rig
    assert (await windows.standing("standing", THREE)).left == 3
    await taken(windows, 2, "standing")
    await move(4 * SECOND)
    await taken(windows, 2, "standing")
    full = await windows.standing("standing", THREE)
    assert full.left == 0
    assert 5_500 <= full.wait <= 6_000
    await move(full.wait + 1)
    assert [(await windows.standing("standing", THREE)).left for _ in range(2)] == [2, 2]


async def test_a_closed_bucket_grants_nothing(rig: Rig) -> None:
    windows, _ = rig
    assert await windows.take("x", Window(0, MINUTE)) == (False, Standing(0, MINUTE))


async def test_strikes_double_up_to_the_window_and_a_delay_that_was_waited_for_is_served(memory: Rig) -> None:
    windows, move = memory
    window = Window(2, 20 * SECOND)
    delays = [await windows.strike("x", window) for _ in range(9)]
    assert delays == [0, 0, 1_000, 2_000, 4_000, 8_000, 16_000, 20_000, 20_000]
    assert await windows.strike("y", window) == 0
    await move(19 * SECOND)
    assert await windows.strike("x", window) == 20_000
    await move(20 * SECOND)
    assert await windows.strike("x", window) == 0


async def test_strikes_are_forgotten_after_a_quiet_window(memory: Rig) -> None:
    windows, move = memory
    window = Window(1, 3 * SECOND)
    assert [await windows.strike("x", window) for _ in range(3)] == [0, 1_000, 2_000]
    await move(3 * SECOND)
    assert [await windows.strike("x", window) for _ in range(2)] == [0, 1_000]


@pytest.mark.parametrize("server", ["redis_server", "redis_cluster"])
async def test_all_processes_count_in_one_place(server: str, request: pytest.FixtureRequest) -> None:
    url = request.getfixturevalue(server).url
    # With the time that a flood of a thousand may take where this process has hardly any for itself.
    processes = [SharedWindows(url, MemoryWindows(FrozenClock(NOW)), timeout=60) for _ in range(4)]
    window = Window(800, 80 * SECOND)
    answers = await asyncio.gather(*(processes[n % 4].take("all", window) for n in range(1_000)))
    assert sum(granted for granted, _ in answers) == 800
    assert min(standing.left for granted, standing in answers if granted) == 0
    for process in processes:
        await process.close()


async def test_without_the_server_a_process_counts_itself_and_logs_it_once(
    caplog: pytest.LogCaptureFixture,
) -> None:
    windows = SharedWindows(f"redis://127.0.0.1:{free_port()}", MemoryWindows(FrozenClock(NOW)))
    assert await taken(windows, 4) == [True, True, True, False]
    assert [await windows.strike("y", Window(1, MINUTE)) for _ in range(2)] == [0, 1_000]
    assert [record.getMessage() for record in caplog.records] == [
        "limits: the shared counters failed (ConnectionError); each process counts on its own"
    ]
    await windows.close()


class Silent:
    """A server that accepts connections and does not respond."""

    def __init__(self) -> None:
        self.connections, self._stop = 0, asyncio.Event()

    async def __aenter__(self) -> "Silent":
        self._server = await asyncio.start_server(self._accept, "127.0.0.1", 0)
        self.url = f"redis://127.0.0.1:{self._server.sockets[0].getsockname()[1]}"
        return self

    async def _accept(self, _reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        await self._stop.wait()
        writer.close()

    async def __aexit__(self, *_error: object) -> None:
        self._stop.set()
        self._server.close()
        await self._server.wait_closed()


async def test_a_hanging_server_is_waited_for_once() -> None:
    async with Silent() as silent:
        windows = SharedWindows(silent.url, MemoryWindows(FrozenClock(NOW)), pause=3600)
        async with deadline(4 * TIMEOUT_SECONDS, "the limit of a call of the server"):
            await asyncio.gather(*(windows.take("x", Window(500, MINUTE)) for _ in range(100)))
        connections = silent.connections
        assert await taken(windows, 100, window=Window(500, MINUTE)) == [True] * 100
        assert silent.connections == connections > 0
        await windows.close()


@pytest.mark.parametrize("fails", [False, True])
async def test_a_deadline_ends_a_call_whose_client_loses_the_cancellation(
    monkeypatch: pytest.MonkeyPatch, *, fails: bool
) -> None:
    """Python 3.11's `asyncio.wait_for`, by which the client sends, loses one that arrives together with its result."""
    windows = SharedWindows(f"redis://127.0.0.1:{free_port()}", MemoryWindows(FrozenClock(1)))

    async def losing(_bucket: str, _window: Window) -> tuple[bool, Standing]:
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            if fails:
                raise ConnectionError from None
        return True, Standing(1, 0)

    monkeypatch.setattr(windows._shared, "take", losing)
    monkeypatch.setattr(windows._client, "initialize", lambda: asyncio.sleep(0))
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.01):
            await windows.take("x", THREE)
    await windows.close()


async def test_one_request_at_a_time_asks_a_hanging_server_again() -> None:
    async with Silent() as silent:
        windows = SharedWindows(silent.url, MemoryWindows(FrozenClock(NOW)), pause=TIMEOUT_SECONDS)
        await windows.take("x", Window(500, MINUTE))
        await asyncio.sleep(TIMEOUT_SECONDS)
        before = silent.connections
        await asyncio.gather(*(windows.take("x", Window(500, MINUTE)) for _ in range(12)))
        assert silent.connections == before + 1
        await windows.close()


async def test_a_server_that_comes_back_counts_again(redis_server: RedisServer) -> None:
    windows = SharedWindows(redis_server.url, MemoryWindows(FrozenClock(NOW)), pause=0.0, timeout=60)
    redis = Redis.from_url(redis_server.url)
    await windows.take("back", THREE)
    await redis.execute_command("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes")
    assert (await windows.take("back", THREE))[1].left == 1  # a new connection, not the fallback
    await windows.close()
    await redis.aclose()


@pytest.mark.parametrize(
    ("url", "rule"),
    [
        ("redis+cluster://", "must name at least one host"),
        ("redis+cluster://:hush-hush@127.0.0.1:7000,:7001", "must name at least one host"),
        ("redis+cluster://:hush-hush@127.0.0.1:port", "[Pp]ort"),
        ("redis://:hush-hush@127.0.0.1:port", "[Pp]ort"),
    ],
)
def test_an_error_in_the_url_is_reported_without_its_password(url: str, rule: str) -> None:
    with pytest.raises(ValueError, match=rule) as caught:
        SharedWindows(url, MemoryWindows(FrozenClock(NOW)))
    assert "hush" not in str(caught.value)


@pytest.mark.parametrize("scheme", ["redis", "redis+cluster", "rediss+cluster", "valkey", "valkeys+cluster"])
async def test_a_url_needs_no_port(scheme: str) -> None:
    windows = SharedWindows(f"{scheme}://:hush-hush@127.0.0.1", MemoryWindows(FrozenClock(NOW)), timeout=0.05)
    assert await taken(windows, 4) == [True, True, True, False]
    await windows.close()


async def test_a_cluster_has_the_keys_on_all_its_servers(redis_cluster: RedisCluster) -> None:
    windows = SharedWindows(redis_cluster.url, MemoryWindows(FrozenClock(NOW)), timeout=60)
    for number in range(60):
        assert (await windows.take(f"key{number}", Window(2, HOUR)))[1].left == 1
    for server in redis_cluster.servers:
        async with Redis.from_url(server.url) as redis:
            assert await redis.execute_command("DBSIZE") >= 5
    await windows.close()


async def test_memory_forgets_callers_who_left() -> None:
    clock = FrozenClock(NOW)
    windows = MemoryWindows(clock)
    for minute in range(10):
        for caller in range(1_000):
            await windows.take(f"{minute}-{caller}", Window(5, MINUTE))
        clock.advance(minutes=1)
    assert len(windows.storage) <= 1_000
