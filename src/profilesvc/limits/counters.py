"""Moving windows: the strategy of the library `limits` on a storage in memory, or on Redis for several processes."""

from array import array
from collections import OrderedDict
from collections.abc import Callable

from limits import RateLimitItemPerSecond
from limits.aio.storage import MovingWindowSupport, Storage
from limits.aio.strategies import MovingWindowRateLimiter

from profilesvc.domain.rates import Standing, Window
from profilesvc.domain.time import SECOND, Clock

_NAMESPACE = "profilesvc"
_MAX_DOUBLINGS = 20
_SWEPT_PER_USE = 2  # more than one, so that stale keys are removed faster than new ones are added


class LibraryWindows:
    """Windows on a storage of the library `limits`; `now` returns the storage's time in milliseconds."""

    def __init__(self, storage: Storage, now: Callable[[], int]) -> None:
        self._storage, self._now = storage, now
        self._strategy = MovingWindowRateLimiter(storage)

    async def take(self, bucket: str, window: Window) -> tuple[bool, Standing]:
        if window.limit == 0:
            return False, Standing(0, window.length)
        granted = await self._strategy.hit(_item(window.limit, window.seconds), bucket)
        standing = await self.standing(bucket, window)
        return granted, standing if granted else standing._replace(left=0)

    async def standing(self, bucket: str, window: Window) -> Standing:
        reset, left = await self._strategy.get_window_stats(_item(window.limit, window.seconds), bucket)
        return Standing(max(left, 0), max(round(reset * SECOND) - self._now(), 0))

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


class _Log:
    """The instants in a window, oldest first; or the value of a counter and when it started."""

    __slots__ = ("count", "instants", "last", "length")

    def __init__(self, length: int) -> None:
        self.instants = array("q")
        self.length = length
        self.last = self.count = 0

    def stale(self, instant: int, now: int) -> bool:
        """Return whether an instant is outside the window, on either side."""
        return abs(now - instant) >= self.length


class ClockStorage(Storage, MovingWindowSupport):
    """Counters and moving windows in memory, on the service's clock. Parameters and results are in seconds.

    An instant more than a window in the future does not count, so that the limits work after the clock is set back.
    """

    STORAGE_SCHEME = None

    def __init__(self, clock: Clock) -> None:
        super().__init__()
        self._clock = clock
        self._logs: OrderedDict[str, _Log] = OrderedDict()  # the least recently used first

    @property
    def base_exceptions(self) -> type[Exception]:
        """Return the type of this storage's errors; it raises none."""
        return ValueError

    async def acquire_entry(self, key: str, limit: int, expiry: int, amount: int = 1) -> bool:
        """Add `amount` instants if the window has room for them."""
        now = self._clock.now()
        log = self._log(key, expiry, now)
        if len(log.instants) + amount > limit:
            return False
        log.instants.extend([now] * amount)
        log.last = now
        return True

    async def get_moving_window(self, key: str, limit: int, expiry: int) -> tuple[float, int]:
        """Return the oldest instant in the window, and the number of instants."""
        now = self._clock.now()
        instants = self._log(key, expiry, now).instants[-limit:]
        return (instants[0] if instants else now) / SECOND, len(instants)

    async def incr(self, key: str, expiry: float, amount: int = 1) -> int:
        """Increase a counter. Its window starts with the first increase."""
        now = self._clock.now()
        log = self._log(key, int(expiry), now)
        if log.count == 0:
            log.last = now
        log.count += amount
        return log.count

    async def get(self, key: str) -> int:
        """Return the value of a counter, 0 after its window has ended."""
        log = self._logs.get(key)
        return 0 if log is None or log.stale(log.last, self._clock.now()) else log.count

    async def get_expiry(self, key: str) -> float:
        """Return when a counter's window ends."""
        log = self._logs.get(key)
        return (self._clock.now() if log is None else log.last + log.length) / SECOND

    async def check(self) -> bool:
        """Return True, because memory is always available."""
        return True

    async def reset(self) -> int | None:
        """Remove all keys and return how many there were."""
        count = len(self._logs)
        self._logs.clear()
        return count

    async def clear(self, key: str) -> None:
        self._logs.pop(key, None)

    def __len__(self) -> int:
        return len(self._logs)

    def _log(self, key: str, expiry: int, now: int) -> _Log:
        self._sweep(now)
        log = self._logs.get(key)
        if log is None or log.stale(log.last, now):
            log = self._logs[key] = _Log(expiry * SECOND)
        self._logs.move_to_end(key)
        while log.instants and log.stale(log.instants[0], now):
            del log.instants[0]
        return log

    def _sweep(self, now: int) -> None:
        """Remove a few stale keys at each use, so that memory does not grow with every caller."""
        for _ in range(min(_SWEPT_PER_USE, len(self._logs))):
            key, log = next(iter(self._logs.items()))
            if log.stale(log.last, now):
                del self._logs[key]
            else:
                self._logs.move_to_end(key)


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
