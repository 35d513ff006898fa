"""A cache for expensive responses that need no authentication."""

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import Generic, TypeVar

Result = TypeVar("Result")
_CPU_SHARE, _MAX_SECONDS = 0.05, 0.05


class BriefCache(Generic[Result]):
    """A cached result. Computing it takes at most 5 % of a processor; while more is needed, callers get the last one.

    Concurrent callers share one computation, and an unchanged result is not computed again. `budget` is the CPU time in
    seconds that may be spent at once, so that occasional callers always get a new result.
    """

    def __init__(self, budget: float) -> None:
        self._max_budget = self._budget = budget
        self._at = time.monotonic()
        self._stamp: object = None
        self._pending: asyncio.Future[Result] | None = None

    async def get(self, compute: Callable[[], Awaitable[Result]], stamp: object = None) -> Result:
        """Return the result of `compute`. An equal `stamp` means that it has not changed; None means unknown."""
        pending = self._pending
        if pending is None or (pending.done() and self._is_due(pending, stamp)):
            self._stamp = stamp
            pending = self._pending = asyncio.ensure_future(self._charged(compute))
        return await asyncio.shield(pending)

    def _is_due(self, pending: "asyncio.Future[Result]", stamp: object) -> bool:
        if pending.cancelled() or pending.exception() is not None:
            return True
        now = time.monotonic()
        self._budget, self._at = min(self._max_budget, self._budget + _CPU_SHARE * (now - self._at)), now
        return self._budget > 0 and (stamp is None or stamp != self._stamp)

    async def _charged(self, compute: Callable[[], Awaitable[Result]]) -> Result:
        """Compute and charge the thread's CPU time, with a limit, because other requests use the thread meanwhile."""
        started_at = time.thread_time()
        try:
            return await compute()
        finally:
            self._budget -= min(time.thread_time() - started_at, _MAX_SECONDS)
