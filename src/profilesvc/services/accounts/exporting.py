"""Files to download: made on threads with their own connections, so that they do not delay other requests (D-133)."""

import asyncio
import contextlib
import contextvars
import threading
from collections.abc import AsyncGenerator, Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from typing import Self

from profilesvc.contract.errors import RATE_LIMITED, SERVICE_UNAVAILABLE
from profilesvc.domain.errors import ServiceError
from profilesvc.services.audit import PendingEvents
from profilesvc.services.context import Services
from profilesvc.services.insight.request_log import RequestLog

MOST = 3  # of all users, in a process
_PIECES = 2  # that may wait for a slow reader
_CHECK_SECONDS = 0.05
PATIENCE_SECONDS = 60.0  # for which a reader may keep a thread waiting that another user needs
Make = Callable[[Services], AsyncGenerator[bytes]]


@dataclass(eq=False)
class _Making:
    """A file that is being made, and for how long its thread has waited for the reader."""

    queue: "asyncio.Queue[bytes | None]" = field(default_factory=lambda: asyncio.Queue(_PIECES))
    stopped: threading.Event = field(default_factory=threading.Event)
    waited: float = 0.0
    read_at: float | None = None  # when the reader got the last piece, until it requests the next one

    def waits(self, now: float) -> float:
        """Return for how many seconds the thread has waited."""
        return self.waited + (0.0 if self.read_at is None else now - self.read_at)

    def stop(self) -> None:
        """End the thread at its next piece; it may wait for room in the queue."""
        self.stopped.set()
        while not self.queue.empty():
            self.queue.get_nowait()


class Exports:
    """The files that are being made in this process: one for each user, and a thread for each file."""

    def __init__(self) -> None:
        self.users: dict[int, _Making] = {}
        self.threads = ThreadPoolExecutor(MOST, "export")

    def has_room(self) -> bool:
        """Return whether another file can be made. The slowest reader loses its thread if it has had its time."""
        if len(self.users) < MOST:
            return True
        now = asyncio.get_running_loop().time()
        user = max(self.users, key=lambda each: self.users[each].waits(now))
        if self.users[user].waits(now) < PATIENCE_SECONDS:
            return False
        self.users.pop(user).stop()
        return True


class Pieces:
    """A file that has started: the first piece is made, so that a failure before it is an error page."""

    def __init__(self, pieces: AsyncGenerator[bytes], first: bytes) -> None:
        self._pieces, self._first = pieces, first

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> bytes:
        first, self._first = self._first, b""
        return first or await anext(self._pieces)

    async def aclose(self) -> None:
        """Stop making the file."""
        await self._pieces.aclose()


async def begin(services: Services, owner_id: int, make: Make) -> Pieces:
    """Return a file of a user. `make` is called on a thread, with services that read from their own connections.

    Raises:
        ServiceError: RATE_LIMITED if a file of this user is being made; SERVICE_UNAVAILABLE if too many are.
    """
    pieces = _made(services, owner_id, make)
    return Pieces(pieces, await anext(pieces, b""))


async def _made(services: Services, owner_id: int, make: Make) -> AsyncGenerator[bytes]:
    exports = services.part(Exports)
    if owner_id in exports.users:
        raise _second()
    if not exports.has_room():
        raise ServiceError(SERVICE_UNAVAILABLE, "Too many files are being made. Try again in a minute.", retry_after=30)
    making = exports.users[owner_id] = _Making()
    try:
        async with services.storage.leases.hold(f"export {owner_id}", patience=0) as is_free:
            if not is_free:
                raise _second()
            async with contextlib.aclosing(_from_thread(services, make, making)) as pieces:
                async for piece in pieces:
                    yield piece
    finally:
        if exports.users.get(owner_id) is making:
            del exports.users[owner_id]


def _second() -> ServiceError:
    message = "Another file of your account is being made. Try again when that download has ended."
    return ServiceError(RATE_LIMITED, message, retry_after=10)


async def _from_thread(services: Services, make: Make, making: _Making) -> AsyncGenerator[bytes]:
    """Yield what `make` yields on a thread, which waits while the reader is slow."""
    await services.part(PendingEvents).write(services)
    await services.part(RequestLog).write(services)
    loop, queue = asyncio.get_running_loop(), making.queue

    def put(piece: bytes) -> None:
        if making.stopped.is_set():
            raise ConnectionAbortedError
        asyncio.run_coroutine_threadsafe(queue.put(piece), loop).result()

    context = contextvars.copy_context()  # of the request: the language of its reader
    work = partial(context.run, lambda: asyncio.run(_run(services, make, put)))
    running = loop.run_in_executor(services.part(Exports).threads, work)
    ending = loop.create_task(_end(running, queue))
    try:
        while (piece := await queue.get()) is not None:
            making.read_at = loop.time()
            yield piece
            making.waited, making.read_at = making.waits(loop.time()), None
            if making.stopped.is_set():
                raise ServiceError(SERVICE_UNAVAILABLE, "The file was read too slowly, and other users waited.")
        await running
    finally:
        while not ending.done():
            making.stop()
            await asyncio.wait({ending}, timeout=_CHECK_SECONDS)


async def _end(running: "asyncio.Future[None]", queue: "asyncio.Queue[bytes | None]") -> None:
    await asyncio.wait({running})
    running.exception()  # mark it as retrieved, because it is not awaited if the reader has left
    await queue.put(None)


async def _run(services: Services, make: Make, put: Callable[[bytes], None]) -> None:
    """Make a file in the event loop of a thread. Everything that belongs to the other loop is replaced."""
    storage = services.storage.for_another_loop()
    try:
        async with contextlib.aclosing(make(services.in_another_loop(storage))) as pieces:
            async for piece in pieces:
                put(piece)
    finally:
        await storage.close()
