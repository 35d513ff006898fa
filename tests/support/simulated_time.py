"""An event loop whose time passes only while every task waits, so that an hour of waiting takes milliseconds."""

import asyncio
import selectors
from collections.abc import Coroutine
from typing import Any, TypeVar

from profilesvc.domain.time import SECOND

Result = TypeVar("Result")
START = 1_800_000_000_000


class _Selector(selectors.SelectSelector):
    now = 0.0

    def select(self, timeout: float | None = None) -> Any:
        assert timeout is not None, "every task waits for another one"
        self.now += max(timeout, 0)
        return super().select(0)


class _Loop(asyncio.SelectorEventLoop):
    def __init__(self) -> None:
        self._simulated = _Selector()
        super().__init__(self._simulated)

    def time(self) -> float:
        return self._simulated.now


class LoopClock:
    """The clock of the simulation, in milliseconds since the epoch."""

    def now(self) -> int:
        return START + round(asyncio.get_running_loop().time() * SECOND)

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)


def simulate(work: Coroutine[Any, Any, Result]) -> Result:
    loop = _Loop()
    try:
        return loop.run_until_complete(work)
    finally:
        loop.close()
