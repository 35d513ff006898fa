"""The allowance of a day that owners share, on a clock of its own."""

import sys
from collections.abc import Callable
from types import FrameType
from typing import Any

import pytest

from profilesvc.domain.time import DAY, HOUR, FrozenClock
from profilesvc.limits import allowance as allowances
from profilesvc.limits.allowance import MemoryAllowance, Refused
from support.simulated_time import START

LIMIT, ALICE, BOB, CAROL, DAN = 16, 1, 2, 3, 4


@pytest.fixture
def clock() -> FrozenClock:
    return FrozenClock(START)


@pytest.fixture
def allowance(clock: FrozenClock) -> MemoryAllowance:
    return MemoryAllowance(clock)


async def granted(allowance: MemoryAllowance, owner: int) -> int:
    """The uses until a refusal."""
    count = 0
    while await allowance.take(owner, LIMIT) is None:
        count += 1
    return count


async def test_the_only_owner_may_use_all(allowance: MemoryAllowance, clock: FrozenClock) -> None:
    assert await granted(allowance, ALICE) == LIMIT
    clock.advance(hours=1)
    assert await allowance.take(ALICE, LIMIT) == Refused(DAY - HOUR, by_share=False)


async def test_each_owner_stops_at_what_is_left(allowance: MemoryAllowance) -> None:
    await allowance.take(DAN, LIMIT)  # leaves 15
    assert [await granted(allowance, owner) for owner in (ALICE, BOB, CAROL)] == [8, 4, 2]
    assert await granted(allowance, 5) == 1
    assert await allowance.take(6, LIMIT) == Refused(DAY, by_share=False)


async def test_an_owner_who_was_refused_has_a_share_the_next_day(
    allowance: MemoryAllowance, clock: FrozenClock
) -> None:
    assert await granted(allowance, ALICE) == LIMIT
    assert await allowance.take(BOB, LIMIT) == Refused(DAY, by_share=False)
    clock.advance(days=1)
    assert await granted(allowance, ALICE) == LIMIT // 2
    assert await allowance.take(ALICE, LIMIT) == Refused(DAY, by_share=True)
    assert await granted(allowance, BOB) == LIMIT // 4


async def test_a_week_later_the_other_owner_is_forgotten(allowance: MemoryAllowance, clock: FrozenClock) -> None:
    await allowance.take(BOB, LIMIT)
    clock.advance(days=7)
    assert await granted(allowance, ALICE) == LIMIT


async def test_the_wait_of_a_share_suffices(allowance: MemoryAllowance, clock: FrozenClock) -> None:
    await allowance.take(BOB, LIMIT)
    for _ in range(LIMIT // 2):
        assert await allowance.take(ALICE, LIMIT) is None
        clock.advance(minutes=1)
    for _ in range(3):
        assert await allowance.take(BOB, LIMIT) is None
        clock.advance(minutes=1)
    refused = await allowance.take(ALICE, LIMIT)  # Alice has used 8, and 4 are left
    assert refused is not None
    assert refused.by_share
    assert refused.wait < DAY
    clock.advance(seconds=refused.wait / 1000)
    assert await allowance.take(ALICE, LIMIT) is None


async def test_a_clock_that_is_set_back_does_not_end_the_uses(allowance: MemoryAllowance, clock: FrozenClock) -> None:
    assert await granted(allowance, ALICE) == LIMIT
    clock.advance(days=-2)
    assert await granted(allowance, ALICE) == LIMIT


async def test_a_use_costs_as_much_however_many_there_are(clock: FrozenClock) -> None:
    """In lines of code that run, because a time depends on what else the machine does."""
    allowance, count = MemoryAllowance(clock), 0

    def note(frame: FrameType, event: str, _argument: object) -> Callable[..., Any] | None:
        nonlocal count
        count += event == "line"
        return note if frame.f_code.co_filename == allowances.__file__ else None

    async def cost(uses: int) -> int:
        nonlocal count
        for number in range(uses):
            await allowance.take(number % 500, 100_000)
        count, before = 0, sys.gettrace()
        sys.settrace(note)
        await allowance.take(1, 100_000)
        sys.settrace(before)
        return count

    first, last = await cost(2_000), await cost(15_000)
    assert first == last > 0
