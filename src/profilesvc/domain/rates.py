"""Rates as people write them, and as a moving window counts them (D-50)."""

import re
from dataclasses import dataclass
from typing import Annotated, Any

from pydantic import BeforeValidator

from profilesvc.domain.world import DAY, HOUR, MINUTE, SECOND

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
        """`300/minute`, `10/15 minutes`, `600/minute burst 200`; raises ValueError.

        A burst widens the window and not the rate: 600 a minute and 200 at once above it are 800 in any 80 seconds.
        """
        match = _WRITTEN.match(text.strip())
        if match is None:
            raise ValueError("must be a rate such as 300/minute, 10/15 minutes or 600/minute burst 200")
        limit, count, unit, burst = int(match[1]), int(match[2] or 1), match[3], int(match[4] or 0)
        return cls(limit + burst, _UNITS[unit] * count * (limit + burst) // limit)

    @property
    def rate(self) -> float:
        """Requests per millisecond in the long run."""
        return self.limit / self.length

    @property
    def seconds(self) -> int:
        """The length in whole seconds, never less."""
        return -(-self.length // SECOND)


def _read(value: Any) -> Any:
    return Window.of(value) if isinstance(value, str) else value


Rate = Annotated[Window, BeforeValidator(_read)]
