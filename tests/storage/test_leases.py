"""Leases of several processes, each with a storage of its own."""

import asyncio
import contextlib
import threading
from collections.abc import AsyncIterator
from typing import Any

import pytest

from conftest import Postgres
from profilesvc.database import leases
from profilesvc.database.engine import Storage
from profilesvc.domain.errors import ServiceError
from support.waiting import deadline

NAME = "posts of locations/111"
CUT_ALL = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = 'work'"
ENDED = "UPDATE leases SET until = 0"


@pytest.fixture
async def processes(postgres: Postgres) -> AsyncIterator[tuple[Storage, Storage]]:
    await asyncio.to_thread(postgres.restored, "work")
    one, two = Storage(postgres.url("work")), Storage(postgres.url("work"))
    yield one, two
    await one.close()
    await two.close()


async def is_free(storage: Storage) -> bool:
    async with storage.leases.hold(NAME, patience=0) as was_free:
        return was_free


async def test_one_starts_when_the_other_has_ended(
    processes: tuple[Storage, Storage], monkeypatch: pytest.MonkeyPatch
) -> None:
    one, two = processes
    log: list[str] = []
    has_asked, take = asyncio.Event(), two.leases._take  # type: ignore[attr-defined]

    async def noted(*arguments: Any) -> bool:
        result: bool = await take(*arguments)
        has_asked.set()
        return result

    monkeypatch.setattr(two.leases, "_take", noted)

    async def follow() -> None:
        async with two.leases.hold(NAME) as was_free:
            log.append(f"two, free: {was_free}")

    async with one.leases.hold(NAME) as was_free:
        following = asyncio.create_task(follow())
        async with deadline(60, "the other process to ask"):
            await has_asked.wait()
        log.append(f"one, free: {was_free}")
    await following
    assert log == ["one, free: True", "two, free: False"]
    assert await is_free(one)


async def test_names_are_independent(processes: tuple[Storage, Storage]) -> None:
    one, two = processes
    async with one.leases.hold(NAME), two.leases.hold("another") as other:
        assert other
        assert not await is_free(one), "not even for the process itself"


async def test_of_many_at_once_one_gets_it(processes: tuple[Storage, Storage]) -> None:
    running = most = 0

    async def hold(storage: Storage) -> None:
        nonlocal running, most
        async with storage.leases.hold(NAME):
            running += 1
            most = max(most, running)
            await asyncio.sleep(0.01)
            running -= 1

    await asyncio.gather(*(hold(storage) for storage in processes * 5))
    assert most == 1


async def test_a_process_that_was_killed_holds_nothing_for_long(
    processes: tuple[Storage, Storage], monkeypatch: pytest.MonkeyPatch
) -> None:
    one, two = processes
    monkeypatch.setattr(leases, "LEASE_SECONDS", 1)
    killed = one.leases.hold(NAME)
    await killed.__aenter__()
    monkeypatch.setattr(leases, "LEASE_SECONDS", 60)  # the next renewal is too late
    assert not await is_free(two)
    async with deadline(10, "a lease that has ended"), two.leases.hold(NAME):
        await killed.__aexit__(None, None, None)
        assert not await is_free(one), "a lease that was lost ends no other"


async def test_a_lease_is_renewed_as_long_as_its_block_runs(
    processes: tuple[Storage, Storage], monkeypatch: pytest.MonkeyPatch, postgres: Postgres
) -> None:
    one, two = processes
    monkeypatch.setattr(leases, "LEASE_SECONDS", 1.5)
    async with one.leases.hold(NAME):
        await asyncio.to_thread(postgres.run, CUT_ALL)  # a renewal survives that
        for _ in range(10):
            await asyncio.sleep(0.25)
            assert not await is_free(two)


async def test_a_cancelled_wait_leaves_the_lease_free(processes: tuple[Storage, Storage]) -> None:
    one, two = processes

    async def hold() -> None:
        async with one.leases.hold(NAME):
            await asyncio.Event().wait()

    for pause in (0.0, 0.001, 0.005, 0.2):
        holding = asyncio.create_task(hold())
        await asyncio.sleep(pause)
        holding.cancel()
        await asyncio.wait([holding])
    async with deadline(2 * leases.LEASE_SECONDS, "a free lease"), two.leases.hold(NAME):
        pass


async def test_the_first_lease_of_an_empty_database(postgres: Postgres) -> None:
    await asyncio.to_thread(postgres.create, "leased")
    storages = [Storage(postgres.url("leased")) for _ in range(4)]
    try:
        await asyncio.gather(*(storage.leases.create_table() for storage in storages))  # type: ignore[attr-defined]
        async with storages[0].leases.hold(NAME):
            assert not await is_free(storages[1])
    finally:
        for storage in storages:
            await storage.close()
        await asyncio.to_thread(postgres.drop, "leased")


async def test_taking_a_lease_waits_for_no_disk_and_no_standby(
    processes: tuple[Storage, Storage], postgres: Postgres
) -> None:
    """A commit waits for a synchronous standby, here one that does not exist; a lease does not."""
    change = "ALTER SYSTEM {} synchronous_standby_names{}"
    await asyncio.to_thread(postgres.run, change.format("SET", " = 'absent'"))
    await asyncio.to_thread(postgres.run, "SELECT pg_reload_conf()")
    try:
        await asyncio.sleep(0.3)  # until the server's processes have heard of it
        async with deadline(3, "a lease without a standby"), processes[0].leases.hold(NAME) as was_free:
            assert was_free
        with pytest.raises(ServiceError):
            async with deadline(6, "the end of a commit without a standby"), processes[0].write() as session:
                await (await session.connection()).exec_driver_sql("UPDATE users SET name = name")
    finally:
        await asyncio.to_thread(postgres.run, change.format("RESET", ""))
        await asyncio.to_thread(postgres.run, "SELECT pg_reload_conf()")


async def test_on_sqlite_leases_are_always_free(tmp_path_factory: pytest.TempPathFactory) -> None:
    storage = Storage(f"sqlite+aiosqlite:///{tmp_path_factory.mktemp('turns') / 'x.db'}")
    async with storage.leases.hold(NAME) as first, storage.leases.hold(NAME) as second:
        assert (first, second) == (True, True)
    await storage.close()


@pytest.mark.parametrize("noticed", [True, False])
async def test_a_connection_that_was_cut_is_replaced(
    processes: tuple[Storage, Storage], postgres: Postgres, noticed: bool
) -> None:
    """After a restart of the server, whether or not the event loop has seen the end of the connection."""
    one, two = processes
    async with contextlib.AsyncExitStack() as held:
        await held.enter_async_context(one.leases.hold(NAME))
        cutting = threading.Thread(target=postgres.run, args=(CUT_ALL,))
        cutting.start()
        cutting.join()  # the event loop sees nothing meanwhile
        if noticed:
            await asyncio.sleep(0.1)
        async with one.leases.hold("another") as was_free:
            assert was_free
        assert not await is_free(two), "the lease does not end with its connection"
    assert await is_free(two)
