"""Locations: the mirror of what the provider has, the sync switch, verification, import (D-70 to D-73)."""

import json
from typing import Any

import orjson
from sqlalchemy.ext.asyncio import AsyncSession

from profilesvc.contract.errors import CONFLICT, LOCATION_NOT_VERIFIED, NOT_FOUND, PLAN_RESTRICTION
from profilesvc.contract.locations import MAX_LIMIT, LocationListQuery, SyncSwitched, VerificationRefreshed
from profilesvc.domain import profiles, verification
from profilesvc.domain.errors import ServiceError
from profilesvc.domain.sync_ids import new_sync_id
from profilesvc.domain.world import SECOND
from profilesvc.provider.port import Document, ProviderError, Verification
from profilesvc.services.context import Caller, Reached, Rendered, Services
from profilesvc.services.provider_errors import provider_failure
from profilesvc.storage import locations, sync, users
from profilesvc.storage.locations import LocationState
from profilesvc.storage.users import UserState

_DETAIL = ("title", "storefrontAddress", "phoneNumbers", "regularHours")


async def list_page(services: Services, caller: Caller, query: LocationListQuery) -> Rendered:
    """One page of the mirror by title; a key sees its own location alone (D-17, D-70)."""
    limit = min(query.limit, MAX_LIMIT)
    only = None if caller.key is None else caller.key.location_name
    unassigned = query.type == "unassigned"
    offset = (query.page - 1) * limit
    async with services.storage.read() as session:
        total = await locations.count(session, caller.user_id, only, unassigned)
        rows = await locations.page(session, caller.user_id, only, unassigned, (offset, limit))
    entries = [_entry(row) for row in rows]
    more = offset + len(entries) < total
    pagination = {"page": query.page, "limit": limit, "totalCount": total, "hasMore": more}
    return Rendered(orjson.dumps({"locations": entries, "pagination": pagination}))


def _entry(row: Any) -> Document:
    profile = orjson.loads(row.profile)
    entry = {"name": row.name, **{name: profile[name] for name in ("title", "storefrontAddress") if name in profile}}
    return entry | {
        "isAssigned": row.business_id is not None,
        "businessId": row.business_id,
        "businessName": row.business_name,
        "locationState": {"isVerified": row.is_verified},
        "syncEnabled": row.sync_enabled,
    }


async def get(services: Services, location: Reached) -> Rendered:
    """A location as the provider has it, from the mirror while that is young or the provider is down (D-71)."""
    now = services.clock.now()
    mirror = await load(services, location)
    profile, age = json.loads(mirror.profile), None
    if now - mirror.profile_read_at > services.settings.mirror_max_age_seconds * SECOND:
        try:
            profile = await services.provider.location(location.name)
        except ProviderError:
            age = (now - mirror.profile_read_at) // SECOND
        else:
            async with services.storage.write() as session:
                await keep_profile(session, location.name, profile, now)
    detail = {"name": location.name, **{name: profile[name] for name in _DETAIL if name in profile}}
    return Rendered(orjson.dumps(detail | {"locationState": {"isVerified": mirror.is_verified}}), data_age=age)


async def load(services: Services, location: Reached) -> LocationState:
    """The mirrored row of a reached location."""
    async with services.storage.read() as session:
        row = await locations.state(session, location.name)
    assert row is not None, "a reached location exists"
    return row


async def keep_profile(session: AsyncSession, name: str, profile: Document, now: int) -> None:
    """Put what the provider said into the mirror."""
    await locations.keep_profile(session, name, json.dumps(profile), title_of(profile), now)


def title_of(profile: Document) -> str:
    """The title to sort by; whatever else the provider may call a title is none."""
    title = profile.get("title")
    return title if isinstance(title, str) else ""


async def switch_sync(services: Services, location: Reached, enabled: bool) -> SyncSwitched:
    """Set the switch; on needs a plan with sync and a verified location, off always works (D-72)."""
    if enabled and not location.plan.sync:
        raise ServiceError(PLAN_RESTRICTION, f"The plan {location.plan.display_name} does not include sync.")
    async with services.storage.write() as session:
        if not enabled:
            await locations.change(session, location.name, sync_enabled=False)
        elif not await locations.enable_sync(session, location.name):
            row = await locations.state(session, location.name)
            assert row is not None, "a reached location exists"
            raise not_verified(row)
    return SyncSwitched(locationId=location.name, syncEnabled=enabled)


def not_verified(row: LocationState) -> ServiceError:
    """The refusal of a location that the provider has not verified, with its state."""
    return ServiceError(LOCATION_NOT_VERIFIED, verificationState=row.verification_state)


async def refresh_verification(services: Services, location: Reached) -> VerificationRefreshed:
    """Ask the provider; a location that lost its verification has its sync switched off with it (D-73)."""
    await services.limiter.verification(location.name)
    try:
        found = await services.provider.verification(location.name)
    except ProviderError as error:
        raise provider_failure(error) from error
    return await keep_verification(services, location, found)


async def keep_verification(services: Services, location: Reached, found: Verification) -> VerificationRefreshed:
    """Store what the provider said of a location's verification."""
    is_verified, state = verification.derive(found.voice_of_merchant, found.verifications)
    values: dict[str, Any] = {"is_verified": is_verified, "verification_state": state}
    if not is_verified:
        values["sync_enabled"] = False
    async with services.storage.write() as session:
        await locations.change(session, location.name, **values)
    return VerificationRefreshed.model_validate(
        {"locationId": location.name, "isVerified": is_verified, "verificationState": state}
    )


async def assign(services: Services, name: str, business_id: int) -> None:
    """Assign an unassigned location to a business of its owner (operator). NOT_FOUND, PLAN_RESTRICTION, CONFLICT."""
    async with services.storage.write() as session:
        row = await locations.state(session, name)
        if row is None or await users.business_name(session, business_id, row.user_id) is None:
            raise ServiceError(NOT_FOUND, "There is no such location, or its owner has no such business.")
        await take_slot(services, session, row, business_id)


async def take_slot(services: Services, session: AsyncSession, row: LocationState, business_id: int) -> UserState:
    """Assign within the plan's number of locations (D-23); one that a downgrade left beyond it is refused (D-27).

    The owner, who stays locked.
    """
    if row.business_id not in {None, business_id}:
        raise ServiceError(CONFLICT, "The location belongs to another business of its owner.")
    owner = await users.lock_user(session, row.user_id)
    plan = services.plans.get(owner.plan)
    assigned = await locations.assigned(session, row.user_id)
    place = assigned.index(row.name) if row.name in assigned else len(assigned)
    if place >= plan.locations:
        raise ServiceError(
            PLAN_RESTRICTION, f"The plan {plan.display_name} allows {plan.locations} locations.", limit=plan.locations
        )
    if row.business_id is None and not await locations.assign(session, row.name, business_id, services.clock.now()):
        raise ServiceError(CONFLICT, "The location was assigned a moment ago.")
    return owner


async def import_account(services: Services, email: str, account: str) -> list[str]:
    """Mirror every location of a provider account for a user; the names. NOT_FOUND, CONFLICT, PROVIDER_API_ERROR."""
    async with services.storage.read() as session:
        user = await users.user_by_email(session, email)
    if user is None:
        raise ServiceError(NOT_FOUND, f"There is no user {email}.")
    try:
        found = [await _read(services, profile) for profile in await services.provider.locations(account)]
    except ProviderError as error:
        raise provider_failure(error) from error
    async with services.storage.write() as session:
        for profile, state in found:
            await _import_one(services, session, {"user_id": user.id, "account": account, **state}, profile)
    return [profile["name"] for profile, _ in found]


async def _read(services: Services, profile: Document) -> tuple[Document, Document]:
    answer = await services.provider.verification(profile["name"])
    is_verified, state = verification.derive(answer.voice_of_merchant, answer.verifications)
    return profile, {"is_verified": is_verified, "verification_state": state}


async def _import_one(services: Services, session: AsyncSession, values: Document, profile: Document) -> None:
    name, now = profile["name"], services.clock.now()
    old = await locations.state(session, name)
    if old is not None and old.user_id != values["user_id"]:
        raise ServiceError(CONFLICT, f"{name} belongs to another user.")
    desired = json.dumps(profiles.split(profile, None)[0])
    seen = {"profile": json.dumps(profile), "title": title_of(profile), "profile_read_at": now, **values}
    changed = profiles.leaves(profile)
    if old is None:
        await locations.add(session, name=name, source=desired, sync_enabled=False, **seen)
    else:
        before = dict(profiles.leaves(json.loads(old.profile)))
        changed = [(path, value) for path, value in changed if before.get(path) != value]
        kept = {} if old.last_sync is not None else {"source": desired}
        sync_off = {} if values["is_verified"] else {"sync_enabled": False}
        await locations.change(session, name, **seen, **kept, **sync_off)
    await sync.add(
        session,
        sync_id=new_sync_id(now, services.entropy),
        location_name=name,
        created_at=now,
        status="success",
        direction="pull",
        fields_updated=len(changed),
    )
