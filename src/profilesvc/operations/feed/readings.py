"""Once a minute: check locations, and read reviews and posts of those whose owners receive events of them.

All processes together read once a minute, the locations that were not read for the longest time first, and send at most
`readings_per_minute` requests, so that most of the provider's quota is left to callers.
"""

import heapq

from profilesvc.domain.time import MINUTE, SECOND
from profilesvc.operations.feed import reads, refresh
from profilesvc.services.context import Services
from profilesvc.storage.notify import watches
from profilesvc.storage.reviews import readings
from profilesvc.storage.reviews.readings import Due

RETRY = 5 * MINUTE  # after a failure of the provider
_BETWEEN_ROUNDS = MINUTE - 5 * SECOND  # of all processes
_OWNERS = 500  # of one statement
_MARK = "read"


async def run_once(services: Services) -> None:
    """Read what is due, unless a process has done so in the last minute.

    Raises:
        ServiceError: SERVICE_UNAVAILABLE; the next round reads the rest.
    """
    provider = services.settings.provider
    budget = provider.readings_per_minute
    if not budget or not await _may_start(services):
        return
    before = services.clock.now() - provider.reading_interval_minutes * MINUTE
    due = await _due(services, before, budget)
    left = budget - await refresh.run(services, max(budget // 3, budget - len(due)))

    async def read(due: Due, _left: int) -> tuple[int, bool]:
        at = services.clock.now()
        place = f"{due.what} of {due.location_name}"
        work = reads.read(services, due.owner_id, due.plan, due.location_name, due.what)
        calls, has_failed = await reads.run_read("readings", place, work)
        services.storage.renew()
        async with services.storage.write() as session:
            done = before + RETRY if has_failed else at
            await readings.note_read(session, due.owner_id, due.location_name, due.what, done)
        return calls, has_failed

    await reads.within(services, left, due, read)


async def _may_start(services: Services) -> bool:
    now = services.clock.now()
    async with services.storage.write() as session:
        last = (await watches.marks(session)).get(_MARK, 0)
        if 0 <= now - last < _BETWEEN_ROUNDS:
            return False
        await watches.mark(session, **{_MARK: now})
    return True


async def _due(services: Services, before: int, limit: int) -> list[Due]:
    rows, after = list[Due](), 0
    while True:
        services.storage.renew()
        async with services.storage.read() as session:
            owners = await readings.subscribers(session, after, _OWNERS)
            for what in readings.TYPES:
                subscribed = [owner.owner_id for owner in owners if getattr(owner, what)]
                if subscribed:
                    rows += await readings.due(session, subscribed, what, before, limit)
        rows = heapq.nsmallest(limit, rows)
        if len(owners) < _OWNERS:
            return rows
        after = owners[-1].owner_id
