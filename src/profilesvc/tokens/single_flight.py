"""Run one read of a thing at a time; callers that ask for it meanwhile wait for the same read."""

import asyncio
from collections.abc import Callable, Coroutine, Hashable
from typing import Any


class Refreshes:
    """The reads that run now. They go on if the callers that wait for them are cancelled."""

    def __init__(self) -> None:
        self._running: dict[Hashable, asyncio.Task[None]] = {}

    async def run(self, what: Hashable, refresh: Callable[[], Coroutine[Any, Any, None]]) -> None:
        """Start a read, or wait for the read of the same thing that runs already; raise what it raises."""
        task = self._running.get(what)
        if task is None:
            task = asyncio.get_running_loop().create_task(refresh())
            self._running[what] = task
            task.add_done_callback(lambda done: self._ended(what, done))
        await asyncio.shield(task)

    async def ended(self, what: Hashable) -> None:
        """Wait until the running read of a thing has ended or failed."""
        if (task := self._running.get(what)) is not None:
            await asyncio.wait([task])

    def _ended(self, what: Hashable, task: asyncio.Task[None]) -> None:
        del self._running[what]
        if not task.cancelled():
            task.exception()  # retrieved, so that asyncio does not log it if no caller waits

    def is_running(self, what: Hashable) -> bool:
        """Return whether a read of the thing runs now."""
        return what in self._running

    async def drain(self) -> None:
        """Wait for all running reads."""
        await asyncio.gather(*self._running.values(), return_exceptions=True)
