"""The quota of the provider's project among owners, by a simulated clock."""

import asyncio
import math
import random
import statistics
from collections import Counter
from dataclasses import replace

import pytest

from profilesvc.domain.request import low_priority
from profilesvc.domain.time import MINUTE, SECOND, FrozenClock
from profilesvc.limits.budget import Claim, MemoryBudget
from profilesvc.provider.port import ProviderError
from profilesvc.provider.quota import Counters, Quota
from profilesvc.settings import ProviderSettings
from support.simulated_time import START, LoopClock, simulate

API = "posts"
LIMIT = 300
GREEDY = 1


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

    def busiest_minute(self) -> int:
        instants = sorted(instant for instant, _, _ in self.calls)
        most = first = 0
        for last, instant in enumerate(instants):
            while instants[first] <= instant - MINUTE:
                first += 1
            most = max(most, last - first + 1)
        return most

    def of(self, owner: int, since: int = 0, until: float = math.inf) -> int:
        return sum(who == owner and since <= instant - START < until for instant, who, _ in self.calls)


def test_one_owner_may_use_all_of_it() -> None:
    async def story() -> None:
        project = Project()
        await asyncio.gather(*(project.call(GREEDY) for _ in range(2 * LIMIT)))
        assert project.of(GREEDY, 0, MINUTE) == LIMIT
        assert project.busiest_minute() == LIMIT

    simulate(story())


@pytest.mark.slow
def test_greedy_owner_has_at_most_half_while_others_wait() -> None:
    async def story() -> None:
        project = Project()
        greedy = [project.call(GREEDY) for _ in range(5 * LIMIT)]
        others = [project.call(owner) for owner in range(2, 12) for _ in range(2 * LIMIT // 10)]
        await asyncio.gather(*greedy, *others)
        first_came = project.of(GREEDY, 0, MINUTE)
        assert first_came == LIMIT  # it was alone when it asked
        assert project.of(GREEDY, MINUTE, 3 * MINUTE) <= LIMIT
        assert all(project.of(owner) == 2 * LIMIT // 10 for owner in range(2, 12))
        assert project.busiest_minute() == LIMIT

    simulate(story())


async def test_half_stays_free_for_an_owner_that_was_refused() -> None:
    clock = FrozenClock(START)
    budget = MemoryBudget(clock)
    for _ in range(LIMIT):
        assert await budget.take(Claim(API, LIMIT, GREEDY)) == 0
    assert await budget.take(Claim(API, LIMIT, 2)) == MINUTE
    clock.advance(minutes=1)
    granted = [await budget.take(Claim(API, LIMIT, GREEDY)) for _ in range(LIMIT)].count(0)
    assert granted == LIMIT // 2
    assert await budget.take(Claim(API, LIMIT, 2)) == 0
    assert await budget.take(Claim(API, LIMIT, GREEDY)) == 0  # no other owner wants any now


@pytest.mark.slow
def test_none_of_500_owners_starves() -> None:
    """Every owner asks again as soon as it was served, and one of them asks for ten at a time."""
    waits: list[int] = []
    served: Counter[int] = Counter()

    async def owner(project: Project, number: int, rounds: random.Random) -> None:
        await asyncio.sleep(rounds.random() * 60)
        while project.clock.now() < START + 12 * MINUTE:
            wait = await project.call(number)
            served[number] += 1
            if project.clock.now() > START + 3 * MINUTE and number != GREEDY:
                waits.append(wait)

    async def story() -> None:
        project, rounds = Project(), random.Random(7)
        owners = [owner(project, number, rounds) for number in range(1, 501)]
        await asyncio.gather(*owners, *(owner(project, GREEDY, rounds) for _ in range(9)))
        assert project.busiest_minute() <= LIMIT

    simulate(story())
    median, worst = statistics.median(waits), statistics.quantiles(waits, n=100)[98]
    assert median > 0
    assert worst <= 3 * median
    others = [served[number] for number in range(2, 501)]
    assert min(others) >= 0.7 * statistics.mean(others)
    assert served[GREEDY] <= 3 * statistics.mean(others)  # at most one a minute more


@pytest.mark.slow
def test_none_of_500_owners_starves_that_repeat_refused_calls() -> None:
    """Callers wait for two seconds at most, and repeat a refused call after Retry-After, as the client does."""
    waits: list[int] = []

    async def owner(project: Project, number: int, rounds: random.Random) -> None:
        await asyncio.sleep(rounds.random() * 60)
        while (started := project.clock.now()) < START + 12 * MINUTE:
            while True:
                try:
                    await project.call(number, seconds=2)
                except ProviderError as error:
                    await asyncio.sleep((error.retry_after or 0) * (1 + rounds.random() / 4))
                else:
                    break
            if started > START + 3 * MINUTE:
                waits.append(project.clock.now() - started)
            await asyncio.sleep(rounds.random() * 10)

    async def story() -> None:
        project, rounds = Project(), random.Random(8)
        await asyncio.gather(*(owner(project, number, rounds) for number in range(500)))
        assert project.events["refused"] > 500

    simulate(story())
    assert statistics.quantiles(waits, n=100)[98] <= 3 * statistics.median(waits)


def test_interactive_calls_go_before_1000_in_the_background() -> None:
    async def story() -> None:
        project = Project()
        reads = [asyncio.ensure_future(project.call(owner % 100, background=True)) for owner in range(1_000)]
        await asyncio.sleep(1)
        waits = await asyncio.gather(*(project.call(owner) for owner in range(LIMIT // 5)))
        assert max(waits) == 0
        late = asyncio.ensure_future(project.call(GREEDY))
        await asyncio.gather(*reads, late)
        assert project.busiest_minute() <= LIMIT
        first = [background for instant, _, background in sorted(project.calls) if instant - START < MINUTE]
        assert first.count(True) == LIMIT * 4 // 5
        after = [background for instant, _, background in project.calls if instant - START >= MINUTE]
        assert after[0] is False  # the call that came last, before 760 that had waited longer

    simulate(story())


def test_refused_at_once_if_its_turn_is_too_late() -> None:
    async def story() -> None:
        project = Project(requests_per_minute=2)
        await project.call(1)
        await project.call(1)
        asked = project.clock.now()
        with pytest.raises(ProviderError) as refused:
            await project.call(2, seconds=2)
        error = refused.value
        assert (error.reason, error.retryable, error.reached, error.retry_after) == ("quota", True, False, 60)
        assert project.clock.now() == asked
        await asyncio.sleep(59)
        assert await project.call(2, seconds=2) == SECOND
        assert project.events == {"waited": 1, "refused": 1}

    simulate(story())


def test_call_behind_others_is_refused_after_its_time() -> None:
    async def story() -> None:
        project = Project(requests_per_minute=1)
        await project.call(1)
        await asyncio.sleep(59)
        first = asyncio.ensure_future(project.call(2, seconds=5))
        await asyncio.sleep(0)
        asked = project.clock.now()
        with pytest.raises(ProviderError, match="quota"):
            await project.call(3, seconds=5)
        assert project.clock.now() - asked <= 5 * SECOND
        assert await first == SECOND

    simulate(story())


def test_cancelled_call_leaves_its_place_to_the_next() -> None:
    async def story() -> None:
        project = Project(requests_per_minute=1)
        await project.call(1)
        first, second = (asyncio.ensure_future(project.call(owner)) for owner in (2, 3))
        await asyncio.sleep(1)
        first.cancel()
        assert await second == MINUTE

    simulate(story())


async def test_429_halves_the_budget_which_recovers_by_additions() -> None:
    clock = FrozenClock(START)
    counters = Counters.in_memory(clock)
    quota = Quota(ProviderSettings(), counters, (API, "information"))

    async def budgets() -> list[int]:
        return [standing.budget for standing in await quota.standing()]

    await quota.exceeded(API)
    await quota.exceeded(API)  # a request that was in flight
    assert await budgets() == [150, LIMIT]
    clock.advance(seconds=10)
    await quota.exceeded(API)
    assert await budgets() == [76, LIMIT]
    for minutes, budget in ((1, 91), (1, 106), (12, 286), (1, LIMIT), (1, LIMIT)):
        clock.advance(minutes=minutes)
        assert await budgets() == [budget, LIMIT]
    for _ in range(20):
        clock.advance(seconds=10)
        await quota.exceeded(API)
    assert (await budgets())[0] == LIMIT // 30


async def test_shrunk_budget_is_what_is_granted() -> None:
    budget = MemoryBudget(FrozenClock(START))
    await budget.shrink(API, LIMIT)
    granted = [await budget.take(Claim(API, LIMIT, 1)) for _ in range(LIMIT)].count(0)
    assert granted == LIMIT // 2


async def test_updates_of_locations_per_day() -> None:
    clock = FrozenClock(START)
    quota = Quota(ProviderSettings(updates_per_day=2), Counters.in_memory(clock), (API,))
    await quota.count_update(API, 1)
    clock.advance(hours=1)
    await quota.count_update(API, 1)
    with pytest.raises(ProviderError) as refused:
        await quota.count_update(API, 1)
    assert (refused.value.reason, refused.value.retry_after) == ("quota", 23 * 3600)
    clock.advance(hours=23)
    await quota.count_update(API, 1)


async def test_without_limits_nothing_is_counted() -> None:
    off = ProviderSettings(requests_per_minute=0, updates_per_day=0, edits_per_minute=0)
    quota = Quota(off, Counters.in_memory(FrozenClock(START)), (API,))
    for _ in range(2 * LIMIT):
        await quota.turn(API, 1, 0)
        await quota.count_update(API, 1)
        await quota.count_edit("locations/1")
    await quota.exceeded(API)
    assert [(each.full, each.used) for each in await quota.standing()] == [(0, 0)]


async def test_clock_set_back_does_not_keep_the_budget_used() -> None:
    clock = FrozenClock(START)
    budget = MemoryBudget(clock)
    for _ in range(2):
        assert await budget.take(Claim(API, 2, 1)) == 0
    clock.advance(hours=-1)
    assert await budget.take(Claim(API, 2, 1)) == 0
