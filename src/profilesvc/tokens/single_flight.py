"""One reading of the provider at a time for one thing; whoever comes meanwhile waits for the same one."""

import asyncio
from collections.abc import Callable, Coroutine, Hashable
from typing import Any


class Refreshes:
    """The refreshes that run now. They go on when those who wait for them leave."""

    def __init__(self) -> None:
        self._running: dict[Hashable, asyncio.Task[None]] = {}

    async def run(self, what: Hashable, refresh: Callable[[], Coroutine[Any, Any, None]]) -> None:
        """Refresh, or join the refresh of the same thing that is under way; raises what it raises."""
        task = self._running.get(what)
        if task is None:
            task = asyncio.get_running_loop().create_task(refresh())
            self._running[what] = task
            task.add_done_callback(lambda done: self._ended(what, done))
        await asyncio.shield(task)

    async def ended(self, what: Hashable) -> None:
        """Wait for the refresh of a thing that is under way, whatever becomes of it."""
        if (task := self._running.get(what)) is not None:
            await asyncio.wait([task])

    def _ended(self, what: Hashable, task: asyncio.Task[None]) -> None:
        del self._running[what]
        if not task.cancelled():
            task.exception()  # seen, even when nobody waits any more

    def is_running(self, what: Hashable) -> bool:
        """Whether a refresh of the thing is under way, which another one would join."""
        return what in self._running

    async def drain(self) -> None:
        """Wait for what is still running."""
        await asyncio.gather(*self._running.values(), return_exceptions=True)
