"""Once a minute: find the keys whose state changed with time, and publish their events.

The last heartbeat has no index, because a heartbeat must stay an in-place update of one row. So the sweep reads all
live keys, in pages by their primary key, and one process at a time does it.

A fault of our own alarms no owner. After an outage, each site first has one interval to report again. While many
sites fall silent at the same time, or no site at all reports, the owners wait, and the log warns the operator.
"""

import itertools
import logging
from collections.abc import AsyncIterator
from datetime import timedelta

from profilesvc.domain.errors import ServiceError
from profilesvc.domain.time import FrozenClock, ShiftedClock
from profilesvc.operations.notify.alarms import OUTAGE, TOGETHER, Alarms
from profilesvc.services.context import Services
from profilesvc.services.jobs import run_alone
from profilesvc.services.notify import watching
from profilesvc.storage.notify import watches
from profilesvc.storage.notify.watches import FIRST, LAST, Page, Stale

log = logging.getLogger("profilesvc")
PAGE = 2_000  # keys of one statement, which takes far less than 100 ms
_TRANSACTION = 100  # keys of one owner


async def catch_up(services: Services) -> None:
    """Sweep after the clock was moved in development, as if the service had swept all the time."""
    async with services.storage.write() as session:
        await watches.mark(session, ended=services.clock.now())
    await run_alone(services, "sweep", run_once)


async def pass_time(services: Services, clock: FrozenClock | ShiftedClock, duration: timedelta) -> None:
    """Move the clock in development, with a sweep every half hour."""
    while duration > timedelta():
        step = min(duration, timedelta(minutes=30))
        duration -= step
        clock.advance(seconds=step.total_seconds())
        await catch_up(services)


async def release(services: Services) -> None:
    """Publish what is held back, for the operator who has looked at it."""
    async with services.storage.write() as session:
        await watches.mark(session, released=services.clock.now())


async def held_since(services: Services) -> int | None:
    """Return since when alarms are held back because many sites fell silent together, or None."""
    async with services.storage.read() as session:
        marks = await watches.marks(session)
    return marks.get("held") or None


async def run_once(services: Services) -> None:
    """Sweep.

    Raises:
        ServiceError: SERVICE_UNAVAILABLE; the next sweep does what is left.
    """
    async with services.storage.read() as session:
        alarms = Alarms(services.clock, await watches.marks(session))
    now = alarms.step()
    if alarms.is_first_sweep:
        async for page in _pages(services):
            async with services.storage.write() as session:  # none of the states before the events is news
                await watches.adopt(session, page, now, now - OUTAGE)
    pages = []
    async for page in _pages(services):
        async with services.storage.read() as session:
            pages.append((page, await watches.count(session, page, now, now - TOGETHER)))
        alarms.step()
    alarms.judge(watches.total(counted for _, counted in pages), now)
    for page, counted in pages:
        if counted.stale:
            await _publish(services, page, alarms, now)
    alarms.step()
    async with services.storage.write() as session:
        await watches.mark(session, **alarms.changes)


async def _pages(services: Services) -> AsyncIterator[Page]:
    after = FIRST
    while after != LAST:
        services.storage.renew()
        async with services.storage.read() as session:
            until = await watches.page_end(session, after, PAGE) or LAST
        yield after, until
        after = until


async def _publish(services: Services, page: Page, alarms: Alarms, now: int) -> None:
    """Publish what had changed at `now`, when the sweep started, the keys of each owner in transactions of their own.

    If the machine has paused since then, a site that could not report is not offline.
    """
    services.storage.renew()
    async with services.storage.read() as session:
        stale = await watches.stale(session, page, now, may_alarm=alarms.may_publish(now))
    for _, of_owner in itertools.groupby(stale, key=lambda key: key.owner_id):
        try:
            await _publish_of_owner(services, list(of_owner), alarms, now)
        except ServiceError:
            raise
        except Exception:  # a defect of one owner's keys must not silence all others
            log.exception("sweep: unexpected")


async def _publish_of_owner(services: Services, keys: list[Stale], alarms: Alarms, now: int) -> None:
    for start in range(0, len(keys), _TRANSACTION):
        services.storage.renew()
        async with services.storage.write() as session:
            for key in keys[start : start + _TRANSACTION]:
                await watching.update(services, session, key, now, may_alarm=alarms.may_publish(now))
        alarms.step()
