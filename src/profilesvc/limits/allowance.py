"""An allowance of so many uses a day that owners share.

An owner who is the only one may use all of it. While another owner has asked in the last week, an owner may use no more
than what is left for the others: the first one stops at half, a second one at a quarter, so that some is left for a
newcomer. Every use costs the same small time, however many there were.
"""

from collections import deque
from collections.abc import Sequence
from typing import NamedTuple, Protocol

from profilesvc.domain.time import DAY, Clock

RECENT = 7 * DAY  # in which an owner who has asked is one that others leave some to
REMEMBERED = 2  # owners, the last who asked: one of them is another one for everybody


class Refused(NamedTuple):
    """Why a use was refused: because of the owner's share or of all uses; and the milliseconds until it has room."""

    wait: int
    by_share: bool


class Allowance(Protocol):
    """The uses of a day by owner."""

    async def take(self, owner: int, limit: int) -> Refused | None:
        """Count a use if there is room."""

    async def close(self) -> None: ...


class MemoryAllowance:
    """The uses that one process has counted, on the service's clock."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._all: deque[tuple[int, int]] = deque()  # (instant, owner), oldest first
        self._own: dict[int, deque[int]] = {}
        self._asked: dict[int, int] = {}  # the last owners who asked, and when; the last one is last

    async def take(self, owner: int, limit: int) -> Refused | None:
        """Count a use if there is room."""
        now = self._forget()
        self._ask(owner, now)
        own: Sequence[int] = self._own.get(owner, ())
        left = limit - len(self._all)
        if left <= 0:
            return Refused(_until(self._all[-left][0], now), by_share=False)
        if len(self._asked) > 1 and (excess := len(own) - left) >= 0:
            # A use of the owner that ends gives room twice: the owner has fewer, and more are left.
            return Refused(min(_until(self._all[excess][0], now), _until(own[excess // 2], now)), by_share=True)
        self.note(owner)
        return None

    def note(self, owner: int) -> None:
        """Count a use that was granted."""
        now = self._forget()
        self._ask(owner, now)
        self._all.append((now, owner))
        self._own.setdefault(owner, deque()).append(now)

    async def close(self) -> None:
        """Do nothing, because no connection is open."""

    def _forget(self) -> int:
        now = self._clock.now()
        while self._all and abs(now - self._all[0][0]) >= DAY:  # also after the clock was set back
            _, owner = self._all.popleft()
            own = self._own[owner]
            own.popleft()
            if not own:
                del self._own[owner]
        return now

    def _ask(self, owner: int, now: int) -> None:
        self._asked.pop(owner, None)
        recent = [(each, at) for each, at in self._asked.items() if abs(now - at) < RECENT]
        self._asked = dict([*recent, (owner, now)][-REMEMBERED:])


def _until(instant: int, now: int) -> int:
    """Return the milliseconds until a use is a day old."""
    return max(instant + DAY - now, 1)
