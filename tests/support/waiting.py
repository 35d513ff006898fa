"""Waiting for what happens elsewhere, with limits that follow the load of the machine.

A test has no loop with a pause of its own, and reads no clock to judge how long something took (tests/test_waits.py).
"""

import asyncio
import concurrent.futures
import contextlib
import inspect
import os
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from typing import Any, NoReturn, TypeVar, overload

Found = TypeVar("Found")
What = str | Callable[[], str]
# pytest-timeout ends a test after 120 s and shows stacks, but not what the test waited for.
MOST_SECONDS = 100.0
_CORES = os.cpu_count() or 1
_PROCESSES = int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1"))


def load() -> float:
    """Return how many processes share a core: at least 1. The system's average follows only after a minute."""
    return max(1.0, os.getloadavg()[0] / _CORES, _PROCESSES / _CORES)


def patience(seconds: float) -> float:
    """Return the limit of a wait that takes at most so many seconds on a quiet machine."""
    return max(seconds, min(seconds * load(), MOST_SECONDS))


def until(condition: Callable[[], Found], what: What, seconds: float = 30, every: float = 0.02) -> Found:
    """Return the first true result of a condition; `what` completes "waited for …".

    Raises:
        AssertionError: the limit is over.
    """
    begun = time.monotonic()
    while not (found := condition()):
        _check(begun, seconds, what, found)
        time.sleep(every)
    return found


@overload
async def until_async(
    condition: Callable[[], Awaitable[Found]], what: What, seconds: float = 30, every: float = 0.02
) -> Found: ...


@overload
async def until_async(
    condition: Callable[[], Found], what: What, seconds: float = 30, every: float = 0.02
) -> Found: ...


async def until_async(condition: Callable[[], Any], what: What, seconds: float = 30, every: float = 0.02) -> Any:
    """Do the same on the event loop; the condition may be a coroutine function."""
    begun = time.monotonic()
    while not (found := await _result(condition())):
        _check(begun, seconds, what, found)
        await asyncio.sleep(every)
    return found


@contextlib.asynccontextmanager
async def deadline(seconds: float, what: str) -> AsyncIterator[None]:
    """Cancel the block when the limit is over.

    Raises:
        AssertionError: it was cancelled.
    """
    begun = time.monotonic()
    try:
        async with asyncio.timeout(patience(seconds)) as limit:
            yield
    except TimeoutError:
        if limit.expired():
            _fail(begun, what)
        raise


@contextlib.contextmanager
def in_time(seconds: float, what: str) -> Iterator[None]:
    """Fail if a block that blocks the thread took longer than the limit. pytest-timeout ends one that never returns."""
    begun = time.monotonic()
    yield
    _check(begun, seconds, what)


def result_of(future: "concurrent.futures.Future[Found]", what: str, seconds: float = 30) -> Found:
    """Return the result of another thread."""
    until(future.done, what, seconds, every=0.005)
    return future.result()


async def turns(count: int) -> None:
    """Give the other tasks of the event loop so many turns."""
    for _ in range(count):
        await asyncio.sleep(0)


async def _result(found: Any) -> Any:
    return await found if inspect.isawaitable(found) else found


def _check(begun: float, seconds: float, what: What, found: object = None) -> None:
    if time.monotonic() - begun > patience(seconds):
        _fail(begun, what, "" if found is None else f"; the last result: {found!r}")


def _fail(begun: float, what: What, more: str = "") -> NoReturn:
    text = what if isinstance(what, str) else what()
    raise AssertionError(
        f"waited {time.monotonic() - begun:.1f} s, at a load of {load():.1f} for each core, for {text}{more}"
    )
