"""API keys from their first day to their last: list, deactivate, reactivate, revoke."""

from typing import Any, NamedTuple

from sqlalchemy.ext.asyncio import AsyncSession

from profilesvc.contract.errors import CONFLICT
from profilesvc.contract.keys import (
    MAX_LIMIT,
    BusinessEntry,
    BusinessList,
    KeyEntry,
    KeyList,
    KeyListQuery,
    KeyRevoked,
    KeyRolled,
    KeyStanding,
)
from profilesvc.domain.errors import ServiceError
from profilesvc.domain.world import iso
from profilesvc.services import audit
from profilesvc.services.access import missing, own_key
from profilesvc.services.context import Caller, Services, deactivated
from profilesvc.services.credentials import renew
from profilesvc.services.holds import covered, hold, lift
from profilesvc.storage import holds, keys, users
from profilesvc.storage.keys import KeyState


class Deactivated(NamedTuple):
    """How a key stands after a hold was put on it; `changed` is False when it had it, or the event came late."""

    standing: KeyStanding
    changed: bool


class Reactivated(NamedTuple):
    """How a key stands after holds were lifted: which, which are left, and the new secret if there is one."""

    standing: KeyStanding
    lifted: list[str]
    left: list[str]
    rolled: KeyRolled | None


def _status(row: Any, now: int) -> str:
    if row.revoked_at is not None or (row.expires_at is not None and row.expires_at <= now):
        return "revoked"
    return "deactivated" if row.hold_reason is not None else "active"


def _entry(row: Any, now: int) -> KeyEntry:
    return KeyEntry.model_validate(
        {
            "id": row.id,
            "client_id": row.client_id,
            "name": row.name,
            "assigned_location_id": row.location_name,
            "primary_domain": row.primary_domain,
            "created_at": iso(row.created_at),
            "last_used_at": None if row.last_used_at is None else iso(row.last_used_at),
            "status": _status(row, now),
            "deactivation_reason": row.hold_reason,
            "expires_at": None if row.expires_at is None else iso(row.expires_at),
        }
    )


async def list_all(services: Services, caller: Caller | None, query: KeyListQuery) -> KeyList:
    """Return a page of the caller's keys, newest first (D-24), or without a caller of everyone's, for the operator.

    A plan bounds how many keys are live, so all of those may come at once; revoked ones come in pages.
    """
    now, revoked = services.clock.now(), query.include_revoked == "true"
    user_id = None if caller is None else caller.user_id
    before = None if query.before is None else int(query.before)
    limit = None
    if revoked or query.limit is not None or before is not None:
        limit = min(query.limit or MAX_LIMIT, MAX_LIMIT)
    async with services.storage.read() as session:
        rows = await keys.listing(session, user_id, None if revoked else now, before, limit and limit + 1)
    shown = rows[:limit]
    return KeyList(
        credentials=[_entry(row, now) for row in shown],
        next_before=str(shown[-1].id) if len(rows) > len(shown) else None,
    )


async def get(services: Services, caller: Caller, client_id: str) -> KeyEntry:
    """Return a key of the caller, live or not. NOT_FOUND."""
    async with services.storage.read() as session:
        row = await keys.listed(session, caller.user_id, client_id)
    if row is None:
        raise missing("API key")
    return _entry(row, services.clock.now())


async def revoke(services: Services, caller: Caller | None, client_id: str) -> KeyRevoked:
    """Revoke for good; the tokens of the key fail from the moment of this answer on (D-25). NOT_FOUND.

    Without a caller anyone's, for the operator.
    """
    now = services.clock.now()
    async with services.storage.write() as session:
        key = await own_key(services, session, caller, client_id)
        await keys.revoke(session, key.id, now)
        await audit.record(services, session, "key.revoked", key.user_id, key.id)
    return KeyRevoked(client_id=client_id, revoked_at=iso(now))


async def businesses(services: Services, caller: Caller) -> BusinessList:
    """The caller's businesses (D-23)."""
    async with services.storage.read() as session:
        rows = await users.list_businesses(session, caller.user_id)
    return BusinessList(businesses=[BusinessEntry(id=row[0], name=row[2]) for row in rows])


async def deactivate(
    services: Services, client_id: str, reason: str, *, caller: Caller | None = None, version: int | None = None
) -> Deactivated:
    """Put a hold on a key; again is harmless (D-27). NOT_FOUND. Without a caller on anyone's, for the operator.

    `version` orders billing events: one that comes late changes nothing. A security concern ends all tokens for good.
    """
    async with services.storage.write() as session:
        key = await own_key(services, session, caller, client_id)
        changed = False
        if version is None or await keys.advance_billing(session, holds.of_key(key.id), version):
            changed = bool(await hold(services, session, key.user_id, holds.of_key(key.id), reason))
        if changed and reason == "security_concern":
            await keys.raise_epoch(session, key.id)
        return Deactivated(await _standing(session, key), changed)


async def reactivate_own(services: Services, caller: Caller, client_id: str) -> KeyStanding:
    """Lift the hold that the owner set; again is harmless (D-27). NOT_FOUND.

    AUTH_INSUFFICIENT_PERMISSIONS, with the three details, while there is a hold that the owner did not set.
    """
    async with services.storage.write() as session:
        key = await own_key(services, session, caller, client_id)
        if key.hold is not None and key.hold.reason != "user_requested":  # the most severe; the owner's is the mildest
            raise deactivated(services, key.hold)
        await lift(services, session, key.user_id, holds.of_key(key.id), "user_requested")
        return await _standing(session, key)


async def reactivate(
    services: Services, client_id: str, reason: str | None = None, *, roll: bool = False, version: int | None = None
) -> Reactivated:
    """Lift a hold, or all that may be lifted, for the operator or a billing hook. NOT_FOUND.

    What the plan holds back stays so (D-27). A security concern is lifted only together with a roll, in this one
    transaction, that ends the old secret and all tokens. CONFLICT when that is missing, or when the plan alone is in
    the way.
    """
    async with services.storage.write() as session:
        key = await _locked_with_owner(services, session, client_id)
        present = [found.reason for found in await holds.on_key(session, key.id)]
        wanted = [name for name in present if reason in (None, name)]
        if version is not None and not await keys.advance_billing(session, holds.of_key(key.id), version):
            wanted = []
        if "security_concern" in wanted and not roll:
            raise ServiceError(
                CONFLICT, "A key held for a security concern comes back only with a new secret: add --roll."
            )
        lifted = [name for name in wanted if name != "plan_downgrade" or await _within_plan(services, session, key)]
        if wanted and not lifted:
            raise ServiceError(CONFLICT, "The location is beyond its owner's plan; a larger one or a freed slot helps.")
        for name in lifted:
            await lift(services, session, key.user_id, holds.of_key(key.id), name)
        rolled = await renew(services, session, key, 0) if roll else None
        left = [name for name in present if name not in lifted]
        return Reactivated(await _standing(session, key), lifted, left, rolled)


async def _locked_with_owner(services: Services, session: AsyncSession, client_id: str) -> KeyState:
    """The owner first, as a change of plan does, so that the two never wait for each other."""
    found = await keys.state(session, client_id)
    if found is not None:
        await users.lock_user(session, found.user_id)
    return await own_key(services, session, None, client_id)


async def _within_plan(services: Services, session: AsyncSession, key: KeyState) -> bool:
    within, _ = await covered(services, session, await users.lock_user(session, key.user_id))
    return key.location_name in within


async def _standing(session: AsyncSession, key: KeyState) -> KeyStanding:
    worst = next(iter(await holds.on_key(session, key.id)), None)
    return KeyStanding.model_validate(
        {
            "client_id": key.client_id,
            "status": "active" if worst is None else "deactivated",
            "deactivation_reason": None if worst is None else worst.reason,
            "deactivated_at": None if worst is None else iso(worst.set_at),
        }
    )
