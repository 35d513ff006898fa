"""Circuit breaker: a provider that is down costs callers milliseconds instead of timeouts."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from profilesvc.domain.world import SECOND, Clock
from profilesvc.provider.port import ProviderError, Reason

FAILURES = 5
COOL_DOWN_MS = 10 * SECOND


class Unreachable(ProviderError):
    """There was no response: the connection failed or timed out. The breaker counts only these failures."""

    def __init__(self, reason: Reason, message: str, **known: Any) -> None:
        super().__init__(reason, retryable=True, provider_message=message, **known)


class Breaker:
    """The breaker of one API. It opens after 5 operations in a row without a response; after 10 s one probe decides."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._failures, self._open_until, self._probing = 0, 0, False

    @contextmanager
    def guard(self) -> Iterator[None]:
        """Guard one operation; raise ProviderError immediately while the breaker is open."""
        probe = self._admit()
        try:
            yield
        except Unreachable:
            self._failures += 1
            if self._failures >= FAILURES:
                self._open_until = self._clock.now() + COOL_DOWN_MS
            raise
        except ProviderError as error:
            self._failures = 0 if error.reached else self._failures
            raise
        else:
            self._failures = 0
        finally:
            self._probing = self._probing and not probe

    def _admit(self) -> bool:
        """Return True for the probe. A clock that was set back does not keep the breaker open longer."""
        if self._failures < FAILURES:
            return False
        wait = self._open_until - self._clock.now()
        if self._probing or 0 < wait <= COOL_DOWN_MS:
            raise ProviderError(
                "unavailable",
                retryable=True,
                provider_message="not asked: it gave no answer to the last calls",
                retry_after=max(wait, SECOND) / SECOND,
                reached=False,
            )
        self._probing = True
        return True
