"""Create, list and revoke API keys; deactivate and reactivate them for the operator."""

import json
from typing import Any

from sqlalchemy.ext.asyncio import AsyncSession

from profilesvc.contract.errors import CONFLICT, NOT_FOUND
from profilesvc.contract.keys import (
    SECRET_WARNING,
    BusinessEntry,
    BusinessList,
    KeyCreate,
    KeyCreated,
    KeyEntry,
    KeyList,
    KeyRevoked,
)
from profilesvc.contract.times import parse_timestamp
from profilesvc.domain.domains import allowed_domains
from profilesvc.domain.errors import ServiceError, invalid
from profilesvc.domain.keys import clean_name, client_id, new_secret, secret_digest
from profilesvc.domain.permissions import ALL, grant
from profilesvc.domain.world import iso, parse_iso
from profilesvc.services.context import Caller, Services
from profilesvc.services.locations import take_slot
from profilesvc.storage import accounts, keys, locations

_END_OF_TIME = 253_402_300_800_000  # the first millisecond of the year 10000, which RFC 3339 cannot write


def _missing(what: str) -> ServiceError:
    """The same answer for what does not exist and for what is another user's (D-19)."""
    return ServiceError(NOT_FOUND, f"You have no such {what}.")


async def create(services: Services, caller: Caller, body: KeyCreate) -> KeyCreated:
    """Make a key for one of the caller's locations and show its secret once (D-21 to D-23).

    VALIDATION_ERROR; NOT_FOUND for a business or location that is not the caller's; CONFLICT for a location of
    another business or too many live keys; PLAN_RESTRICTION when assigning exceeds the plan's locations.
    """
    now = services.clock.now()
    development = not services.settings.production
    allowed = allowed_domains(body.primary_domain, body.allowed_domains or [], development=development)
    name, expires_at = clean_name(body.name), _expiry(body, now)
    permissions = grant(ALL, body.permissions)
    secret = new_secret(services.entropy)
    async with services.storage.write() as session:
        business = await accounts.business_name(session, body.business_id, caller.user_id)
        if business is None:
            raise _missing("business or location")
        await _take_location(services, session, caller, body)
        values: dict[str, Any] = {
            "client_id": await _free_client_id(session, caller.user_id, now, name),
            "user_id": caller.user_id,
            "business_id": body.business_id,
            "location_name": body.assigned_location_id,
            "name": name,
            "permissions": " ".join(permissions),
            "primary_domain": allowed[0] if body.primary_domain is not None else None,
            "allowed_domains": json.dumps(allowed),
            "created_at": now,
            "expires_at": expires_at,
        }
        key_id = await keys.add(session, values, secret_digest(secret, services.pepper))
    return KeyCreated.model_validate(
        {
            "client_id": values["client_id"],
            "client_secret": secret,
            "service_client_id": key_id,
            "name": name,
            "plan": caller.plan.name,
            "business_id": body.business_id,
            "business_name": business,
            "assigned_location_id": body.assigned_location_id,
            "primary_domain": values["primary_domain"],
            "allowed_domains": allowed,
            "created_at": iso(now),
            "warning": SECRET_WARNING,
            "permissions": permissions,
            "expires_at": None if expires_at is None else iso(expires_at),
        }
    )


def _expiry(body: KeyCreate, now: int) -> int | None:
    if body.expires_at is None:
        return None
    try:
        parse_timestamp(body.expires_at)
        expires_at = parse_iso(body.expires_at)
    except ValueError:
        raise invalid("body", "expires_at", "must be an RFC 3339 time such as 2027-01-02T03:04:05Z") from None
    if expires_at >= _END_OF_TIME:
        raise invalid("body", "expires_at", "must lie before the year 10000")
    if expires_at <= now:
        raise invalid("body", "expires_at", "must lie in the future")
    return expires_at


async def _take_location(services: Services, session: AsyncSession, caller: Caller, body: KeyCreate) -> None:
    """The location must be the caller's; an unassigned one is assigned by this very creation (D-23)."""
    name = body.assigned_location_id
    location = await locations.state(session, name)
    if location is None or location.user_id != caller.user_id:
        raise _missing("business or location")
    await take_slot(services, session, location, body.business_id)
    if await keys.count_live(session, name, services.clock.now()) >= caller.plan.live_keys_per_location:
        raise ServiceError(
            CONFLICT,
            f"The location has {caller.plan.live_keys_per_location} live keys; revoke one first.",
            limit=caller.plan.live_keys_per_location,
        )


async def _free_client_id(session: AsyncSession, user_id: int, now: int, name: str) -> str:
    """The next free millisecond for this name: two keys of one moment get two ids (D-22)."""
    while await keys.client_id_taken(session, candidate := client_id(user_id, now, name)):
        now += 1
    return candidate


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


async def list_all(services: Services, caller: Caller | None, include_revoked: bool) -> KeyList:
    """The caller's keys, newest first (D-24); without a caller everyone's, for the operator."""
    now = services.clock.now()
    async with services.storage.read() as session:
        rows = await keys.listing(session, None if caller is None else caller.user_id, include_revoked)
    return KeyList(credentials=[_entry(row, now) for row in rows])


async def revoke(services: Services, caller: Caller, client_id: str) -> KeyRevoked:
    """Revoke for good; the tokens of the key fail from the moment of this answer on (D-25). NOT_FOUND."""
    now = services.clock.now()
    async with services.storage.write() as session:
        if not await keys.revoke(session, client_id, caller.user_id, now):
            raise _missing("API key")
    return KeyRevoked(client_id=client_id, revoked_at=iso(now))


async def businesses(services: Services, caller: Caller) -> BusinessList:
    """The caller's businesses (D-23)."""
    async with services.storage.read() as session:
        rows = await accounts.list_businesses(session, caller.user_id)
    return BusinessList(businesses=[BusinessEntry(id=row[0], name=row[2]) for row in rows])


async def deactivate(services: Services, client_id: str, reason: str) -> bool:
    """Put a hold on a key (D-27); False when it already has it. NOT_FOUND for an unknown or revoked key."""
    now = services.clock.now()
    async with services.storage.write() as session:
        key = await keys.state(session, client_id)
        if key is None or key.revoked_at is not None:
            raise _missing("API key")
        if reason == "security_concern":
            await keys.raise_epoch(session, key.id)  # its tokens never work again
        return await keys.add_hold(session, key.id, reason, now)


async def reactivate(services: Services, client_id: str) -> int:
    """Lift every hold of a key; how many there were. CONFLICT for a security concern, which needs a new secret."""
    async with services.storage.write() as session:
        key = await keys.state(session, client_id)
        if key is None or key.revoked_at is not None:
            raise _missing("API key")
        if key.hold_reason == "security_concern":
            raise ServiceError(CONFLICT, "A key held for a security concern comes back only with a new secret.")
        return await keys.remove_holds(session, key.id, ["billing_issue", "plan_downgrade", "user_requested"])
