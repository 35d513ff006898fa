"""Locations: the cache of the provider's data, the sync switch and verification."""

import asyncio
import contextlib
import json
from typing import NamedTuple

import orjson
from sqlalchemy.ext.asyncio import AsyncSession

from profilesvc.contract.errors import CONFLICT, LOCATION_NOT_VERIFIED, NOT_FOUND, PLAN_RESTRICTION, SERVICE_UNAVAILABLE
from profilesvc.contract.events import SyncSwitchChanged, VerificationChanged
from profilesvc.contract.json import JsonObject
from profilesvc.contract.locations import LocationListQuery, SyncSwitched, VerificationRefreshed
from profilesvc.database.statements import Executor
from profilesvc.domain import verification
from profilesvc.domain.errors import ServiceError
from profilesvc.domain.posts import can_have_posts
from profilesvc.domain.problems import counted
from profilesvc.domain.time import DAY, SECOND
from profilesvc.domain.verification import has_flag
from profilesvc.provider.port import Provider, ProviderError, Verification
from profilesvc.services import drift, events
from profilesvc.services.access import missing, require_plan
from profilesvc.services.context import AllowedLocation, Caller, Rendered, Services
from profilesvc.services.holds import lift
from profilesvc.services.provider_errors import raising_provider_failure
from profilesvc.services.provider_logins import provider_at
from profilesvc.storage import locations, users
from profilesvc.storage.holds import at_locations
from profilesvc.storage.locations import ListedLocation, LocationState
from profilesvc.storage.users import UserState

ANNOUNCED_AGE = DAY  # for which what was read may be returned, while the change feed announces what changes
_LONGEST_TITLE = 500  # characters; PostgreSQL rejects an entry of an index above 2,704 bytes
_PATIENCE_SECONDS = 1.0  # of a reader with the writers of the database
_DETAIL = ("title", "storefrontAddress", "phoneNumbers", "regularHours")


async def list_page(services: Services, caller: Caller, query: LocationListQuery) -> Rendered:
    """Return a page of the cached locations by title; a key sees only its own (D-70)."""
    limit = query.limit
    only = None if caller.key is None else caller.key.location_name
    unassigned = query.type == "unassigned"
    offset = (query.page - 1) * limit
    async with services.storage.read(may_be_old=True) as session:
        total = await locations.count(session, caller.owner_id, only, unassigned)
        rows = await locations.page(session, caller.owner_id, only, unassigned, (offset, limit))
    entries = [_entry(row) for row in rows]
    more = offset + len(entries) < total
    pagination = {"page": query.page, "limit": limit, "totalCount": total, "hasMore": more}
    return Rendered(orjson.dumps({"locations": entries, "pagination": pagination}))


def _entry(row: ListedLocation) -> JsonObject:
    profile = orjson.loads(row.profile)
    entry = {"name": row.name, **{name: profile[name] for name in ("title", "storefrontAddress") if name in profile}}
    return entry | {
        "isAssigned": row.business_id is not None,
        "businessId": row.business_id,
        "businessName": row.business_name,
        "locationState": {"isVerified": row.is_verified},
        "syncEnabled": row.sync_enabled,
    }


async def get(services: Services, location: AllowedLocation) -> Rendered:
    """Return a location as the provider has it, from the cache while it is fresh or the provider is down (D-71)."""
    now = services.clock.now()
    cached = await load(services, location)
    profile, age = json.loads(cached.profile), None
    if not await _is_fresh(services, location, cached, profile, now):
        try:
            remote = await provider_at(services, location)
            profile = await remote.location(location.name)
        except ProviderError:
            age = (now - cached.profile_read_at) // SECOND
        else:
            await note(services, location, remote, Observed(cached, profile, now))
    detail = {"name": location.name, **{name: profile[name] for name in _DETAIL if name in profile}}
    if not can_have_posts(profile):
        detail["metadata"] = {"canOperateLocalPost": False}
    return Rendered(orjson.dumps(detail | {"locationState": {"isVerified": cached.is_verified}}), data_age=age)


async def _is_fresh(
    services: Services, location: AllowedLocation, cached: LocationState, profile: JsonObject, now: int
) -> bool:
    """Return whether the cached profile may be returned: for a day, while the change feed announces what changes."""
    if now - cached.profile_read_at <= services.settings.cache_max_age_seconds * SECOND:
        return True
    in_review = has_flag(profile, "hasPendingEdits")  # no notification ends it
    if not services.settings.notifications.enabled or in_review or now - cached.profile_read_at > ANNOUNCED_AGE:
        return False
    async with services.storage.read() as session:
        return cached.profile_read_at > await locations.valid_from(session, location.owner_id, location.name, "profile")


class Observed(NamedTuple):
    """A profile that was read from the provider, the location's row from before, and when the reading started."""

    before: LocationState
    profile: JsonObject
    read_at: int


async def note(services: Services, location: AllowedLocation, remote: Provider, observed: Observed) -> None:
    """Store what was read, and publish what has changed, within a moment or after the response.

    A reader does not wait for the database's writers. What cannot be stored at all is read again by the next request.

    Raises:
        ServiceError: NOT_FOUND as in `load`.
    """
    noting = services.background.finish(_note(services, location, remote, observed))
    try:
        await asyncio.wait_for(noting, _PATIENCE_SECONDS)
    except TimeoutError:
        return
    except ServiceError as error:
        if error.kind is not SERVICE_UNAVAILABLE:
            raise


async def _note(services: Services, location: AllowedLocation, remote: Provider, observed: Observed) -> None:
    before, profile, read_at = observed
    await keep(services, location, profile, read_at)
    await drift.note(services, location, before, profile, read_at)
    with contextlib.suppress(ProviderError):  # the background check reads it later
        await drift.note_google(services, location, remote, profile)


async def keep(services: Services, location: AllowedLocation, profile: JsonObject, read_at: int) -> None:
    """Store a profile that was read from the provider; the reading started at `read_at`."""
    document, title = json.dumps(profile), title_of(profile)
    async with services.storage.write() as session:
        await locations.keep_profile(session, location.owner_id, location.name, document, title, read_at)


async def load(services: Services, location: AllowedLocation) -> LocationState:
    """Return the row of a location with its cached profile.

    Raises:
        ServiceError: NOT_FOUND, because the owner has disconnected the location meanwhile.
    """
    async with services.storage.read() as session:
        return await _require(session, location)


async def _require(session: Executor, location: AllowedLocation) -> LocationState:
    row = await locations.state(session, location.owner_id, location.name)
    if row is None or row.disconnected_at is not None:
        raise missing("location")
    return row


def title_of(profile: JsonObject) -> str:
    """Return the title to sort by as a database can store and index it, empty if the provider's is not a string."""
    title = profile.get("title")
    return title.replace("\x00", "\ufffd")[:_LONGEST_TITLE] if isinstance(title, str) else ""


async def switch_sync(services: Services, location: AllowedLocation, enabled: bool) -> SyncSwitched:
    """Switch sync on or off. Switching it off is always allowed (D-72).

    Raises:
        ServiceError: PLAN_RESTRICTION, LOCATION_NOT_VERIFIED; NOT_FOUND as in `load`.
    """
    if enabled:
        require_plan(location, "sync")
    async with services.storage.write() as session:
        if await locations.switch_sync(session, location.owner_id, location.name, enabled):
            _publish_switch(services, session, location.owner_id, location.name, enabled)
        else:
            row = await _require(session, location)
            if enabled and not row.is_verified:
                raise ServiceError(LOCATION_NOT_VERIFIED, verificationState=row.verification_state)
    return SyncSwitched(locationId=location.name, syncEnabled=enabled)


def _publish_switch(services: Services, session: AsyncSession, owner_id: int, name: str, enabled: bool) -> None:
    data = SyncSwitchChanged(location_id=name, sync_enabled=enabled)
    events.publish(services, session, owner_id, events.new("location.sync_switched", data, location_name=name))


async def refresh_verification(services: Services, location: AllowedLocation) -> VerificationRefreshed:
    """Read the verification from the provider. A location that lost it has its sync switched off (D-73).

    Raises:
        ServiceError: RATE_LIMITED, PROVIDER_API_ERROR.
    """
    await services.limiter.count("verifications-per-location", location.name)
    with raising_provider_failure():
        remote = await provider_at(services, location)
        current = await remote.verification(location.name)
    return await store_verification(services, location, current)


async def store_verification(
    services: Services, location: AllowedLocation, current: Verification
) -> VerificationRefreshed:
    """Store a verification that was read.

    Raises:
        ServiceError: NOT_FOUND as in `load`.
    """
    is_verified, state = verification.derive(current.voice_of_merchant, current.verifications)
    async with services.storage.write() as session:
        await verify_location(services, session, location.owner_id, location.name, is_verified, state)
        await _require(session, location)
    return VerificationRefreshed(locationId=location.name, isVerified=is_verified, verificationState=state)


async def verify_location(
    services: Services, session: AsyncSession, owner_id: int, name: str, is_verified: bool, state: str
) -> None:
    """Store the verification of a location that is not disconnected, and publish what changes."""
    # Sync first: a constraint allows it for verified locations only.
    if not is_verified and await locations.switch_sync(session, owner_id, name, enabled=False):
        _publish_switch(services, session, owner_id, name, enabled=False)
    if await locations.verify(session, owner_id, name, is_verified, state):
        data = VerificationChanged(location_id=name, is_verified=is_verified, verification_state=state)
        event = events.new("location.verification_changed", data, location_name=name)
        events.publish(services, session, owner_id, event)


async def assign(services: Services, name: str, business_id: int) -> None:
    """Assign an unassigned location to a business of its owner, for the operator.

    Raises:
        ServiceError: NOT_FOUND, PLAN_RESTRICTION, CONFLICT.
    """
    async with services.storage.write() as session:
        row = await locations.state_by_name(session, name)
        if row is None or await users.business_name(session, business_id, row.owner_id) is None:
            raise ServiceError(NOT_FOUND, "There is no such location, or its owner has no such business.")
        await assign_within_plan(services, session, row, business_id)


async def assign_within_plan(
    services: Services, session: AsyncSession, row: LocationState, business_id: int
) -> UserState:
    """Assign a location within the plan, and return its owner, locked until the transaction ends.

    A location that is already assigned is rejected too if a downgrade has put it beyond the plan (D-27). Keys that an
    unassigned location has from before are within the plan then.

    Raises:
        ServiceError: CONFLICT, PLAN_RESTRICTION.
    """
    if row.business_id not in {None, business_id}:
        raise ServiceError(CONFLICT, "The location belongs to another business of its owner.")
    owner = await users.lock_user(session, row.owner_id)
    plan = services.plans[owner.plan]
    assigned = await locations.assigned(session, row.owner_id)
    position = assigned.index(row.name) if row.name in assigned else len(assigned)
    if position >= plan.locations:
        message = f"The plan {plan.display_name} includes {counted(plan.locations, 'location')}."
        raise ServiceError(PLAN_RESTRICTION, message, limit=plan.locations)
    if row.business_id is None:
        if not await locations.assign(session, row.owner_id, row.name, business_id, services.clock.now()):
            raise ServiceError(CONFLICT, "The location has just been assigned.")
        await lift(services, session, row.owner_id, at_locations([row.name]), "plan_downgrade")
    return owner
