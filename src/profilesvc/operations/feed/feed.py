"""Every few seconds: read again what the provider's change feed has named.

One process at a time reads, at most as much as `NOTIFICATIONS__READS_PER_MINUTE` allows: each round waits until the
time of the calls of the round before it has passed. However many notifications name a location, it is read once.
"""

from profilesvc.domain.time import MINUTE
from profilesvc.operations.feed.reads import read, run_read, within
from profilesvc.services.context import Services
from profilesvc.storage import feed, users
from profilesvc.storage.feed import Changed
from profilesvc.storage.notify import watches

_PER_MINUTE = 12  # rounds
_RETRY = MINUTE  # after a failure of the provider
_LONGEST = 10 * MINUTE  # for which a round is paid for; a later mark is from before the clock was set back
_MARK = "feed"


async def run_once(services: Services) -> None:
    """Read what is due, unless the calls of the last round are not paid for.

    Raises:
        ServiceError: SERVICE_UNAVAILABLE; the next round reads the rest.
    """
    if not services.settings.notifications.enabled:
        return
    limit, started = services.settings.notifications.reads_per_minute, services.clock.now()
    most = limit // _PER_MINUTE
    locations = await _due(services, started, most)
    spent = await within(services, most, locations, lambda changed, _left: _read(services, changed))
    if spent > most:
        async with services.storage.write() as session:
            await watches.mark(session, **{_MARK: started + min(spent * MINUTE // limit, _LONGEST)})


async def _due(services: Services, now: int, limit: int) -> list[Changed]:
    """Return what this round reads, and reserve its calls; nothing while those of the last round are not paid for."""
    async with services.storage.read() as session:
        locations = await feed.due(session, now, limit)
    if not locations:
        return []
    async with services.storage.write() as session:
        until = (await watches.marks(session)).get(_MARK, 0)
        if 0 < until - now <= _LONGEST:  # a clock may be set back
            return []
        await watches.mark(session, **{_MARK: now + MINUTE // _PER_MINUTE})
    return locations


async def _read(services: Services, changed: Changed) -> tuple[int, bool]:
    """Read what has changed; return how many calls that took, and whether the provider failed."""
    place = f"{changed.what} of {changed.location_name}"
    calls, failed = await run_read("feed", place, _calls(services, changed))
    services.storage.renew()
    async with services.storage.write() as session:
        if failed:
            await feed.postpone(session, changed, services.clock.now() + _RETRY)
        else:
            await feed.done(session, changed)
    return calls, failed


async def _calls(services: Services, changed: Changed) -> int:
    async with services.storage.read() as session:
        user = await users.user(session, changed.owner_id)
    if user is None or user.suspended_at is not None:
        return 0
    return await read(services, user.id, user.plan, changed.location_name, changed.what)
