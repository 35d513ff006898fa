"""Advisory locks of several processes, each with a storage of its own."""

import asyncio
import threading
from collections.abc import AsyncIterator

import pytest

from conftest import Postgres
from profilesvc.database.engine import Storage

NAME = "posts of locations/111"
CUT_ALL = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = 'work'"


@pytest.fixture
async def processes(postgres: Postgres) -> AsyncIterator[tuple[Storage, Storage]]:
    one, two = Storage(postgres.url("work")), Storage(postgres.url("work"))
    yield one, two
    await one.close()
    await two.close()


async def test_one_starts_when_the_other_has_ended(processes: tuple[Storage, Storage]) -> None:
    one, two = processes
    log: list[str] = []

    async def follow() -> None:
        async with two.advisory_locks.hold(NAME) as was_free:
            log.append(f"two, free: {was_free}")

    async with one.advisory_locks.hold(NAME) as was_free:
        following = asyncio.create_task(follow())
        await asyncio.wait([following], timeout=0.2)
        log.append(f"one, free: {was_free}")
    await following
    assert log == ["one, free: True", "two, free: False"]
    async with one.advisory_locks.hold(NAME) as was_free:
        assert was_free


async def test_names_are_independent_and_a_process_does_not_block_itself(processes: tuple[Storage, Storage]) -> None:
    one, two = processes
    async with (
        one.advisory_locks.hold(NAME),
        one.advisory_locks.hold(NAME) as mine,
        two.advisory_locks.hold("another") as other,
    ):
        assert mine
        assert other


async def test_an_ended_process_holds_nothing(processes: tuple[Storage, Storage]) -> None:
    one, two = processes
    async with one.advisory_locks.hold(NAME):
        await one.close()
        async with two.advisory_locks.hold(NAME) as was_free:
            assert was_free


async def test_a_cancelled_wait_leaves_the_lock_free(processes: tuple[Storage, Storage]) -> None:
    one, two = processes

    async def hold() -> None:
        async with one.advisory_locks.hold(NAME):
            await asyncio.Event().wait()

    for pause in (0.0, 0.001, 0.005, 0.2):
        holding = asyncio.create_task(hold())
        await asyncio.sleep(pause)
        holding.cancel()
        await asyncio.wait([holding])
    async with asyncio.timeout(5), two.advisory_locks.hold(NAME):
        pass


async def test_on_sqlite_locks_are_always_free(tmp_path_factory: pytest.TempPathFactory) -> None:
    storage = Storage(f"sqlite+aiosqlite:///{tmp_path_factory.mktemp('turns') / 'x.db'}")
    async with storage.advisory_locks.hold(NAME) as first, storage.advisory_locks.hold(NAME) as second:
        assert (first, second) == (True, True)
    await storage.close()


@pytest.mark.parametrize("noticed", [True, False])
async def test_a_connection_that_was_cut_is_replaced(
    processes: tuple[Storage, Storage], postgres: Postgres, noticed: bool
) -> None:
    """After a restart of the server, whether or not the event loop has seen the end of the connection."""
    one, two = processes
    cut = threading.Thread(target=postgres.run, args=(CUT_ALL,))
    async with one.advisory_locks.hold(NAME):
        cut.start()
        cut.join()
        if noticed:
            await asyncio.sleep(0.1)
        async with one.advisory_locks.hold("another") as was_free:
            assert was_free
        async with two.advisory_locks.hold(NAME) as was_free:
            assert was_free, "the lock ended with its connection"


async def test_a_lock_that_was_lost_with_its_connection_releases_no_other(
    processes: tuple[Storage, Storage], postgres: Postgres
) -> None:
    one, two = processes
    first = one.advisory_locks.hold(NAME)
    await first.__aenter__()
    await asyncio.to_thread(postgres.run, CUT_ALL)
    async with one.advisory_locks.hold(NAME):
        await first.__aexit__(None, None, None)
        taken = asyncio.create_task(two.advisory_locks.hold(NAME).__aenter__())
        await asyncio.wait([taken], timeout=0.2)
        assert not taken.done()
    assert await taken is False
