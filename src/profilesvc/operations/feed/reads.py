"""Reads from the provider in the background, by the readings, the checks and the change feed."""

import logging
from collections.abc import Awaitable, Callable, Iterable
from typing import TypeVar

from profilesvc.domain.errors import ServiceError
from profilesvc.provider.port import ProviderError
from profilesvc.services import access, posts
from profilesvc.services.context import Caller, Services
from profilesvc.services.feed import profiles
from profilesvc.services.reviews import reviews
from profilesvc.storage.reviews.readings import What

log = logging.getLogger("profilesvc")
Place = TypeVar("Place")
_FAILURES = 3  # of the provider one after the other, which end a round


async def within(
    services: Services,
    budget: int,
    places: Iterable[Place],
    read: Callable[[Place, int], Awaitable[tuple[int, bool | None]]],
) -> int:
    """Read places until about `budget` calls are made or the provider fails repeatedly; return how many were made.

    `read` gets a place and the calls that are left. It returns how many it made, and whether the provider failed; None
    if the calls that were left did not suffice.
    """
    spent = failures = 0
    for place in places:
        if spent >= budget or failures == _FAILURES:
            break
        services.storage.renew()
        calls, has_failed = await read(place, budget - spent)
        spent += calls
        if has_failed is not None:
            failures = failures + 1 if has_failed else 0
    return spent


async def run_read(job: str, place: str, read: Awaitable[int]) -> tuple[int, bool]:
    """Await the read of a place; return how many calls it made, and whether the provider failed.

    A defect with one location must not keep all others from being read, so it is logged and does not end the round.

    Raises:
        ServiceError: SERVICE_UNAVAILABLE.
    """
    try:
        return await read, False
    except ProviderError as error:
        log.info("%s: %s: %s", job, place, error)
        return int(error.reached), error.retryable
    except ServiceError as error:
        if error.kind.status >= 500:
            raise
    except Exception:
        log.exception("%s: unexpected", job)
    return 0, False


async def read(services: Services, owner_id: int, plan: str, location_name: str, what: What) -> int:
    """Read a part of an owner's location, if the plan has it, and return how many calls that took.

    Raises:
        ProviderError: It could not be read.
        ServiceError: SERVICE_UNAVAILABLE, or NOT_FOUND if the location was disconnected meanwhile.
    """
    owner = Caller(owner_id, services.plans[plan], frozenset())
    if what != "profile" and not getattr(owner.plan, what):
        return 0
    location = await access.require_location(services, owner, location_name)
    if what == "profile":
        return await profiles.refresh(services, location)
    if what == "reviews":
        return await reviews.read(services, location)
    await posts.reread(services, location)
    return 1
