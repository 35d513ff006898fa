"""The quota of the provider's project: requests per minute and API, edits per profile, updates per day.

Requests wait for their turn in this order: those that a person waits for first, then the owner with the fewest requests
in the last minute, then the first that came. The counters are shared by all processes where there is Redis or Valkey.
"""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from itertools import count

from profilesvc.domain.rates import Window, Windows
from profilesvc.domain.request import current_request
from profilesvc.domain.time import MINUTE, SECOND, Clock
from profilesvc.limits.allowance import Allowance, MemoryAllowance
from profilesvc.limits.budget import Budget, Claim, MemoryBudget
from profilesvc.limits.counters import MemoryWindows
from profilesvc.provider.port import ProviderError, QuotaStanding
from profilesvc.settings import ProviderSettings

# Counts in a bucket and a window; returns 0, or the milliseconds until there is room.
Count = Callable[[str, Window], Awaitable[int]]
# The callback for events of a quota: the API, and `waited`, `refused` or `shrunk`.
Note = Callable[[str, str], None]


def counting(windows: Windows) -> Count:
    """Return the counter of these windows."""

    async def take(bucket: str, window: Window) -> int:
        granted, standing = await windows.take(bucket, window)
        return 0 if granted else max(standing.wait, 1)

    return take


@dataclass(frozen=True)
class Counters:
    """The counters of requests, edits and updates."""

    budget: Budget
    allowance: Allowance
    count: Count
    note: Note = lambda _api, _event: None

    @classmethod
    def in_memory(cls, clock: Clock) -> "Counters":
        """Return the counters of one process."""
        return cls(MemoryBudget(clock), MemoryAllowance(clock), counting(MemoryWindows(clock)))


@dataclass(eq=False)
class _Waiting:
    claim: Claim
    number: int
    ready: asyncio.Event = field(default_factory=asyncio.Event)


class Quota:
    """The quota, as this process uses it."""

    def __init__(self, settings: ProviderSettings, counters: Counters, apis: tuple[str, ...]) -> None:
        self._settings, self._counters, self._budget = settings, counters, counters.budget
        self._waiting: dict[str, list[_Waiting]] = {api: [] for api in apis}
        self._numbers = count()

    async def turn(self, api: str, owner: int, seconds: float) -> None:
        """Wait at most so long until a request of an owner may be sent, and count it.

        Raises:
            ProviderError: `quota`.
        """
        full = self._settings.requests_per_minute
        if not full:
            return
        claim = Claim(api, full, owner, current_request().background)
        if self._waiting[api] or await self._budget.take(claim):
            await self._wait(claim, seconds)

    async def _wait(self, claim: Claim, seconds: float) -> None:
        line, own, wait = self._waiting[claim.name], _Waiting(claim, next(self._numbers)), self._budget.wait(claim)
        if wait >= seconds * SECOND:
            raise self._refused(claim.name, wait)
        loop = asyncio.get_running_loop()
        deadline = loop.time() + seconds
        line.append(own)
        self._counters.note(claim.name, "waited")
        try:
            async with asyncio.timeout_at(deadline):
                while True:
                    if (first := self._first(line)) is not own:
                        first.ready.set()  # the order has changed while it waited
                        own.ready.clear()
                        await own.ready.wait()
                    elif wait := await self._budget.take(claim):
                        if loop.time() + wait / SECOND >= deadline:
                            raise self._refused(claim.name, wait)
                        await asyncio.sleep(wait / SECOND)
                    else:
                        return
        except TimeoutError:
            raise self._refused(claim.name, wait) from None
        finally:
            line.remove(own)
            if line:
                self._first(line).ready.set()

    def _first(self, line: list[_Waiting]) -> _Waiting:
        used = self._budget.used(line[0].claim.name)
        return min(line, key=lambda each: (each.claim.background, used.get(each.claim.owner, 0), each.number))

    def _refused(self, api: str, wait: int) -> ProviderError:
        self._counters.note(api, "refused")
        return _exhausted("the quota of requests to the external provider is used up", wait)

    async def count_edit(self, profile: str) -> None:
        """Count an edit of a profile towards the provider's limit per minute.

        Raises:
            ProviderError: `rate_limited`.
        """
        limit = self._settings.edits_per_minute
        if limit and (wait := await self._counters.count(f"edits-per-profile:{profile}", Window(limit, MINUTE))):
            message = f"the limit of {limit} edits per minute of this profile is used up"
            raise ProviderError(
                "rate_limited",
                retryable=True,
                provider_message=message,
                retry_after=min(wait, MINUTE) / SECOND,
                reached=False,
            )

    async def count_update(self, api: str, owner: int) -> None:
        """Count an owner's update of a location towards the provider's limit per day, which owners share.

        Raises:
            ProviderError: `quota`.
        """
        limit = self._settings.updates_per_day
        if limit and (refused := await self._counters.allowance.take(owner, limit)):
            self._counters.note(api, "refused")
            named = f"the limit of {limit:,} updates of locations per day"
            used_up = f"this owner's share of {named}" if refused.by_share else named
            raise _exhausted(f"{used_up} is used up", refused.wait)

    async def exceeded(self, api: str) -> None:
        """Shrink the budget, because the provider has rejected a request over its quota."""
        if (full := self._settings.requests_per_minute) and await self._budget.shrink(api, full):
            self._counters.note(api, "shrunk")

    async def standing(self) -> list[QuotaStanding]:
        """Return the budget of each API, of all processes that share it."""
        full = self._settings.requests_per_minute
        return [QuotaStanding(api, full, *await self._budget.spent(api, full)) for api in self._waiting]

    def load(self) -> dict[str, tuple[int, int]]:
        """Return the budget of each API, as this process knows it, and the requests that wait in this process."""
        full = self._settings.requests_per_minute
        return {api: (self._budget.known(api, full), len(line)) for api, line in self._waiting.items()}


def _exhausted(message: str, wait: int) -> ProviderError:
    return ProviderError(
        "quota", retryable=True, provider_message=message, retry_after=max(wait, SECOND) / SECOND, reached=False
    )
