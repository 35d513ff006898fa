"""Connections of the PostgreSQL driver: lent to one unit at a time, never again after an interrupted statement."""

import asyncio
from collections.abc import AsyncIterator

import pytest

from conftest import Postgres
from profilesvc.database.drivers import Drivers


@pytest.fixture
async def drivers(postgres: Postgres) -> AsyncIterator[Drivers]:
    made = Drivers({"user": "postgres", "database": "work", "host": postgres.host}, 2)
    yield made
    await made.close()


async def test_lends_no_more_than_there_may_be(drivers: Drivers) -> None:
    first, second = await drivers.take(5), await drivers.take(5)
    assert drivers.standing() == (2, 2, 0)
    waiting = asyncio.create_task(drivers.take(5))
    await asyncio.sleep(0)
    assert drivers.standing() == (2, 2, 1)
    with pytest.raises(TimeoutError):
        await drivers.take(0.01)
    drivers.give_back(first, whole=True)
    assert await waiting is first
    drivers.give_back(first, whole=True)
    drivers.give_back(second, whole=True)
    assert drivers.standing() == (2, 0, 0)


async def test_one_that_was_interrupted_is_not_lent_again(drivers: Drivers) -> None:
    interrupted = await drivers.take(5)
    drivers.give_back(interrupted, whole=False)
    assert interrupted.is_closed()
    other = await drivers.take(5)
    assert await other.fetchval("SELECT 7") == 7
    drivers.give_back(other, whole=True)


async def test_one_that_cannot_be_made_keeps_no_place(postgres: Postgres) -> None:
    nowhere = Drivers({"user": "postgres", "database": "no such database", "host": postgres.host}, 1)
    for _ in range(3):
        with pytest.raises(Exception, match="does not exist"):
            await nowhere.take(5)
    assert nowhere.standing() == (1, 0, 0)


async def test_what_comes_back_after_the_end_is_closed(drivers: Drivers) -> None:
    lent = await drivers.take(5)
    await drivers.close()
    drivers.give_back(lent, whole=True)
    assert lent.is_closed()


async def test_those_of_before_a_renewal_are_not_lent_again(drivers: Drivers) -> None:
    lent, idle = await drivers.take(5), await drivers.take(5)
    drivers.give_back(idle, whole=True)
    drivers.renew()
    assert idle.is_closed()
    assert await lent.fetchval("SELECT 7") == 7
    drivers.give_back(lent, whole=True)
    assert lent.is_closed()
    other = await drivers.take(5)
    drivers.give_back(other, whole=True)
    assert await drivers.take(5) is other
    drivers.give_back(other, whole=True)


async def test_one_that_was_closed_while_idle_is_replaced(drivers: Drivers) -> None:
    idle = await drivers.take(5)
    drivers.give_back(idle, whole=True)
    await idle.close()
    other = await drivers.take(5)
    assert await other.fetchval("SELECT 7") == 7
    drivers.give_back(other, whole=True)
