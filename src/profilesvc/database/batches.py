"""Group commit: writes of one kind that arrive together share one transaction; each is answered after the commit."""

import asyncio
import contextvars
import time
from collections.abc import Callable
from typing import Generic, TypeVar

from profilesvc.database.engine import Storage
from profilesvc.database.postgres import BUSY_SECONDS
from profilesvc.database.unavailable import unavailable_as_refusal
from profilesvc.database.writers import Executions

Item = TypeVar("Item")
Waiting = tuple[Item, asyncio.Future[None], float]  # what is told, and until when (monotonic) it may be written
_LARGEST = 500
_LEAST_SECONDS = 0.1  # who has less left is refused: a batch that is given no more would fail for all that are in it
_TO_TELL_SECONDS = 0.5  # a batch gives up before those who wait for it: what was refused must not be written after all


class Batches(Generic[Item]):
    """While one batch is being committed the next one gathers; alone, an item waits for nobody.

    `work` tells what is to be written of some items, by the name of the database's dialect.
    """

    def __init__(self, storage: Storage, work: Callable[[str, list[Item]], list[Executions]]) -> None:
        self._storage, self._work = storage, work
        self._waiting: list[Waiting[Item]] = []
        self._writer: asyncio.Task[None] | None = None

    async def add(self, item: Item) -> None:
        """Return when the item is durable. SERVICE_UNAVAILABLE in the time that any write may take."""
        done = asyncio.get_running_loop().create_future()
        self._waiting.append((item, done, time.monotonic() + BUSY_SECONDS))
        if self._writer is None:
            # Its units have a time of their own, not what is left of the request that happened to come first.
            self._writer = asyncio.get_running_loop().create_task(self._write(), context=contextvars.Context())
        with unavailable_as_refusal():
            async with asyncio.timeout(BUSY_SECONDS + _TO_TELL_SECONDS):
                await done

    async def _write(self) -> None:
        while self._waiting:
            batch, self._waiting = self._waiting[:_LARGEST], self._waiting[_LARGEST:]
            if there := _in_time(batch):
                await self._commit(there)
        self._writer = None

    async def _commit(self, batch: list[Waiting[Item]]) -> None:
        failure: Exception | None = None
        left = min(until for *_, until in batch) - time.monotonic()
        try:
            await self._storage.commit(self._work(self._storage.dialect, [item for item, *_ in batch]), left)
        except Exception as error:  # whoever waits for the batch is told
            failure = error
        for _, done, _ in batch:
            if done.done():
                continue
            if failure is None:
                done.set_result(None)
            else:
                done.set_exception(failure)


def _in_time(batch: list[Waiting[Item]]) -> list[Waiting[Item]]:
    """Those who still wait and have time left; the others are refused, and do not cut the time of the rest."""
    soon = time.monotonic() + _LEAST_SECONDS
    for _, done, until in batch:
        if until < soon and not done.done():
            done.set_exception(TimeoutError())
    return [each for each in batch if not each[1].done()]
