"""Turns of several processes, each of which has a storage of its own."""

import asyncio
from collections.abc import AsyncIterator

import pytest

from conftest import Postgres
from profilesvc.storage.engine import Storage

NAME = "posts of locations/111"


@pytest.fixture
async def processes(postgres: Postgres) -> AsyncIterator[tuple[Storage, Storage]]:
    one, two = Storage(postgres.url("work")), Storage(postgres.url("work"))
    yield one, two
    await one.close()
    await two.close()


async def test_one_begins_when_the_other_has_ended(processes: tuple[Storage, Storage]) -> None:
    one, two = processes
    log: list[str] = []

    async def follow() -> None:
        async with two.turns.take(NAME) as was_free:
            log.append(f"two, free: {was_free}")

    async with one.turns.take(NAME) as was_free:
        following = asyncio.create_task(follow())
        await asyncio.wait([following], timeout=0.2)
        log.append(f"one, free: {was_free}")
    await following
    assert log == ["one, free: True", "two, free: False"]
    async with one.turns.take(NAME) as was_free:
        assert was_free


async def test_names_and_what_one_process_does_at_once_are_apart(processes: tuple[Storage, Storage]) -> None:
    one, two = processes
    async with one.turns.take(NAME), one.turns.take(NAME) as mine, two.turns.take("another") as other:
        assert mine
        assert other


async def test_a_process_that_is_gone_holds_nothing(processes: tuple[Storage, Storage]) -> None:
    one, two = processes
    async with one.turns.take(NAME):
        await one.close()
        async with two.turns.take(NAME) as was_free:
            assert was_free


async def test_a_turn_that_was_given_up_half_way_is_free(processes: tuple[Storage, Storage]) -> None:
    one, two = processes

    async def hold() -> None:
        async with one.turns.take(NAME):
            await asyncio.Event().wait()

    for pause in (0.0, 0.001, 0.005, 0.2):
        holding = asyncio.create_task(hold())
        await asyncio.sleep(pause)
        holding.cancel()
        await asyncio.wait([holding])
    async with asyncio.timeout(5), two.turns.take(NAME):
        pass


async def test_on_sqlite_there_is_nobody_else(tmp_path_factory: pytest.TempPathFactory) -> None:
    storage = Storage(f"sqlite+aiosqlite:///{tmp_path_factory.mktemp('turns') / 'x.db'}")
    async with storage.turns.take(NAME) as first, storage.turns.take(NAME) as second:
        assert (first, second) == (True, True)
    await storage.close()
