"""Group commit: writes of one kind that arrive together share one transaction; each returns after the commit."""

import asyncio
import contextvars
import time
from collections.abc import Callable
from typing import Generic, TypeVar

from profilesvc.database.engine import Storage
from profilesvc.database.postgres import BUSY_SECONDS
from profilesvc.database.unavailable import raising_unavailable
from profilesvc.database.writers import Executions

Item = TypeVar("Item")
Waiting = tuple[Item, asyncio.Future[None], float]  # the item, its future, and until when (monotonic) it may be written
_LARGEST = 500
_LEAST_SECONDS = 0.1  # an item with less time left is rejected, because a batch so short would fail for all its items
_GRACE_SECONDS = 0.5  # a batch times out before its callers do, because a rejected item must never be written


class Batches(Generic[Item]):
    """Collects the next batch while one is committed; `work` returns the statements for some items, by the dialect."""

    def __init__(self, storage: Storage, work: Callable[[str, list[Item]], list[Executions]]) -> None:
        self._storage, self._work = storage, work
        self._waiting: list[Waiting[Item]] = []
        self._writer: asyncio.Task[None] | None = None

    async def add(self, item: Item) -> None:
        """Return when the item is durable.

        Raises:
            ServiceError: SERVICE_UNAVAILABLE, within the time that any write may take.
        """
        done = asyncio.get_running_loop().create_future()
        self._waiting.append((item, done, time.monotonic() + BUSY_SECONDS))
        if self._writer is None:
            # An empty context gives the batch its own time, not the rest of the first request's.
            self._writer = asyncio.get_running_loop().create_task(self._write(), context=contextvars.Context())
        with raising_unavailable():
            async with asyncio.timeout(BUSY_SECONDS + _GRACE_SECONDS):
                await done

    async def _write(self) -> None:
        while self._waiting:
            batch, self._waiting = self._waiting[:_LARGEST], self._waiting[_LARGEST:]
            if items := _in_time(batch):
                await self._commit(items)
        self._writer = None

    async def _commit(self, batch: list[Waiting[Item]]) -> None:
        failure: Exception | None = None
        left = min(until for *_, until in batch) - time.monotonic()
        try:
            await self._storage.commit(self._work(self._storage.dialect, [item for item, *_ in batch]), left)
        except Exception as error:  # every caller of the batch gets it
            failure = error
        for _, done, _ in batch:
            if done.done():
                continue
            if failure is None:
                done.set_result(None)
            else:
                done.set_exception(failure)


def _in_time(batch: list[Waiting[Item]]) -> list[Waiting[Item]]:
    """Return the items whose callers wait; reject those with no time left, so that they do not shorten the batch."""
    soon = time.monotonic() + _LEAST_SECONDS
    for _, done, until in batch:
        if until < soon and not done.done():
            done.set_exception(TimeoutError())
    return [each for each in batch if not each[1].done()]
