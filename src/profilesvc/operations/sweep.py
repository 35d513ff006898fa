"""Once a minute: find the keys whose state changed with time, and publish their events.

The last heartbeat has no index, because a heartbeat must stay an in-place update of one row. So the sweep reads all
live keys, in pages by their primary key, and one process at a time does it.

A fault of our own alarms no owner. After an outage, each site first has one interval to report again. While many
sites fall silent at the same time, the log warns the operator, and the owners wait.
"""

import itertools
import logging
from collections.abc import AsyncIterator

from profilesvc.domain.connection import NEXT_HEARTBEAT_SECONDS
from profilesvc.domain.errors import ServiceError
from profilesvc.domain.time import DAY, HOUR, MINUTE, SECOND
from profilesvc.services import watching
from profilesvc.services.context import Services
from profilesvc.storage import watches
from profilesvc.storage.watches import FIRST, Counted, Page, Place, Stale

log = logging.getLogger("profilesvc")
PAUSES = (60.0, 60.0)  # seconds before the first sweep, and between sweeps
PAGE = 2_000  # keys of one statement, which takes far less than 100 ms
OUTAGE = 5 * MINUTE  # without a sweep: the service, its database or its machine did not run
TO_REPORT = NEXT_HEARTBEAT_SECONDS * SECOND + 5 * MINUTE  # one full interval of a site, and its delay
TOGETHER = 10 * MINUTE
MANY_PERCENT, MANY = 20, 20  # of the live keys, and at least as many
HELD_FOR, RELEASED_FOR = DAY, HOUR
_TRANSACTION = 100  # keys of one owner


async def run_once(services: Services) -> None:
    """Sweep, unless another process does.

    Raises:
        ServiceError: SERVICE_UNAVAILABLE; the next sweep does what is left.
    """
    async with services.storage.leases.hold("sweep", patience=0) as was_free:
        if was_free:
            await _sweep(services)


async def catch_up(services: Services) -> None:
    """Sweep after the clock was moved in development, as if the service had swept all the time."""
    async with services.storage.write() as session:
        await watches.mark(session, ended=services.clock.now())
    await run_once(services)


async def release(services: Services) -> None:
    """Publish what is held back, for the operator who has looked at it."""
    async with services.storage.write() as session:
        await watches.mark(session, released=services.clock.now())


async def held_since(services: Services) -> int | None:
    """Return since when alarms are held back because many sites fell silent together, or None."""
    async with services.storage.read() as session:
        marks = await watches.marks(session)
    return marks.get("held") or None


async def _sweep(services: Services) -> None:
    now = services.clock.now()
    async with services.storage.read() as session:
        marks = await watches.marks(session)
    if now - marks.get("ended", now) > OUTAGE:
        log.warning("sweep: none for %d s; sites have one interval to report", (now - marks["ended"]) // SECOND)
        marks["resumed"] = now
    pages = [(page, await _count(services, page, now)) async for page in _pages(services)]
    found = Counted(*(sum(column) for column in zip(*(counted for _, counted in pages), strict=True)))
    marks["held"] = _held(marks, found, now)
    has_settled = now - marks.get("resumed", 0) > TO_REPORT
    for page, counted in pages:
        if counted.stale:
            await _publish(services, page, may_alarm=has_settled and not marks["held"])
    async with services.storage.write() as session:  # not `released`: the operator may have released in the meantime
        await watches.mark(session, held=marks["held"], resumed=marks.get("resumed", 0), ended=services.clock.now())


def _held(marks: dict[str, int], found: Counted, now: int) -> int:
    """Return since when alarms are held back, 0 if they are not."""
    since, released = marks.get("held", 0), marks.get("released", 0)
    if since:
        if released >= since or now - since > HELD_FOR or not _is_many(found.waiting, found.live):
            log.warning("sweep: alarms are no longer held back")
            return 0
        return since
    if not _is_many(found.silent, found.live) or now - released <= RELEASED_FOR:
        return 0
    log.error(
        "sweep: %d of %d sites fell silent within ten minutes; their owners hear of it only after the operator has run "
        "`profilesvc alerts release`, most sites are back, or a day has passed",
        found.silent,
        found.live,
    )
    return now


def _is_many(count: int, live: int) -> bool:
    return count >= MANY and count * 100 > live * MANY_PERCENT


async def _pages(services: Services) -> AsyncIterator[Page]:
    after: Place | None = FIRST
    while after is not None:
        services.storage.renew()
        async with services.storage.read() as session:
            until = await watches.page_end(session, after, PAGE)
        yield after, until
        after = until


async def _count(services: Services, page: Page, now: int) -> Counted:
    async with services.storage.read() as session:
        return await watches.count(session, page, now, now - TOGETHER)


async def _publish(services: Services, page: Page, *, may_alarm: bool) -> None:
    """Publish what changed, the keys of each owner in transactions of their own."""
    services.storage.renew()
    async with services.storage.read() as session:
        stale = await watches.stale(session, page, services.clock.now(), may_alarm=may_alarm)
    for _, of_owner in itertools.groupby(stale, key=lambda key: key.owner_id):
        try:
            await _publish_of_owner(services, list(of_owner), may_alarm=may_alarm)
        except ServiceError:
            raise
        except Exception:  # a defect of one owner's keys must not silence all others
            log.exception("sweep: unexpected")


async def _publish_of_owner(services: Services, keys: list[Stale], *, may_alarm: bool) -> None:
    for start in range(0, len(keys), _TRANSACTION):
        services.storage.renew()
        async with services.storage.write() as session:
            for key in keys[start : start + _TRANSACTION]:
                await watching.update(services, session, key, may_alarm=may_alarm)
