"""Counts of keys and connections for the operator's metrics.

A job counts a sample of bounded size once a minute, and requests read the stored counts.
"""

from profilesvc.domain.heartbeats import OFFLINE_AFTER, ONLINE_FOR
from profilesvc.domain.time import SECOND
from profilesvc.services.context import Services
from profilesvc.storage.upkeep import census as stored
from profilesvc.telemetry.metrics import exposition_of

_RECENT = 30 * SECOND


async def exposition(services: Services) -> bytes:
    """Return the last counts in Prometheus' text format.

    Raises:
        ServiceError: SERVICE_UNAVAILABLE.
    """
    async with services.storage.read(may_be_old=True) as session:
        counts, counted_at = await stored.latest(session)
    return b"" if counted_at is None else exposition_of(counts, counted_at / SECOND)


async def renew(services: Services) -> None:
    """Count, unless another process has just done so.

    Raises:
        ServiceError: SERVICE_UNAVAILABLE.
    """
    async with services.storage.read() as session:
        _, counted_at = await stored.latest(session)
    if counted_at is None or abs(services.clock.now() - counted_at) > _RECENT:
        await count(services)


async def count(services: Services) -> None:
    """Count and store the result. Connections are counted for live keys only.

    Raises:
        ServiceError: SERVICE_UNAVAILABLE.
    """
    now = services.clock.now()
    services.storage.renew()
    async with services.storage.read(may_be_old=True) as session:
        counts = await stored.by_state(session, now, now - ONLINE_FOR, now - OFFLINE_AFTER)
    for more in services.counted:
        counts |= await more(services)
    async with services.storage.write() as session:
        await stored.store(session, counts, now)
