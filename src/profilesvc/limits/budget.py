"""A budget of requests per minute that owners share.

A request is granted while the last minute has room. Two shares keep room for others: an owner has at most half of the
budget while other owners want some, and background work leaves a fifth of it to requests that a person waits for. A
rejection by the other side halves the budget, and it recovers by a twentieth of its full size per minute (AIMD).
"""

from collections import Counter, deque
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol

from profilesvc.domain.time import MINUTE, SECOND, Clock

SPARE = 5  # one of so many parts is not for background work
RECOVERY = 20  # minutes from nothing to the full budget
FLOOR = 30  # the budget never shrinks below one of so many parts
PAUSE = 10 * SECOND  # between two reductions, because requests in flight are rejected together
_REMEMBERED = 1_000  # owners that want more, before those that have stopped asking are forgotten
GRACE = 5 * SECOND  # after the end of a wait, in which an owner is expected to ask again


class Claim(NamedTuple):
    """A request for a place in the budget `name`, of `full` requests per minute."""

    name: str
    full: int
    owner: int
    background: bool = False


class Spent(NamedTuple):
    """A budget now, the requests of the last minute, and the owners that wait or were refused a moment ago."""

    budget: int
    used: int
    waiting: int


class Budget(Protocol):
    """Budgets by name."""

    async def take(self, claim: Claim) -> int:
        """Count a request if there is room; return 0, or the milliseconds until it is worth asking again."""

    def wait(self, claim: Claim) -> int:
        """Return the milliseconds until there can be room, as far as this process knows."""

    def used(self, name: str) -> Mapping[int, int]:
        """Return the requests of each owner that this process has sent in the last minute."""

    async def shrink(self, name: str, full: int) -> bool:
        """Halve a budget because the other side has rejected a request; return False soon after another time."""

    async def spent(self, name: str, full: int) -> Spent:
        """Return the state of a budget."""

    def known(self, name: str, full: int) -> int:
        """Return the budget, as far as this process knows."""

    async def close(self) -> None: ...


@dataclass
class _Ledger:
    """The requests of the last minute, oldest first, and the owners that want more, each until some instant."""

    grants: deque[tuple[int, int]] = field(default_factory=deque)
    used: Counter[int] = field(default_factory=Counter)
    wanting: dict[int, int] = field(default_factory=dict)
    reduced: tuple[int, int] | None = None  # to which budget, and when

    def forget(self, now: int) -> None:
        while self.grants and abs(now - self.grants[0][0]) >= MINUTE:  # also after the clock was set back
            _, owner = self.grants.popleft()
            self.used[owner] -= 1
            if not self.used[owner]:
                del self.used[owner]

    def budget(self, full: int, now: int) -> int:
        if self.reduced is None:
            return full
        start, at = self.reduced
        recovered = start + max(now - at, 0) * full // (RECOVERY * MINUTE)
        if recovered >= full:
            self.reduced = None
        return min(recovered, full)

    def want(self, owner: int, now: int, wait: int) -> None:
        if len(self.wanting) > _REMEMBERED:
            self.wanting = {owner: until for owner, until in self.wanting.items() if until > now}
        self.wanting[owner] = now + wait + GRACE

    def others_want(self, owner: int, now: int) -> bool:
        return any(other != owner and until > now for other, until in self.wanting.items())


class MemoryBudget:
    """The budgets of one process, on the service's clock."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._ledgers: dict[str, _Ledger] = {}

    async def take(self, claim: Claim) -> int:
        """Grant a request if there is room."""
        wait = self.wait(claim)
        if not wait:
            self.note(claim)
        return wait

    def wait(self, claim: Claim) -> int:
        """Return the milliseconds until there is room, and remember that the owner wants it."""
        now, ledger = self._clock.now(), self._ledger(claim.name)
        wait = self._wait(claim, ledger, now)
        if wait and not claim.background:
            ledger.want(claim.owner, now, wait)
        return wait

    def _wait(self, claim: Claim, ledger: _Ledger, now: int) -> int:
        budget = ledger.budget(claim.full, now)
        room = max(budget - budget // SPARE, 1) if claim.background else budget
        if (excess := len(ledger.grants) - room) >= 0:
            return _until(ledger.grants[excess][0], now)
        excess = ledger.used[claim.owner] - half(budget)
        if excess >= 0 and ledger.others_want(claim.owner, now):
            own = [instant for instant, owner in ledger.grants if owner == claim.owner]
            return _until(own[excess], now)
        return 0

    def note(self, claim: Claim) -> None:
        """Count a request that was granted."""
        ledger = self._ledger(claim.name)
        ledger.grants.append((self._clock.now(), claim.owner))
        ledger.used[claim.owner] += 1
        ledger.wanting.pop(claim.owner, None)

    def used(self, name: str) -> Mapping[int, int]:
        """Return the requests of each owner in the last minute."""
        return self._ledger(name).used

    async def shrink(self, name: str, full: int) -> bool:
        """Halve a budget."""
        now, ledger = self._clock.now(), self._ledger(name)
        if ledger.reduced is not None and 0 <= now - ledger.reduced[1] < PAUSE:
            return False
        ledger.reduced = max(ledger.budget(full, now) // 2, full // FLOOR, 1), now
        return True

    async def spent(self, name: str, full: int) -> Spent:
        """Return the state of a budget."""
        now, ledger = self._clock.now(), self._ledger(name)
        waiting = sum(until > now for until in ledger.wanting.values())
        return Spent(ledger.budget(full, now), len(ledger.grants), waiting)

    def known(self, name: str, full: int) -> int:
        """Return the budget."""
        return self._ledger(name).budget(full, self._clock.now())

    async def close(self) -> None:
        """Do nothing, because no connection is open."""

    def _ledger(self, name: str) -> _Ledger:
        ledger = self._ledgers.get(name)
        if ledger is None:
            ledger = self._ledgers[name] = _Ledger()
        ledger.forget(self._clock.now())
        return ledger


def half(budget: int) -> int:
    """Return how many requests one owner may send while others want some."""
    return (budget + 1) // 2


def _until(granted: int, now: int) -> int:
    """Return the milliseconds until a request is a minute old."""
    return max(granted + MINUTE - now, 1)
