"""Moving windows: the strategy of the library `limits` on a storage in memory, or on Redis for several processes."""

from collections.abc import Callable

from limits import RateLimitItemPerSecond
from limits.aio.storage import Storage
from limits.aio.strategies import MovingWindowRateLimiter

from profilesvc.domain.rates import Standing, Window
from profilesvc.domain.time import SECOND, Clock
from profilesvc.limits.memory import ClockStorage

_NAMESPACE = "profilesvc"
_MAX_DOUBLINGS = 20


class LibraryWindows:
    """Windows on a storage of the library `limits`; `now` returns the storage's time in milliseconds."""

    def __init__(self, storage: Storage, now: Callable[[], int]) -> None:
        self._storage, self._now = storage, now
        self._strategy = MovingWindowRateLimiter(storage)

    async def take(self, bucket: str, window: Window) -> tuple[bool, Standing]:
        if window.limit == 0:
            return False, Standing(0, window.length)
        item = _item(window.limit, window.seconds)
        granted = await self._strategy.hit(item, bucket)
        reset, remaining = await self._strategy.get_window_stats(item, bucket)
        wait = max(round(reset * SECOND) - self._now(), 0)
        return granted, Standing(max(remaining, 0) if granted else 0, wait)

    async def strike(self, bucket: str, window: Window) -> int:
        counter, penalty = f"{_NAMESPACE}:{bucket}:strikes", f"{bucket}:penalty"
        strikes = await self._storage.get(counter)
        if strikes == 0:
            is_within = await self._strategy.hit(_item(window.limit, window.seconds), bucket)
        else:  # the last delay must have passed
            is_within = await self._strategy.hit(_item(1, _delay(strikes, window)), penalty)
        if is_within:
            return 0
        delay = _delay(await self._storage.incr(counter, window.seconds), window)
        await self._strategy.hit(_item(1, delay), penalty)
        return delay * SECOND

    async def close(self) -> None:
        """Do nothing, because no connection is open."""


class MemoryWindows(LibraryWindows):
    """Windows of one process, on the service's clock."""

    def __init__(self, clock: Clock) -> None:
        self.storage = ClockStorage(clock)
        super().__init__(self.storage, clock.now)


def _item(limit: int, seconds: int) -> RateLimitItemPerSecond:
    return RateLimitItemPerSecond(limit, seconds, _NAMESPACE)


def _delay(strikes: int, window: Window) -> int:
    """Return the seconds of a delay: 1, 2, 4, … up to the window."""
    return int(min(2 ** min(strikes - 1, _MAX_DOUBLINGS), window.seconds))
