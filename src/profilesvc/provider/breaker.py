"""Circuit breaker: while the provider is down, calls fail in milliseconds instead of timing out."""

from collections.abc import Iterator
from contextlib import contextmanager

from profilesvc.domain.time import SECOND, Clock
from profilesvc.provider.port import ProviderError, Reason

FAILURES = 5
COOL_DOWN_MS = 10 * SECOND


class Unreachable(ProviderError):
    """The error of a connection that failed or timed out. The breaker counts only these errors."""

    def __init__(self, reason: Reason, message: str, *, reached: bool = True) -> None:
        super().__init__(reason, retryable=True, provider_message=message, reached=reached)


class Breaker:
    """The breaker of one API. It opens after 5 consecutive operations without a response, and probes after 10 s."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._failures, self._open_until, self._probing = 0, 0, False

    @contextmanager
    def guard(self) -> Iterator[None]:
        """Guard one operation.

        Raises:
            ProviderError: The breaker is open.
        """
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
        """Return whether this operation is the probe. Setting the clock back does not keep the breaker open longer."""
        if self._failures < FAILURES:
            return False
        wait = self._open_until - self._clock.now()
        if self._probing or 0 < wait <= COOL_DOWN_MS:
            raise ProviderError(
                "unavailable",
                retryable=True,
                provider_message="not called because it did not respond to the last calls",
                retry_after=max(wait, SECOND) / SECOND,
                reached=False,
            )
        self._probing = True
        return True
