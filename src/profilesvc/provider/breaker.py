"""Circuit breakers: while the provider is down, calls fail in milliseconds instead of timing out.

Each API has one breaker for everything, and one for each party: a connected login, or a location that the
installation's login reaches. Calls that fail for one party pause only that party (D-113).
"""

from collections.abc import Hashable, Iterable, Iterator
from contextlib import contextmanager

from profilesvc.domain.time import SECOND, Clock
from profilesvc.provider.port import ProviderError, Reason, not_sent

FAILURES = 5
PARTIES = 3
COOL_DOWN_MS = 10 * SECOND
_MOST_PARTIES = 4_096


class Unreachable(ProviderError):
    """The error of a connection that failed or timed out. The breaker counts only these errors."""

    def __init__(self, reason: Reason, message: str, *, reached: bool = True) -> None:
        super().__init__(reason, retryable=True, provider_message=message, reached=reached)


class Breaker:
    """A breaker. It opens after 5 consecutive operations without a response, and probes after 10 s.

    The failures must be of `parties` different parties, because one that is slow is no outage.
    """

    def __init__(self, clock: Clock, parties: int = 1) -> None:
        self._clock, self._parties = clock, parties
        self._failures, self._open_until = 0, 0
        self._probing = False
        self._failed: set[Hashable] = set()

    @contextmanager
    def calling(self, party: Hashable) -> Iterator[None]:
        """Run one operation of a party.

        Raises:
            ProviderError: The breaker is open.
        """
        probe = self._admit()
        try:
            yield
        except Unreachable:
            self._failures += 1
            if len(self._failed) < self._parties:
                self._failed.add(party)
            if self._is_tripped:
                self._open_until = self._clock.now() + COOL_DOWN_MS
            raise
        except ProviderError as error:
            if error.reached:
                self._reset()
            raise
        else:
            self._reset()
        finally:
            self._probing = self._probing and not probe

    @property
    def _is_tripped(self) -> bool:
        return self._failures >= FAILURES and len(self._failed) >= self._parties

    def _reset(self) -> None:
        self._failures = 0
        self._failed.clear()

    def _admit(self) -> bool:
        """Return whether this operation is the probe. Setting the clock back does not keep the breaker open longer."""
        if not self._is_tripped:
            return False
        wait = self._open_until - self._clock.now()
        if self._probing or 0 < wait <= COOL_DOWN_MS:
            raise not_sent("unavailable", "not called because it did not respond to the last calls", max(wait, SECOND))
        self._probing = True
        return True


class Breakers:
    """The breakers of all APIs and parties in this process."""

    def __init__(self, clock: Clock, apis: Iterable[str]) -> None:
        self._clock = clock
        self._wide = {api: Breaker(clock, PARTIES) for api in apis}
        self._narrow: dict[tuple[str, Hashable], Breaker] = {}  # the least recently used first

    @contextmanager
    def calling(self, api: str, party: Hashable) -> Iterator[None]:
        """Run one operation.

        Raises:
            ProviderError: A breaker is open.
        """
        slot = api, party
        narrow = self._narrow.pop(slot, None) or Breaker(self._clock)
        while len(self._narrow) >= _MOST_PARTIES:
            del self._narrow[next(iter(self._narrow))]
        self._narrow[slot] = narrow
        with self._wide[api].calling(party), narrow.calling(party):
            yield
