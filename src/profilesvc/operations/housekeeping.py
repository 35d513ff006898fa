"""Periodic work: record expired keys, delete old rows, renew the counts."""

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator, Awaitable, Callable

from profilesvc.domain.connection import HISTORY
from profilesvc.domain.errors import ServiceError
from profilesvc.domain.time import HOUR
from profilesvc.operations import counts
from profilesvc.services import audit, idempotency
from profilesvc.services.context import Services
from profilesvc.storage import housekeeping
from profilesvc.storage.housekeeping import Kind

log = logging.getLogger("profilesvc")
PAUSES = (60.0, 3600.0)  # seconds before the first round, and between rounds
COUNTS_PAUSES = (60.0, 60.0)
Work = Callable[[Services], Awaitable[None]]
# How long rows are kept, in milliseconds after the time that they contain.
KEPT: dict[Kind, int] = {
    "audit": audit.KEPT,
    "syncs": audit.KEPT,
    "idempotency": 2 * idempotency.KEPT,
    "contacts": HISTORY,
    "revocations": HOUR,  # longer than necessary, because a clock can be set back
    "families": HOUR,
    "exchanges": HOUR,
    "secrets": HOUR,
    "key_domains": HOUR,
    "leases": HOUR,
}


async def run_round(services: Services) -> None:
    """Run one round. Every process runs rounds; one deletes at a time, and the rest may run twice without effect."""
    await audit.record_expired(services)
    async with services.storage.leases.hold("housekeeping", patience=0) as was_free:
        if was_free:
            await _delete_old(services)


async def _delete_old(services: Services) -> None:
    now = services.clock.now()
    for what, kept in KEPT.items():
        more = True
        while more:
            services.storage.renew()
            async with services.storage.write() as session:
                more = await housekeeping.prune(session, what, now - kept)


async def run(
    services: Services,
    stopped: Callable[[float], Awaitable[bool]],
    work: Work = run_round,
    pauses: tuple[float, float] = PAUSES,
) -> None:
    """Run a round soon after the start and then periodically. The next round also does the work of a failed one.

    `stopped` waits for at most the given seconds and returns True to end the rounds.
    """
    pause, then = pauses
    while not await stopped(pause):
        pause = then
        try:
            await work(services)
        except ServiceError as error:
            log.warning("housekeeping: %s", error.kind.code)
        except Exception:  # a defect must not end the rounds
            log.exception("housekeeping: unexpected")


@contextlib.asynccontextmanager
async def in_background(services: Services) -> AsyncIterator[None]:
    """Run rounds as long as the block runs, and finish the current one."""
    stop = asyncio.Event()

    async def stopped(seconds: float) -> bool:
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(stop.wait(), seconds)
        return stop.is_set()

    rounds = asyncio.gather(run(services, stopped), run(services, stopped, counts.renew, COUNTS_PAUSES))
    try:
        yield
    finally:
        stop.set()
        await rounds
