"""List, deactivate, reactivate and revoke API keys."""

from typing import NamedTuple

from sqlalchemy.ext.asyncio import AsyncSession

from profilesvc.contract.common import MAX_LIMIT
from profilesvc.contract.errors import CONFLICT, NOT_FOUND
from profilesvc.contract.keys import (
    BusinessEntry,
    BusinessList,
    KeyDetails,
    KeyList,
    KeyListQuery,
    KeyRevoked,
    KeyRolled,
    KeyStanding,
)
from profilesvc.domain.errors import ServiceError
from profilesvc.domain.time import iso
from profilesvc.services import audit, page_tokens
from profilesvc.services.access import missing, own_key
from profilesvc.services.context import Caller, Services, deactivated
from profilesvc.services.credentials import renew
from profilesvc.services.holds import covered, hold, lift
from profilesvc.services.key_events import details, entry, publish
from profilesvc.services.locations import assign_within_plan
from profilesvc.storage import holds, keys, locations, users
from profilesvc.storage.keys import KeyState


class Deactivated(NamedTuple):
    """The state of a key with a new hold; `changed` is False if it had the hold, or if the billing event was late."""

    standing: KeyStanding
    changed: bool


class Reactivated(NamedTuple):
    """The state of a key, the holds that were lifted, those that remain, and the new secret if there is one."""

    standing: KeyStanding
    lifted: list[str]
    remaining: list[str]
    rolled: KeyRolled | None


async def list_all(services: Services, caller: Caller | None, query: KeyListQuery) -> KeyList:
    """Return a page of the caller's keys, newest first (D-24). The operator (None) gets those of all users.

    Live keys are returned at once unless the caller sets a limit, because the plan limits their number.
    """
    now, revoked = services.clock.now(), query.include_revoked == "true"
    owner_id = None if caller is None else caller.owner_id
    before = None if query.before is None else page_tokens.position(services, owner_id, "keys", query.before)[0]
    limit = None
    if revoked or query.limit is not None or before is not None:
        limit = query.limit or MAX_LIMIT
    async with services.storage.read() as session:
        rows = await keys.listing(session, owner_id, None if revoked else now, before, limit and limit + 1)
    page = rows[:limit]
    return KeyList(
        credentials=[entry(row, now) for row in page],
        next_before=page_tokens.cursor(services, owner_id, "keys", page[-1].id) if len(rows) > len(page) else None,
    )


async def get(services: Services, caller: Caller, client_id: str) -> KeyDetails:
    """Return a key of the caller, live or not.

    Raises:
        ServiceError: NOT_FOUND.
    """
    now = services.clock.now()
    async with services.storage.read() as session:
        row = await keys.listed(session, caller.owner_id, client_id)
        if row is None:
            raise missing("API key")
        return details(row, await keys.retiring_until(session, caller.owner_id, row.id, now), now)


async def revoke(services: Services, caller: Caller | None, client_id: str) -> KeyRevoked:
    """Revoke a key permanently. Its tokens are invalid from this response on (D-25).

    The operator (None) may revoke every key.

    Raises:
        ServiceError: NOT_FOUND.
    """
    now = services.clock.now()
    async with services.storage.write() as session:
        key = await own_key(services, session, caller, client_id)
        await keys.revoke(session, key, now)
        await audit.record(services, session, "key.revoked", key.owner_id, key.id)
        await publish(services, session, "key.revoked", key.owner_id, [key.id])
    return KeyRevoked(client_id=client_id, revoked_at=iso(now))


async def businesses(services: Services, caller: Caller) -> BusinessList:
    async with services.storage.read() as session:
        rows = await users.list_businesses(session, caller.owner_id)
    return BusinessList(businesses=[BusinessEntry(id=row[0], name=row[2]) for row in rows])


async def deactivate(
    services: Services, client_id: str, reason: str, *, caller: Caller | None = None, version: int | None = None
) -> Deactivated:
    """Put a hold on a key. Repeating it has no effect (D-27). The operator (None) may deactivate every key.

    `version` orders billing events, so that a late one has no effect. A security concern ends all tokens permanently.

    Raises:
        ServiceError: NOT_FOUND.
    """
    async with services.storage.write() as session:
        key = await own_key(services, session, caller, client_id)
        changed = False
        if version is None or await keys.advance_billing(session, key.owner_id, holds.one_key(key.id), version):
            changed = bool(await hold(services, session, key.owner_id, holds.one_key(key.id), reason))
        if changed and reason == "security_concern":
            await keys.raise_epoch(session, key.owner_id, key.id)
        return Deactivated(await _standing(session, key), changed)


async def reactivate_own(services: Services, caller: Caller, client_id: str) -> KeyStanding:
    """Lift the hold that the owner set. Repeating it has no effect (D-27).

    A location that was disconnected and imported again is assigned to the key's business, as for a new key.

    Raises:
        ServiceError: NOT_FOUND; AUTH_INSUFFICIENT_PERMISSIONS, with the three details, while there is another hold;
            PLAN_RESTRICTION if the location is beyond the plan.
    """
    async with services.storage.write() as session:
        await users.lock_user(session, caller.owner_id)  # before the key, as a plan change does
        key = await own_key(services, session, caller, client_id)
        location = await locations.state(session, key.owner_id, key.location_name)
        assert location is not None, "a key refers to it"
        # `key.hold` is the most severe hold. An assignment within the plan lifts that of the plan.
        liftable = {"user_requested"} if location.business_id else {"user_requested", "plan_downgrade"}
        if key.hold is not None and key.hold.reason not in liftable:
            raise deactivated(services, key.hold)
        if await locations.place_of(session, key.owner_id, key.location_name) is None:
            raise ServiceError(NOT_FOUND, "The location of this key is disconnected. Import it again first.")
        await assign_within_plan(services, session, location, location.business_id or key.business_id)
        await lift(services, session, key.owner_id, holds.one_key(key.id), "user_requested")
        return await _standing(session, key)


async def reactivate(
    services: Services, client_id: str, reason: str | None = None, *, roll: bool = False, version: int | None = None
) -> Reactivated:
    """Lift one hold, or all that may be lifted, for the operator or a billing hook.

    A key of a location beyond the plan stays held (D-27). A security concern is lifted only in a transaction with a
    roll, which ends the previous secret and all tokens.

    Raises:
        ServiceError: NOT_FOUND; CONFLICT if the roll is missing, or if the plan prevents every lift.
    """
    async with services.storage.write() as session:
        if (unlocked := await keys.state(session, client_id)) is not None:
            await users.lock_user(session, unlocked.owner_id)  # first, as a plan change does: two orders could deadlock
        key = await own_key(services, session, None, client_id)
        present = [each.reason for each in await holds.on_key(session, key.owner_id, key.id)]
        to_lift = [name for name in present if reason in (None, name)]
        if version is not None and not await keys.advance_billing(
            session, key.owner_id, holds.one_key(key.id), version
        ):
            to_lift = []
        if "security_concern" in to_lift and not roll:
            raise ServiceError(CONFLICT, "A key that is held for a security concern needs a new secret. Add --roll.")
        lifted = [name for name in to_lift if name != "plan_downgrade" or await _within_plan(services, session, key)]
        if to_lift and not lifted:
            raise ServiceError(
                CONFLICT, "The location is beyond its owner's plan. Assign a larger plan, or unassign another location."
            )
        for name in lifted:
            await lift(services, session, key.owner_id, holds.one_key(key.id), name)
        rolled = await renew(services, session, key, 0) if roll else None
        remaining = [name for name in present if name not in lifted]
        return Reactivated(await _standing(session, key), lifted, remaining, rolled)


async def _within_plan(services: Services, session: AsyncSession, key: KeyState) -> bool:
    within, _ = await covered(services, session, await users.lock_user(session, key.owner_id))
    return key.location_name in within


async def _standing(session: AsyncSession, key: KeyState) -> KeyStanding:
    worst = next(iter(await holds.on_key(session, key.owner_id, key.id)), None)
    if worst is None:
        return KeyStanding(client_id=key.client_id, status="active", deactivation_reason=None, deactivated_at=None)
    return KeyStanding(
        client_id=key.client_id,
        status="deactivated",
        deactivation_reason=worst.reason,
        deactivated_at=iso(worst.set_at),
    )
