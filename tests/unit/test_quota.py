"""The fixed shares of the provider's quota, by a simulated clock."""

import asyncio
import math
from collections import Counter
from dataclasses import replace

import pytest

from profilesvc.domain.request import low_priority
from profilesvc.domain.time import DAY, HOUR, MINUTE, SECOND, FrozenClock
from profilesvc.provider.port import ProviderError
from profilesvc.provider.quota import Counters, Quota
from profilesvc.settings import ProviderSettings
from support.provider.rig import refused_by
from support.simulated_time import START, LoopClock, simulate

API = "posts"
LIMIT, SHARE = 300, 120
GREEDY, OTHER = 1, 2


class Project:
    """A quota, and the calls that it has let through: when, whose, and whether in the background."""

    def __init__(self, **settings: int) -> None:
        self.clock = LoopClock()
        self.events: Counter[str] = Counter()
        counters = Counters.in_memory(self.clock)
        counters = replace(counters, note=lambda _api, event: self.events.update([event]))
        self.quota = Quota(ProviderSettings(**settings), counters, (API, "information"))
        self.calls: list[tuple[int, int, bool]] = []

    async def call(self, owner: int, *, seconds: float = math.inf, background: bool = False) -> int:
        """Wait for a turn; return the milliseconds it took."""
        asked = self.clock.now()
        if background:
            with low_priority():
                await self.quota.turn(API, owner, seconds)
        else:
            await self.quota.turn(API, owner, seconds)
        self.calls.append((self.clock.now(), owner, background))
        return self.clock.now() - asked

    async def granted(self, owner: int, calls: int, *, background: bool = False) -> int:
        """How many of so many calls that cannot wait are sent."""
        sent = 0
        for _ in range(calls):
            try:
                await self.call(owner, seconds=0, background=background)
            except ProviderError:
                continue
            sent += 1
        return sent

    def busiest_minute(self) -> int:
        instants = sorted(instant for instant, _, _ in self.calls)
        most = first = 0
        for last, instant in enumerate(instants):
            while instants[first] <= instant - MINUTE:
                first += 1
            most = max(most, last - first + 1)
        return most


@pytest.mark.parametrize("percent", [1, 40, 100])
def test_owner_may_use_its_share_of_a_minute(percent: int) -> None:
    async def story() -> None:
        project = Project(owner_share_percent=percent)
        assert await project.granted(GREEDY, 2 * LIMIT) == LIMIT * percent // 100
        await asyncio.sleep(60)
        assert await project.granted(GREEDY, 2 * LIMIT) == LIMIT * percent // 100

    simulate(story())


def test_share_is_at_least_one_request() -> None:
    async def story() -> None:
        project = Project(requests_per_minute=2, owner_share_percent=1)
        assert [await project.granted(owner, 2) for owner in (GREEDY, OTHER, 3)] == [1, 1, 0]

    simulate(story())


def test_background_work_of_all_owners_uses_half() -> None:
    async def story() -> None:
        project = Project()
        granted = [await project.granted(owner, LIMIT, background=True) for owner in (GREEDY, OTHER, 3)]
        assert granted == [SHARE, LIMIT // 2 - SHARE, 0]

    simulate(story())


def test_owner_and_background_work_leave_a_tenth_to_others() -> None:
    """Both ask for as much as they can all the time, and a person of another owner is served at once."""

    async def story() -> None:
        project = Project()

        async def ask(owner: int, *, background: bool) -> None:
            while project.clock.now() < START + 5 * MINUTE:
                await project.call(owner, background=background)

        greedy = [asyncio.ensure_future(ask(GREEDY, background=False)) for _ in range(40)]
        rounds = [asyncio.ensure_future(ask(10 + number, background=True)) for number in range(40)]
        waits = []
        for _ in range(4 * LIMIT // 10):
            await asyncio.sleep(2)
            waits.append(await project.call(OTHER))
        assert set(waits) == {0}
        await asyncio.gather(*greedy, *rounds)
        assert project.busiest_minute() <= LIMIT

    simulate(story())


def test_no_minute_has_more_requests_than_the_quota() -> None:
    async def story() -> None:
        project = Project()
        await asyncio.gather(*(project.call(number % 7) for number in range(5 * LIMIT)))
        assert project.busiest_minute() == LIMIT

    simulate(story())


def test_request_that_was_refused_uses_no_share() -> None:
    """The others use the quota up. What the owner asks for in vain does not count later."""

    async def story() -> None:
        project = Project()
        await asyncio.gather(*(project.call(10 + number % 5) for number in range(LIMIT)))
        await asyncio.sleep(30)
        assert await project.granted(OTHER, LIMIT) == 0
        await asyncio.sleep(30)
        assert await project.granted(OTHER, LIMIT) == SHARE

    simulate(story())


def test_refused_at_once_if_its_turn_is_too_late() -> None:
    async def story() -> None:
        project = Project(requests_per_minute=2)
        await project.call(1)
        await project.call(3)
        asked = project.clock.now()
        error = await refused_by(project.call(2, seconds=2))
        assert (error.reason, error.retryable, error.reached, error.retry_after) == ("quota", True, False, 60)
        assert error.provider_message == "the quota of requests to the external provider is used up"
        assert project.clock.now() == asked
        await asyncio.sleep(59)
        assert await project.call(2, seconds=2) == SECOND
        assert project.events == {"waited": 1, "refused": 1}

    simulate(story())


def test_refusal_names_the_share_and_the_longest_wait() -> None:
    async def story() -> None:
        project = Project(requests_per_minute=4, owner_share_percent=50)
        await project.call(GREEDY)
        await asyncio.sleep(10)
        await project.call(OTHER, background=True)
        await project.call(GREEDY, background=True)
        error = await refused_by(project.call(GREEDY, seconds=2))
        assert error.provider_message is not None
        assert error.provider_message.startswith("this owner's share of the quota of requests")
        assert error.retry_after == 50
        error = await refused_by(project.call(3, seconds=2, background=True))
        assert error.provider_message is not None
        assert error.provider_message.startswith("the quota of requests")
        assert error.retry_after == 60
        error = await refused_by(project.call(GREEDY, seconds=2, background=True))
        assert error.retry_after == 60

    simulate(story())


async def test_updates_of_locations_per_day() -> None:
    clock = FrozenClock(START)
    quota = Quota(ProviderSettings(updates_per_day=4, owner_share_percent=50), Counters.in_memory(clock), (API,))
    for _ in range(2):
        await quota.count_update(API, GREEDY)
        clock.advance(hours=1)
    error = await refused_by(quota.count_update(API, GREEDY))
    assert (error.reason, error.retry_after) == ("quota", (DAY - 2 * HOUR) / SECOND)
    assert error.provider_message == "this owner's share of the limit of 4 updates of locations per day is used up"
    await quota.count_update(API, OTHER)
    await quota.count_update(API, OTHER)
    error = await refused_by(quota.count_update(API, 3))
    assert error.provider_message == "the limit of 4 updates of locations per day is used up"
    clock.advance(hours=22)
    await quota.count_update(API, GREEDY)


async def test_without_limits_nothing_is_counted() -> None:
    off = ProviderSettings(requests_per_minute=0, updates_per_day=0, edits_per_minute=0)
    quota = Quota(off, Counters.in_memory(FrozenClock(START)), (API,))
    for _ in range(2 * LIMIT):
        await quota.turn(API, 1, 0)
        await quota.count_update(API, 1)
        await quota.count_edit("locations/1")
    assert await quota.standing() == [(API, 0, 0)]
