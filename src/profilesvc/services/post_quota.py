"""The monthly quota of posts: a post holds a place while it is sent, and uses it once the provider may have it."""

from typing import NamedTuple

from sqlalchemy.ext.asyncio import AsyncSession

from profilesvc.contract.errors import QUOTA_EXCEEDED, RATE_LIMITED
from profilesvc.contract.events import QuotaWarning
from profilesvc.domain.errors import ServiceError
from profilesvc.domain.problems import counted
from profilesvc.domain.time import SECOND, iso, month_start
from profilesvc.services import events
from profilesvc.services.context import AllowedLocation, Services
from profilesvc.services.idempotency import Claim, claim_period
from profilesvc.storage import post_usage

_WARNINGS = (100, 80)  # percent of the month's posts
_RETRY_SECONDS = 1


class Place(NamedTuple):
    """The month in which a post is counted, and whether it holds its place since this attempt."""

    month: int
    is_held: bool


async def hold(services: Services, location: AllowedLocation, now: int, claim: Claim | None, *, exists: bool) -> Place:
    """Count the post before it is sent, because the provider is never awaited inside a transaction (D-52).

    A post is counted once, whichever attempt creates it. One that exists is counted even if the quota is used up. The
    hold of a process that was killed ends by itself.

    Raises:
        ServiceError: QUOTA_EXCEEDED; RATE_LIMITED if the last places are held by posts that are still being sent.
    """
    month, limit = month_start(now), location.plan.monthly_posts
    if claim is not None and claim.note and (exists or claim.note == str(month)):
        return Place(int(claim.note), is_held=False)
    async with services.storage.write() as session:
        until = now + claim_period(services)
        if await post_usage.hold(session, location.owner_id, month, None if exists else limit, (now, until)):
            if claim is not None:
                await claim.write(session, str(month))
                if claim.note:  # of an earlier month, in which it was not created
                    await post_usage.settle(session, location.owner_id, int(claim.note), given_back=1)
            return Place(month, is_held=True)
        usage = await post_usage.find(session, location.owner_id, month)
    raise _refused(services, limit, usage.used, usage.held_at(now), now)


def _refused(services: Services, limit: int, used: int, held: int, now: int) -> ServiceError:
    if used - held < limit:
        message = "The last posts of this month are being sent. Retry after the time in Retry-After."
        return ServiceError(RATE_LIMITED, message, retry_after=_RETRY_SECONDS)
    services.metrics.limit_reached("posts-per-month")
    resets_at = month_start(now, 1)
    return ServiceError(
        QUOTA_EXCEEDED,
        f"The monthly limit of {counted(limit, 'post')} is used up. It resets on {iso(resets_at).partition('T')[0]}.",
        retry_after=-(-(resets_at - now) // SECOND),
        limit=limit,
        used=used,
        resets_at=iso(resets_at),
    )


async def use(services: Services, session: AsyncSession, location: AllowedLocation, place: Place) -> None:
    """End the hold, because the provider has the post or may have it.

    Publish once a month that 80 %, and that all of the quota is used; a place that is held is not used.
    """
    owner_id, month = location.owner_id, place.month
    if place.is_held:
        usage = await post_usage.settle(session, owner_id, month, released=1)
    else:
        usage = await post_usage.find(session, owner_id, month)
    used = usage.used - usage.held_at(services.clock.now())
    limit = location.plan.monthly_posts
    percent = next((percent for percent in _WARNINGS if used * 100 >= limit * percent), None)
    if percent is not None and await post_usage.warn(session, owner_id, month, percent):
        data = QuotaWarning(used=used, limit=limit, month=iso(month)[:7])
        events.publish(services, session, owner_id, events.new("quota.warning", data))


async def give_back(session: AsyncSession, location: AllowedLocation, place: Place) -> None:
    """Subtract a post that was counted but not created."""
    await post_usage.settle(session, location.owner_id, place.month, released=1 if place.is_held else 0, given_back=1)
