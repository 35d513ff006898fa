"""Work that every process repeats in the background, and work that one process does at a time."""

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping

from profilesvc.domain import request
from profilesvc.domain.errors import ServiceError
from profilesvc.services.context import Services

log = logging.getLogger("profilesvc")
Work = Callable[[Services], Awaitable[None]]
Pauses = tuple[float, float]  # seconds before the first round, and between rounds


async def run_alone(services: Services, lease: str, work: Work) -> None:
    """Do the work, unless another process is doing it.

    Raises:
        ServiceError: SERVICE_UNAVAILABLE.
    """
    async with services.storage.leases.hold(lease, patience=0) as was_free:
        if was_free:
            await work(services)


async def run(
    services: Services, what: str, stopped: Callable[[float], Awaitable[bool]], work: Work, pauses: Pauses
) -> None:
    """Run a round after the first pause and then periodically. The next round also does the work of a failed one.

    `what` names the work in the log. `stopped` waits for at most the given seconds and returns True to end the rounds.
    """
    pause, then = pauses
    while not await stopped(pause):
        pause = then
        try:
            with request.in_background():
                await work(services)
        except ServiceError as error:
            services.failed_in_background(what, error)
        except Exception:  # a defect must not end the rounds
            log.exception("%s: unexpected", what)


@contextlib.asynccontextmanager
async def in_background(services: Services, what: str, works: Mapping[Work, Pauses]) -> AsyncIterator[None]:
    """Run rounds as long as the block runs, and finish the current ones."""
    stop = asyncio.Event()

    async def stopped(seconds: float) -> bool:
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(stop.wait(), seconds)
        return stop.is_set()

    running = asyncio.gather(*(run(services, what, stopped, work, pauses) for work, pauses in works.items()))
    try:
        yield
    finally:
        stop.set()
        await running
