"""When to try again, and how long to wait before it."""

import random
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

from profilesvc.client.errors import (
    IdempotencyInProgress,
    NotFound,
    ProfileApiError,
    ProfileError,
    ProviderFailed,
    RateLimited,
    ServiceUnavailable,
    TransportFailed,
)
from profilesvc.client.operation import Operation

T = TypeVar("T")


@dataclass(frozen=True)
class Retries:
    """At most `attempts` in total, none started later than `budget` seconds after the first.

    The wait is chosen evenly between nothing and a limit that starts at `first` seconds and doubles up to `longest`
    (full jitter); a longer Retry-After is kept to, or given up on where it exceeds the budget.
    """

    attempts: int = 4
    budget: float = 20.0
    first: float = 0.25
    longest: float = 5.0
    chance: Callable[[], float] = field(default=random.random, repr=False)


@dataclass
class Tries(Generic[T]):
    """The attempts of one operation; `clock` returns seconds."""

    policy: Retries
    operation: Operation[T]
    clock: Callable[[], float]
    made: int = 0
    unsure: bool = False  # an attempt that may have been carried out had no answer

    def __post_init__(self) -> None:
        self.began = self.clock()

    def pause(self, error: ProfileError) -> float:
        """Seconds to wait before the next attempt; raises the error when there will be none."""
        self.made += 1
        if self.made >= self.policy.attempts or not _worth_repeating(error, self.operation):
            raise error
        limit = min(self.policy.longest, self.policy.first * 2.0 ** (self.made - 1))
        asked = error.retry_after if isinstance(error, ProfileApiError) else None
        pause = max(limit * self.policy.chance(), asked or 0.0)
        if self.clock() - self.began + pause > self.policy.budget:
            raise error
        self.unsure = self.unsure or (error.sent and not isinstance(error, RateLimited))
        return pause

    def settled(self, error: ProfileError) -> T | None:
        """The result when what was to be removed is missing because an earlier attempt has removed it."""
        return self.operation.gone if self.unsure and isinstance(error, NotFound) else None


def _worth_repeating(error: ProfileError, operation: Operation[Any]) -> bool:
    """Passing troubles, as long as a repeat cannot do the operation twice."""
    if isinstance(error, RateLimited | IdempotencyInProgress):
        return True
    if isinstance(error, TransportFailed | ServiceUnavailable):
        return operation.repeatable or not error.sent
    return isinstance(error, ProviderFailed) and error.retryable and operation.repeatable
