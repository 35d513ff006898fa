"""The rule for retries, and the wait before each."""

import random
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Generic, TypeVar

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
    """The retry policy: at most `attempts` in total, and none later than `budget` seconds after the first.

    The wait is random between 0 and a limit that starts at `first` seconds and doubles up to `longest` (full jitter).
    A longer Retry-After is respected; if it exceeds the budget, there is no retry.
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
    may_be_done: bool = False  # an attempt without a response may have been carried out

    def __post_init__(self) -> None:
        self.started = self.clock()

    def pause(self, error: ProfileError) -> float:
        """Return the seconds to wait before the next attempt, or raise the error if there is none."""
        self.made += 1
        if self.made >= self.policy.attempts or not _is_retryable(error, self.operation):
            raise error
        limit = min(self.policy.longest, self.policy.first * 2.0 ** (self.made - 1))
        retry_after = error.retry_after if isinstance(error, ProfileApiError) else None
        pause = max(limit * self.policy.chance(), retry_after or 0.0)
        if self.clock() - self.started + pause > self.policy.budget:
            raise error
        self.may_be_done = self.may_be_done or (error.sent and not isinstance(error, RateLimited))
        return pause

    def removed_before(self, error: ProfileError) -> T | None:
        """Return the result if the resource is missing because an earlier attempt has deleted it."""
        return self.operation.result_if_missing if self.may_be_done and isinstance(error, NotFound) else None


def _is_retryable(error: ProfileError, operation: Operation[T]) -> bool:
    """Return True for a temporary failure whose retry cannot carry out the operation twice."""
    if isinstance(error, RateLimited | IdempotencyInProgress):
        return True
    if isinstance(error, TransportFailed | ServiceUnavailable):
        return operation.repeatable or not error.sent
    return isinstance(error, ProviderFailed) and error.retryable and operation.repeatable
