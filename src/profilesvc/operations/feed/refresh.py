"""Check every location that has a live key: its profile, its posts and its reviews, the longest unchecked first.

The readings (`operations/feed/readings.py`) call it each minute with a part of their budget. With the change feed,
profiles and reviews are only read if no notification caused it for a day. A check that runs out of budget goes on in
the next minute with what is left.
"""

from profilesvc.domain.time import DAY, MINUTE
from profilesvc.operations.feed.reads import read, run_read, within
from profilesvc.services.context import Services
from profilesvc.storage.reviews import readings
from profilesvc.storage.reviews.readings import Unchecked, What

_RETRY = 5 * MINUTE  # after a failure of the provider
_PARTS: tuple[What, ...] = ("profile", "posts", "reviews")


async def run(services: Services, budget: int) -> int:
    """Check what is due with at most about `budget` calls, and return how many were made.

    Raises:
        ServiceError: SERVICE_UNAVAILABLE; the next round checks the rest.
    """
    now, interval = services.clock.now(), services.settings.provider.check_interval_minutes * MINUTE
    async with services.storage.read() as session:
        locations = await readings.unchecked(session, now, now - interval, max(budget, 0))

    async def check(place: Unchecked, left: int) -> tuple[int, bool | None]:
        calls, has_failed = await _check(services, place, now - interval, left)
        if has_failed is not None:
            async with services.storage.write() as session:
                await readings.checked(session, place, now - interval + _RETRY if has_failed else now)
        return calls, has_failed

    return await within(services, budget, locations, check)


async def _check(services: Services, place: Unchecked, before: int, budget: int) -> tuple[int, bool | None]:
    """Return how many calls were made, and whether the provider failed; None if the budget did not suffice."""
    calls = 0
    for part in _due(services, place, before):
        if calls >= budget:
            return calls, None
        made, failed = await run_read("checks", f"{part} of {place.location_name}", _read(services, place, part))
        calls += made
        if failed:
            return calls, True
    return calls, False


def _due(services: Services, place: Unchecked, before: int) -> list[What]:
    """Return the parts that nothing else has read since `before`, or for a day if the feed announces changes."""
    announced = services.clock.now() - DAY if services.settings.notifications.enabled else before
    limits = {"profile": announced, "posts": before, "reviews": announced}
    plan = services.plans[place.plan]
    has = {"profile": True, "posts": place.is_verified and plan.posts, "reviews": place.is_verified and plan.reviews}
    return [part for part in _PARTS if has[part] and getattr(place, f"{part}_at") <= limits[part]]


async def _read(services: Services, place: Unchecked, part: What) -> int:
    calls = await read(services, place.owner_id, place.plan, place.location_name, part)
    if part == "reviews":
        async with services.storage.write() as session:
            await readings.note_read(session, place.owner_id, place.location_name, part, services.clock.now())
    return calls
