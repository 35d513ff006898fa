"""Files to download: made on threads with their own connections, so that they do not delay other requests (D-133)."""

import asyncio
import contextlib
import contextvars
import threading
from collections.abc import AsyncGenerator, Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import TYPE_CHECKING, Self

from profilesvc.contract.errors import RATE_LIMITED, SERVICE_UNAVAILABLE
from profilesvc.domain.errors import ServiceError

if TYPE_CHECKING:
    from profilesvc.services.context import Services

MOST = 3  # of all users, in a process
_PIECES = 2  # that may wait for a slow reader
_CHECK_SECONDS = 0.05
Make = Callable[["Services"], AsyncGenerator[bytes]]


class Exports:
    """The files that are being made in this process: one for each user, and a thread for each file."""

    def __init__(self) -> None:
        self.users: set[int] = set()
        self.threads = ThreadPoolExecutor(MOST, "export")


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


async def begin(services: "Services", owner_id: int, make: Make) -> Pieces:
    """Return a file of a user. `make` is called on a thread, with services that read from their own connections.

    Raises:
        ServiceError: RATE_LIMITED if a file of this user is being made; SERVICE_UNAVAILABLE if too many are.
    """
    pieces = _made(services, owner_id, make)
    return Pieces(pieces, await anext(pieces, b""))


async def _made(services: "Services", owner_id: int, make: Make) -> AsyncGenerator[bytes]:
    exports = services.exports
    if owner_id in exports.users:
        raise _second()
    if len(exports.users) >= MOST:
        raise ServiceError(SERVICE_UNAVAILABLE, "Too many files are being made. Try again in a minute.", retry_after=30)
    exports.users.add(owner_id)
    try:
        async with services.storage.leases.hold(f"export {owner_id}", patience=0) as is_free:
            if not is_free:
                raise _second()
            async with contextlib.aclosing(_from_thread(services, make)) as pieces:
                async for piece in pieces:
                    yield piece
    finally:
        exports.users.discard(owner_id)


def _second() -> ServiceError:
    message = "Another file of your account is being made. Try again when that download has ended."
    return ServiceError(RATE_LIMITED, message, retry_after=10)


async def _from_thread(services: "Services", make: Make) -> AsyncGenerator[bytes]:
    """Yield what `make` yields on a thread, which waits while the reader is slow."""
    await services.pending_events.write(services)
    await services.request_log.write(services)
    loop, queue, stopped = asyncio.get_running_loop(), asyncio.Queue[bytes | None](_PIECES), threading.Event()

    def put(piece: bytes) -> None:
        if stopped.is_set():
            raise ConnectionAbortedError
        asyncio.run_coroutine_threadsafe(queue.put(piece), loop).result()

    context = contextvars.copy_context()  # of the request: the language of its reader
    work = partial(context.run, lambda: asyncio.run(_run(services, make, put)))
    making = loop.run_in_executor(services.exports.threads, work)
    ending = loop.create_task(_end(making, queue))
    try:
        while (piece := await queue.get()) is not None:
            yield piece
        await making
    finally:
        stopped.set()
        while not ending.done():  # the thread may wait for room in the queue
            while not queue.empty():
                queue.get_nowait()
            await asyncio.wait({ending}, timeout=_CHECK_SECONDS)


async def _end(making: "asyncio.Future[None]", queue: "asyncio.Queue[bytes | None]") -> None:
    await asyncio.wait({making})
    making.exception()  # mark it as retrieved, because it is not awaited if the reader has left
    await queue.put(None)


async def _run(services: "Services", make: Make, put: Callable[[bytes], None]) -> None:
    """Make a file in the event loop of a thread. Everything that belongs to the other loop is replaced."""
    storage = services.storage.for_another_loop()
    try:
        async with contextlib.aclosing(make(services.in_another_loop(storage))) as pieces:
            async for piece in pieces:
                put(piece)
    finally:
        await storage.close()
