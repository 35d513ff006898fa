"""Hold or release a user's keys by plan and unpaid invoices (D-27)."""

from typing import NamedTuple

from sqlalchemy.ext.asyncio import AsyncSession

from profilesvc.services import audit
from profilesvc.services.context import Services
from profilesvc.services.key_events import publish
from profilesvc.services.users import find_user
from profilesvc.storage import holds, keys, locations, users
from profilesvc.storage.holds import Which
from profilesvc.storage.users import UserState


class Effect(NamedTuple):
    """The client ids of keys that got a hold, and of keys that lost one."""

    held: list[str]
    lifted: list[str]


async def hold(services: Services, session: AsyncSession, owner_id: int, which: Which, reason: str) -> list[str]:
    """Put a hold on keys of a user, and return the client ids of those that did not have it."""
    changed = await holds.put(session, owner_id, which, reason, services.clock.now())
    ids = [key.id for key in changed]
    await audit.record_each(services, session, "key.deactivated", owner_id, ids, reason=reason)
    await publish(services, session, "key.deactivated", owner_id, ids)
    return [key.client_id for key in changed]


async def lift(services: Services, session: AsyncSession, owner_id: int, which: Which, reason: str) -> list[str]:
    """Lift a hold from keys of a user, and return the client ids of those that had it."""
    changed = await holds.lift(session, owner_id, which, reason)
    ids = [key.id for key in changed]
    await audit.record_each(services, session, "key.reactivated", owner_id, ids, reason=reason)
    await publish(services, session, "key.reactivated", owner_id, ids)
    return [key.client_id for key in changed]


async def covered(services: Services, session: AsyncSession, user: UserState) -> tuple[list[str], list[str]]:
    """Return the assigned locations of a user within the plan, first assigned first, and those beyond it."""
    assigned, limit = await locations.assigned(session, user.id), services.plans[user.plan].locations
    return assigned[:limit], assigned[limit:]


async def fit_plan(services: Services, session: AsyncSession, user: UserState) -> Effect:
    """Hold the keys of locations beyond the plan, and release those within it. The user must be locked."""
    within, beyond = await covered(services, session, user)
    held = await hold(services, session, user.id, holds.at_locations(beyond), "plan_downgrade")
    lifted = await lift(services, session, user.id, holds.at_locations(within), "plan_downgrade")
    return Effect(held, lifted)


async def billing_event(services: Services, email: str, paid: bool, version: int) -> Effect:
    """Apply a billing event: the user's last invoice is paid, or its payment failed.

    The version orders the events, so that one that is late or repeated has no effect. Keys that are created while an
    invoice is unpaid are held from the start.

    Raises:
        ServiceError: NOT_FOUND.
    """
    async with services.storage.write() as session:
        user = await find_user(session, email)
        if (await users.lock_user(session, user.id)).billing_version >= version:
            return Effect([], [])
        unpaid_since = None if paid else services.clock.now()
        await users.update_user(session, user.id, billing_version=version, unpaid_since=unpaid_since)
        which = holds.some_keys(await keys.advance_billing(session, user.id, holds.every_key(), version))
        if paid:
            return Effect([], await lift(services, session, user.id, which, "billing_issue"))
        return Effect(await hold(services, session, user.id, which, "billing_issue"), [])
