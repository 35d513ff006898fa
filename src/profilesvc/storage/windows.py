"""Counters of moving windows in this process: the instants of what was granted, per bucket."""

from array import array
from collections import OrderedDict
from typing import NamedTuple, Protocol

from profilesvc.domain.rates import Window
from profilesvc.domain.world import SECOND, Clock

_SWEPT = 2  # logs looked at with each use: more than one, so that the dead go faster than new ones come
_MOST_STRIKES = 32


class Standing(NamedTuple):
    """What is left in a window, and the milliseconds until there is more."""

    left: int
    wait: int


class Windows(Protocol):
    """Where requests are counted, by the name of a bucket."""

    async def take(self, bucket: str, window: Window) -> tuple[bool, Standing]:
        """Take one where there is one; whether it was granted, and how the bucket stands now."""
        ...

    async def strike(self, bucket: str, window: Window) -> int:
        """Count a failure: 0 within the window's limit, else the delay in ms, doubled each time up to the window.

        One failure after a delay that was waited for is within the limit again.
        """
        ...

    async def close(self) -> None:
        """Give back what was opened."""
        ...


class _Log:
    """The instants that count, oldest first, and the penalty for failures above the limit."""

    __slots__ = ("instants", "last", "length", "strikes", "until")

    def __init__(self, length: int) -> None:
        self.instants = array("q")
        self.length = length
        self.last = self.strikes = self.until = 0

    def stale(self, instant: int, now: int) -> bool:
        """Out of the window, on either side: when the clock was set back, what lies ahead must not count for long."""
        return abs(now - instant) >= self.length


class MemoryWindows:
    """The windows of one process, by the service's clock; eight bytes for each request that still counts."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._logs: OrderedDict[str, _Log] = OrderedDict()  # the first was looked at longest ago

    async def take(self, bucket: str, window: Window) -> tuple[bool, Standing]:
        """See Windows."""
        now = self._clock.now()
        log = self._log(bucket, window, now)
        granted = len(log.instants) < window.limit
        if granted:
            log.instants.append(now)
            log.last = now
        return granted, _standing(log.instants, window, now)

    async def strike(self, bucket: str, window: Window) -> int:
        """See Windows."""
        now = self._clock.now()
        log = self._log(bucket, window, now)
        log.last = now
        if log.until and log.until <= now:
            log.until = 0
            return 0
        if not log.until and len(log.instants) < window.limit:
            log.instants.append(now)
            return 0
        delay = min(SECOND << log.strikes, window.length)
        log.strikes, log.until = min(log.strikes + 1, _MOST_STRIKES), now + delay
        return delay

    async def close(self) -> None:
        """Nothing is open."""

    def __len__(self) -> int:
        return len(self._logs)

    def _log(self, bucket: str, window: Window, now: int) -> _Log:
        self._sweep(now)
        log = self._logs.get(bucket)
        if log is None or log.stale(log.last, now):
            log = self._logs[bucket] = _Log(window.length)
        self._logs.move_to_end(bucket)
        while log.instants and log.stale(log.instants[0], now):
            del log.instants[0]
        return log

    def _sweep(self, now: int) -> None:
        """Forget what no longer counts, a little at a time, so that callers who left leave nothing behind."""
        for _ in range(min(_SWEPT, len(self._logs))):
            name, log = next(iter(self._logs.items()))
            if log.stale(log.last, now):
                del self._logs[name]
            else:
                self._logs.move_to_end(name)


def _standing(instants: "array[int]", window: Window, now: int) -> Standing:
    """More is there when the instant leaves that keeps the window full, or else the oldest."""
    if not instants:
        return Standing(window.limit, window.length)
    leaves = instants[max(len(instants) - window.limit, 0)]
    return Standing(max(window.limit - len(instants), 0), leaves + window.length - now)
