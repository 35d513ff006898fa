"""A storage for the library `limits` that uses the service's clock instead of the machine's.

It stores the instants of granted requests per key, eight bytes each. A clock that is set back does no lasting harm,
because an instant more than a window in the future does not count, like one in the past (A152).
"""

from array import array
from collections import OrderedDict

from limits.aio.storage import MovingWindowSupport, Storage

from profilesvc.domain.world import SECOND, Clock

_SWEPT = 2  # entries checked at each use: more than one, so that stale ones go faster than new ones come


class _Log:
    """The instants that count, oldest first, or the value of a counter and when it began."""

    __slots__ = ("count", "instants", "last", "length")

    def __init__(self, length: int) -> None:
        self.instants = array("q")
        self.length = length
        self.last = self.count = 0

    def stale(self, instant: int, now: int) -> bool:
        """Return whether an instant is outside the window, on either side."""
        return abs(now - instant) >= self.length


class ClockStorage(Storage, MovingWindowSupport):
    """Counters and moving windows in memory; parameters and results are in seconds, as in the library."""

    STORAGE_SCHEME = None

    def __init__(self, clock: Clock) -> None:
        super().__init__()
        self._clock = clock
        self._logs: OrderedDict[str, _Log] = OrderedDict()  # the first was used longest ago

    @property
    def base_exceptions(self) -> type[Exception]:
        """Return the errors of this storage: it has none of its own."""
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
        """Return the oldest instant that counts, and how many do."""
        now = self._clock.now()
        counting = self._log(key, expiry, now).instants[-limit:]
        return (counting[0] if counting else now) / SECOND, len(counting)

    async def incr(self, key: str, expiry: float, amount: int = 1) -> int:
        """Increase a counter, whose window begins with the first increase."""
        now = self._clock.now()
        log = self._log(key, int(expiry), now)
        if log.count == 0:
            log.last = now
        log.count += amount
        return log.count

    async def get(self, key: str) -> int:
        """Return the value of a counter, 0 when its window is over."""
        log = self._logs.get(key)
        return 0 if log is None or log.stale(log.last, self._clock.now()) else log.count

    async def get_expiry(self, key: str) -> float:
        """Return when a counter's window is over."""
        log = self._logs.get(key)
        return (self._clock.now() if log is None else log.last + log.length) / SECOND

    async def check(self) -> bool:
        """Return that the storage works."""
        return True

    async def reset(self) -> int | None:
        """Remove everything."""
        forgotten = len(self._logs)
        self._logs.clear()
        return forgotten

    async def clear(self, key: str) -> None:
        """Remove a key."""
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
        """Remove keys that no longer count, a few at a time, so that memory does not grow with past callers."""
        for _ in range(min(_SWEPT, len(self._logs))):
            key, log = next(iter(self._logs.items()))
            if log.stale(log.last, now):
                del self._logs[key]
            else:
                self._logs.move_to_end(key)
