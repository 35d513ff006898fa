"""Answers that anybody may ask for and that cost more than to be said."""

import asyncio
import time
from collections.abc import Callable, Coroutine
from typing import Any, Generic, TypeVar

Result = TypeVar("Result")
_SHARE, _MOST_AT_ONCE = 0.05, 0.05


class Sparing(Generic[Result]):
    """A result that is computed again while that costs at most a twentieth of a processor; else the last one is used.

    Those who ask while it is made share it, and nothing is made while nothing has changed. `saved`: CPU seconds that
    may be spent at once, so that who asks now and then always gets a new one.
    """

    def __init__(self, saved: float) -> None:
        self._most = self._saved = saved
        self._at = time.monotonic()
        self._stamp: object = None
        self._making: asyncio.Future[Result] | None = None

    async def get(self, make: Callable[[], Coroutine[Any, Any, Result]], stamp: object = None) -> Result:
        """What `make` makes; `stamp` is the same as long as that would be, None where nobody can tell."""
        making = self._making
        if making is None or (making.done() and self._is_due(making, stamp)):
            self._stamp = stamp
            making = self._making = asyncio.ensure_future(self._paid(make))
        return await asyncio.shield(making)

    def _is_due(self, made: "asyncio.Future[Result]", stamp: object) -> bool:
        if made.cancelled() or made.exception() is not None:
            return True
        now = time.monotonic()
        self._saved, self._at = min(self._most, self._saved + _SHARE * (now - self._at)), now
        return self._saved > 0 and (stamp is None or stamp != self._stamp)

    async def _paid(self, make: Callable[[], Coroutine[Any, Any, Result]]) -> Result:
        """Others work meanwhile, and it must not be old for long: a bill beyond some milliseconds is not paid."""
        begun = time.thread_time()
        try:
            return await make()
        finally:
            self._saved -= min(time.thread_time() - begun, _MOST_AT_ONCE)
