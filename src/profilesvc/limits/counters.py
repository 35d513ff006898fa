"""Counters of moving windows: the strategy of the library `limits` over one of its storages.

One process uses a storage with the service's clock (`memory.py`). Several use the library's storage for Redis and
Valkey (`redis.py`), where counting a request is one atomic script.
"""

from collections.abc import Callable

from limits import RateLimitItemPerSecond
from limits.aio.storage import Storage
from limits.aio.strategies import MovingWindowRateLimiter

from profilesvc.domain.rates import Standing, Window
from profilesvc.domain.world import SECOND, Clock
from profilesvc.limits.memory import ClockStorage

_NAMESPACE = "profilesvc"
_MOST_DOUBLINGS = 20


class LibraryWindows:
    """Windows over a storage of the library; `now` is the clock of the storage, in milliseconds."""

    def __init__(self, storage: Storage, now: Callable[[], int]) -> None:
        self._storage, self._now = storage, now
        self._strategy = MovingWindowRateLimiter(storage)

    async def take(self, bucket: str, window: Window) -> tuple[bool, Standing]:
        """See Windows."""
        if window.limit == 0:
            return False, Standing(0, window.length)
        item = _item(window.limit, window.seconds)
        granted = await self._strategy.hit(item, bucket)
        reset, left = await self._strategy.get_window_stats(item, bucket)
        wait = max(round(reset * SECOND) - self._now(), 0)
        return granted, Standing(max(left, 0) if granted else 0, wait)

    async def strike(self, bucket: str, window: Window) -> int:
        """See Windows."""
        counter, penalty = f"{_NAMESPACE}:{bucket}:strikes", f"{bucket}:penalty"
        strikes = await self._storage.get(counter)
        if strikes == 0:
            within = await self._strategy.hit(_item(window.limit, window.seconds), bucket)
        else:  # the caller has waited for the last delay
            within = await self._strategy.hit(_item(1, _delay(strikes, window)), penalty)
        if within:
            return 0
        delay = _delay(await self._storage.incr(counter, window.seconds), window)
        await self._strategy.hit(_item(1, delay), penalty)
        return delay * SECOND

    async def close(self) -> None:
        """Do nothing: no connection is open."""


class MemoryWindows(LibraryWindows):
    """The windows of one process, with the service's clock."""

    def __init__(self, clock: Clock) -> None:
        self.storage = ClockStorage(clock)
        super().__init__(self.storage, clock.now)


def _item(limit: int, seconds: int) -> RateLimitItemPerSecond:
    return RateLimitItemPerSecond(limit, seconds, _NAMESPACE)


def _delay(strikes: int, window: Window) -> int:
    """Return the seconds of a delay: 1, 2, 4, … up to the window."""
    return int(min(2 ** min(strikes - 1, _MOST_DOUBLINGS), window.seconds))
