"""Once a minute: check locations, and read reviews and posts of those whose owners receive events of them.

All processes together read once a minute, the locations that were not read for the longest time first, and send at most
`readings_per_minute` requests, so that most of the provider's quota is left to callers.
"""

import heapq

from profilesvc.domain.time import MINUTE, SECOND
from profilesvc.operations import checks
from profilesvc.operations.attempts import attempt, within
from profilesvc.services import access, posts, reviews
from profilesvc.services.context import Caller, Services
from profilesvc.services.rounds import run_alone
from profilesvc.storage import readings, watches
from profilesvc.storage.readings import Due

PAUSES = (60.0, 60.0)  # seconds before the first round, and between rounds
RETRY = 5 * MINUTE  # after a failure of the provider
_BETWEEN_ROUNDS = MINUTE - 5 * SECOND  # of all processes
_OWNERS = 500  # of one statement
_MARK = "read"


async def run_once(services: Services) -> None:
    """Read what is due, unless a process has done so in the last minute.

    Raises:
        ServiceError: SERVICE_UNAVAILABLE; the next round reads the rest.
    """
    if not services.settings.provider.readings_per_minute:
        return
    await run_alone(services, "readings", _round)


async def _may_start(services: Services) -> bool:
    now = services.clock.now()
    async with services.storage.write() as session:
        last = (await watches.marks(session)).get(_MARK, 0)
        if 0 <= now - last < _BETWEEN_ROUNDS:
            return False
        await watches.mark(session, **{_MARK: now})
    return True


async def _round(services: Services) -> None:
    if not await _may_start(services):
        return
    provider = services.settings.provider
    budget = provider.readings_per_minute
    before = services.clock.now() - provider.reading_interval_minutes * MINUTE
    due = await _due(services, before, budget)
    left = budget - await checks.run(services, max(budget // 3, budget - len(due)))

    async def read(found: Due, _left: int) -> tuple[int, bool]:
        at = services.clock.now()
        place = f"{found.what} of {found.location_name}"
        calls, has_failed = await attempt("readings", place, _read(services, found))
        services.storage.renew()
        async with services.storage.write() as session:
            await readings.attempted(session, found, before + RETRY if has_failed else at)
        return calls, has_failed

    await within(services, left, due, read)


async def _due(services: Services, before: int, limit: int) -> list[Due]:
    """Return what is due, of all owners."""
    found, after = list[Due](), 0
    while True:
        services.storage.renew()
        async with services.storage.read() as session:
            owners = await readings.subscribers(session, after, _OWNERS)
            for what in readings.TYPES:
                subscribed = [owner.owner_id for owner in owners if getattr(owner, what)]
                if subscribed:
                    found += await readings.due(session, subscribed, what, before, limit)
        found = heapq.nsmallest(limit, found)
        if len(owners) < _OWNERS:
            return found
        after = owners[-1].owner_id


async def _read(services: Services, found: Due) -> int:
    """Read the reviews or posts of a location, and return how many requests that took."""
    plan = services.plans[found.plan]
    if not getattr(plan, found.what):
        return 0
    owner = Caller(found.owner_id, plan, frozenset())
    location = await access.require_location(services, owner, found.location_name)
    if found.what == "reviews":
        return await reviews.read(services, location)
    await posts.reread(services, location)
    return 1
