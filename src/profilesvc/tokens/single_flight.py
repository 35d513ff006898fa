"""Run the same work at most once at a time; callers that ask meanwhile wait for the run in progress."""

import asyncio
from collections.abc import Callable, Coroutine, Hashable
from typing import Any, TypeVar

Result = TypeVar("Result")


class SingleFlight:
    """The runs in progress, by name. A run continues if the callers that wait for it are cancelled."""

    def __init__(self) -> None:
        self._running: dict[Hashable, asyncio.Task[Any]] = {}

    async def run(self, name: Hashable, work: Callable[[], Coroutine[object, None, Result]]) -> Result:
        """Start `work`, or wait for the run of the same name; return what it returns, and raise what it raises."""
        task = self._running.get(name)
        if task is None:
            task = asyncio.get_running_loop().create_task(work())
            self._running[name] = task
            task.add_done_callback(lambda done: self._ended(name, done))
        result: Result = await asyncio.shield(task)
        return result

    async def wait(self, name: Hashable) -> None:
        """Wait for the run of that name, if there is one, whether it succeeds or fails."""
        if (task := self._running.get(name)) is not None:
            await asyncio.wait([task])

    def _ended(self, name: Hashable, task: asyncio.Task[Any]) -> None:
        del self._running[name]
        if not task.cancelled():
            task.exception()  # mark it as retrieved, so that asyncio does not log it

    def is_running(self, name: Hashable) -> bool:
        """Return whether there is a run of that name to wait for."""
        return name in self._running

    async def drain(self) -> None:
        await asyncio.gather(*self._running.values(), return_exceptions=True)
