"""Check every location that has a live key: its profile, its posts and its reviews, the longest unchecked first.

The readings (`operations/readings.py`) call it each minute with a part of their budget. With the change feed, profiles
and reviews are only read if no notification caused it for a day. A check that runs out of budget goes on in the next
minute with what is left.
"""

import logging

from profilesvc.domain.errors import ServiceError
from profilesvc.domain.time import DAY, MINUTE
from profilesvc.provider.port import ProviderError
from profilesvc.services import access, checking, posts, reviews
from profilesvc.services.context import AllowedLocation, Caller, Services
from profilesvc.storage import readings
from profilesvc.storage.readings import Due, Unchecked, What

log = logging.getLogger("profilesvc")
_RETRY = 5 * MINUTE  # after a failure of the provider
_FAILURES = 3  # of the provider one after the other, which end a round
_PARTS: tuple[What, ...] = ("profile", "posts", "reviews")


async def run(services: Services, budget: int) -> int:
    """Check what is due with at most about `budget` calls, and return how many were made.

    Raises:
        ServiceError: SERVICE_UNAVAILABLE; the next round checks the rest.
    """
    now, interval = services.clock.now(), services.settings.provider.check_interval_minutes * MINUTE
    async with services.storage.read() as session:
        found = await readings.unchecked(session, now, now - interval, max(budget, 0))
    spent = failures = 0
    for place in found:
        if spent >= budget or failures == _FAILURES:
            break
        services.storage.renew()
        calls, problem = await _check(services, place, now - interval, budget - spent)
        spent += calls
        if problem is None:  # the budget is used up
            continue
        failures = failures + 1 if problem else 0
        at = now - interval + _RETRY if problem else now
        async with services.storage.write() as session:
            await readings.checked(session, place, at)
    return spent


async def _check(services: Services, place: Unchecked, before: int, budget: int) -> tuple[int, bool | None]:
    """Return how many calls were made, and whether the provider failed; None if the budget did not suffice."""
    calls = 0
    try:
        owner = Caller(place.owner_id, services.plans[place.plan], frozenset())
        location = await access.require_location(services, owner, place.location_name)
        for part in _due(services, location, place, before):
            if calls >= budget:
                return calls, None
            calls += 1
            calls += await _read(services, location, part) - 1
    except ProviderError as error:
        log.info("checks: %s: %s", place.location_name, error)
        return calls, error.retryable
    except ServiceError as error:
        if error.kind.status >= 500:
            raise
    except Exception:  # a defect with one location must not keep all others from being checked
        log.exception("checks: unexpected")
    return calls, False


def _due(services: Services, location: AllowedLocation, place: Unchecked, before: int) -> list[What]:
    """Return the parts that nothing else has read since `before`, or for a day if the feed announces changes."""
    announced = services.clock.now() - DAY if services.settings.notifications.enabled else before
    limits = {"profile": announced, "posts": before, "reviews": announced}
    has = {
        "profile": True,
        "posts": place.is_verified and location.plan.posts,
        "reviews": place.is_verified and location.plan.reviews,
    }
    return [part for part in _PARTS if has[part] and getattr(place, f"{part}_at") <= limits[part]]


async def _read(services: Services, location: AllowedLocation, part: What) -> int:
    if part == "profile":
        return await checking.profile(services, location)
    if part == "posts":
        await posts.reread(services, location)
        return 1
    calls = await reviews.read(services, location)
    done = Due(0, location.owner_id, location.name, "reviews", "")
    async with services.storage.write() as session:
        await readings.attempted(session, done, services.clock.now())
    return calls
