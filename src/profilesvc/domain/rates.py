"""Rates as people write them, as sliding windows."""

import re
from dataclasses import dataclass
from typing import Annotated, NamedTuple, Protocol

from pydantic import BeforeValidator

from profilesvc.domain.time import DAY, HOUR, MINUTE, SECOND

_UNITS = {"second": SECOND, "minute": MINUTE, "hour": HOUR, "day": DAY}
_WRITTEN = re.compile(
    r"([1-9]\d{0,5})/(?:([1-9]\d{0,2}) )?(second|minute|hour|day)s?(?: burst ([1-9]\d{0,5}))?\Z", re.A
)


@dataclass(frozen=True, slots=True)
class Window:
    """At most `limit` requests within any `length` milliseconds."""

    limit: int
    length: int

    @classmethod
    def of(cls, text: str) -> "Window":
        """Parse `300/minute`, `10/15 minutes` or `600/minute burst 200`.

        A burst widens the window at the same rate: 600 a minute with a burst of 200 is 800 in any 80 seconds.

        Raises:
            ValueError: The text is not a rate.
        """
        match = _WRITTEN.match(text.strip())
        if match is None:
            raise ValueError("must be a rate such as 300/minute, 10/15 minutes or 600/minute burst 200")
        limit, count = int(match[1]), int(match[2] or 1)
        unit, burst = match[3], int(match[4] or 0)
        seconds = -(-_UNITS[unit] * count * (limit + burst) // (limit * SECOND))  # counters use whole seconds
        return cls(limit + burst, seconds * SECOND)

    @property
    def rate(self) -> float:
        """The average number of requests per millisecond."""
        return self.limit / self.length

    @property
    def seconds(self) -> int:
        """The length in seconds, rounded up."""
        return -(-self.length // SECOND)


class Standing(NamedTuple):
    """The remaining requests of a window, and the milliseconds until one more is possible."""

    left: int
    wait: int


@dataclass(frozen=True, slots=True)
class Counted:
    """A bucket in which a request was counted."""

    name: str
    window: Window
    standing: Standing

    @property
    def seconds(self) -> int:
        """Seconds until one more request is possible, rounded up, at least 1."""
        return max(-(-self.standing.wait // SECOND), 1)


class Windows(Protocol):
    """Counters of requests by the name of a bucket."""

    async def take(self, bucket: str, window: Window) -> tuple[bool, Standing]:
        """Count a request unless the window is full. Return whether it was counted, and the bucket's state."""

    async def standing(self, bucket: str, window: Window) -> Standing:
        """Return the bucket's state without counting."""

    async def strike(self, bucket: str, window: Window) -> int:
        """Count a failure. Return 0 within the limit, else a delay in ms that doubles each time up to the window.

        Once the delay is over, one more failure is within the limit.
        """

    async def close(self) -> None: ...


def _read(value: object) -> object:
    return Window.of(value) if isinstance(value, str) else value


Rate = Annotated[Window, BeforeValidator(_read)]
