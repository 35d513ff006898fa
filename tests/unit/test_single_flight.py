"""At most one run of the same work at a time."""

import asyncio

import pytest

from profilesvc.tokens.single_flight import SingleFlight


class Source:
    """Counts how often it is read; waits until it may answer."""

    def __init__(self) -> None:
        self.readings, self.may_answer, self.fails = 0, asyncio.Event(), False

    async def read(self) -> None:
        self.readings += 1
        await self.may_answer.wait()
        if self.fails:
            raise ConnectionError("down")


async def test_callers_wait_for_the_run_in_progress_and_get_its_failure() -> None:
    source, flight = Source(), SingleFlight()
    source.fails = True
    waiting = [asyncio.create_task(flight.run("a", source.read)) for _ in range(3)]
    await asyncio.sleep(0)
    source.may_answer.set()
    assert [type(result) for result in await asyncio.gather(*waiting, return_exceptions=True)] == [ConnectionError] * 3
    assert source.readings == 1


async def test_names_are_independent_and_the_next_run_is_new() -> None:
    source, flight = Source(), SingleFlight()
    source.may_answer.set()
    await asyncio.gather(flight.run("a", source.read), flight.run("b", source.read))
    await flight.run("a", source.read)
    assert source.readings == 3


@pytest.mark.parametrize("fails", [True, False])
async def test_a_flight_continues_without_callers(fails: bool) -> None:
    source, flight = Source(), SingleFlight()
    source.fails = fails
    waiting = asyncio.create_task(flight.run("a", source.read))
    await asyncio.sleep(0)
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    drained = asyncio.create_task(flight.drain())
    await asyncio.sleep(0)
    assert not drained.done()
    source.may_answer.set()
    await drained
    assert source.readings == 1
