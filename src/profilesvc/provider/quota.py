"""The quota of the provider's project: requests per minute and API, edits per profile, updates per day.

The shares of requests and updates are fixed (D-113): an owner may use as much as the settings say, and background work
may use half. All processes count together where there is Redis or Valkey.
"""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from profilesvc.domain.rates import Window, Windows
from profilesvc.domain.request import current_request
from profilesvc.domain.time import DAY, MINUTE, SECOND, Clock
from profilesvc.limits.counters import MemoryWindows
from profilesvc.provider.port import ProviderError, QuotaStanding, not_sent
from profilesvc.settings import ProviderSettings

# Counts in a bucket and a window; returns 0, or the milliseconds until there is room.
Count = Callable[[str, Window], Awaitable[int]]
# The callback for events of a quota: the API, and `waited` or `refused`.
Note = Callable[[str, str], None]
_BACKGROUND_PERCENT = 50
_PAUSE = 0.1  # seconds, at least, before a request that waits counts again


def counting(windows: Windows) -> Count:
    """Return the counter of these windows."""

    async def take(bucket: str, window: Window) -> int:
        granted, standing = await windows.take(bucket, window)
        return 0 if granted else max(standing.wait, 1)

    return take


@dataclass(frozen=True)
class Counters:
    """The windows of requests and updates, the counter of edits, and the callback for events."""

    windows: Windows
    count_edit: Count
    note: Note = lambda _api, _event: None

    @classmethod
    def in_memory(cls, clock: Clock) -> "Counters":
        """Return the counters of one process."""
        windows = MemoryWindows(clock)
        return cls(windows, counting(windows))


class Quota:
    """The quota, as this process uses it."""

    def __init__(self, settings: ProviderSettings, counters: Counters, apis: tuple[str, ...]) -> None:
        self._settings, self._counters = settings, counters
        self._windows, self._apis = counters.windows, apis

    async def turn(self, api: str, owner: int, seconds: float) -> None:
        """Count a request of an owner. Wait at most so long until there is room.

        Raises:
            ProviderError: `quota`.
        """
        whole, loop = self._requests(), asyncio.get_running_loop()
        deadline = loop.time() + seconds
        while refused := await self._refusal(_bucket(api), owner, whole):
            pause = max(refused[0] / SECOND, _PAUSE)
            if loop.time() + pause >= deadline:
                raise self._exhausted(api, refused, "the quota of requests to the external provider")
            self._counters.note(api, "waited")
            await asyncio.sleep(pause)

    async def count_update(self, api: str, owner: int) -> None:
        """Count an owner's update of a location towards the provider's limit per day.

        Raises:
            ProviderError: `quota`.
        """
        limit = self._settings.updates_per_day
        if refused := await self._refusal("provider-updates", owner, Window(limit, DAY)):
            raise self._exhausted(api, refused, f"the limit of {limit:,} updates of locations per day")

    async def count_edit(self, profile: str) -> None:
        """Count an edit of a profile towards the provider's limit per minute.

        Raises:
            ProviderError: `rate_limited`.
        """
        limit = self._settings.edits_per_minute
        if limit and (wait := await self._counters.count_edit(f"edits-per-profile:{profile}", Window(limit, MINUTE))):
            message = f"the limit of {limit} edits per minute of this profile is used up"
            raise not_sent("rate_limited", message, min(wait, MINUTE))

    async def standing(self) -> list[QuotaStanding]:
        """Return the requests of each API in the last minute, of all processes that count together."""
        whole = self._requests()
        left = [(await self._windows.standing(_bucket(api), whole)).left for api in self._apis]
        return [QuotaStanding(api, whole.limit, whole.limit - each) for api, each in zip(self._apis, left, strict=True)]

    async def _refusal(self, bucket: str, owner: int, whole: Window) -> tuple[int, str] | None:
        """Count in the window of each share and in the whole one, or in none if one is full. A limit of 0 is off.

        Return the milliseconds until there is room, and the start of a message that names the share; None if counted.
        """
        if not whole.limit:
            return None
        shares = [(f"{bucket}-of-owner:{owner}", self._settings.owner_share_percent, "this owner's share of ")]
        if current_request().background:
            shares.append((f"{bucket}-in-background", _BACKGROUND_PERCENT, ""))
        parts = [
            (name, Window(max(whole.limit * percent // 100, 1), whole.length), words)
            for name, percent, words in (*shares, (bucket, 100, ""))
        ]
        standings = [(await self._windows.standing(name, window), words) for name, window, words in parts]
        if full := [(standing.wait, words) for standing, words in standings if not standing.left]:
            return max(full)
        for name, window, words in parts:
            granted, standing = await self._windows.take(name, window)
            if not granted:  # another process was faster
                return standing.wait, words
        return None

    def _requests(self) -> Window:
        return Window(self._settings.requests_per_minute, MINUTE)

    def _exhausted(self, api: str, refused: tuple[int, str], limit: str) -> ProviderError:
        self._counters.note(api, "refused")
        wait, share = refused
        return not_sent("quota", f"{share}{limit} is used up", max(wait, SECOND))


def _bucket(api: str) -> str:
    return f"provider-requests-{api}"
