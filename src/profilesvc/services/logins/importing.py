"""The import of locations, with the data that the provider has of them."""

import json

from sqlalchemy.ext.asyncio import AsyncSession

from profilesvc.contract.errors import CONFLICT
from profilesvc.contract.json import JsonObject
from profilesvc.domain import profiles, verification
from profilesvc.domain.entropy import new_sync_id
from profilesvc.domain.errors import ServiceError
from profilesvc.domain.request import low_priority
from profilesvc.provider.port import ProviderError, Verification
from profilesvc.services.context import Services
from profilesvc.services.locations import title_of, verify_location
from profilesvc.services.provider_errors import raising_provider_failure
from profilesvc.services.users import find_user
from profilesvc.storage import locations, sync
from profilesvc.storage.locations import Place
from profilesvc.storage.sync import SyncRow

_TURNS = 10  # waits for the quota during the import of one location


async def import_account(services: Services, email: str, account: str) -> list[str]:
    """Import the locations of a provider's account for a user, and return their names.

    Raises:
        ServiceError: NOT_FOUND, CONFLICT, PROVIDER_API_ERROR.
    """
    async with services.storage.read() as session:
        user = await find_user(session, email)
    values = {"account": account, "profile_read_at": services.clock.now()}
    with raising_provider_failure(), low_priority():
        imported = [await _read(services, profile) for profile in await services.provider.locations(account)]
    async with services.storage.write() as session:
        for profile, state in imported:
            await _import_one(services, session, user.id, {**values, **state}, profile)
    return [profile["name"] for profile, _ in imported]


async def _verification(services: Services, name: str) -> Verification:
    """Read a verification. Wait for the quota, because it may be less per minute than an account has locations."""
    for _ in range(_TURNS):
        try:
            return await services.provider.verification(name)
        except ProviderError as error:
            if error.reason != "quota":
                raise
            wait = error.retry_after
        await services.clock.sleep(wait or 1)
    return await services.provider.verification(name)


async def _read(services: Services, profile: JsonObject) -> tuple[JsonObject, JsonObject]:
    current = await _verification(services, profile["name"])
    is_verified, state = verification.derive(current.voice_of_merchant, current.verifications)
    return profile, {"is_verified": is_verified, "verification_state": state}


async def _import_one(
    services: Services, session: AsyncSession, owner_id: int, values: JsonObject, profile: JsonObject
) -> None:
    if not await locations.claim(session, owner_id, profile["name"]):
        raise ServiceError(CONFLICT, f"{profile['name']} belongs to another user.")
    place = await locations.place_of(session, owner_id, profile["name"])
    if place is None or place.connection_id is None:
        place = Place(values["account"], None)
    await store_imported(
        services, session, owner_id, {**values, **place._asdict()}, profile
    )  # a login of the owner stays


async def store_imported(
    services: Services, session: AsyncSession, owner_id: int, values: JsonObject, profile: JsonObject
) -> None:
    """Store a location of an owner as the provider has it.

    `values` are its account, its login, when it was read (`profile_read_at`) and whether it is verified, with the
    `verification_state` if that was read. A profile that was read later by another request stays.
    """
    name, now = profile["name"], services.clock.now()
    old = await locations.state(session, owner_id, name)
    if old is not None and old.profile_read_at > values["profile_read_at"]:
        profile, values = json.loads(old.profile), {**values, "profile_read_at": old.profile_read_at}
    is_verified, stored = values["is_verified"], None if old is None else old.verification_state
    state = values.get("verification_state") or verification.state_of(is_verified, stored)
    desired = json.dumps(profiles.split(profile, None)[0])
    cached = {
        "profile": json.dumps(profile),
        "title": title_of(profile),
        **values,
        "verification_state": state,
    }
    changed = profiles.changed({} if old is None else json.loads(old.profile), profile)
    if old is None:
        await locations.add(session, owner_id=owner_id, name=name, source=desired, sync_enabled=False, **cached)
    else:
        source = {} if old.last_sync is not None else {"source": desired}
        await verify_location(services, session, owner_id, name, is_verified, state)
        await locations.import_again(session, owner_id, name, **cached, **source)
    await sync.add(
        session,
        owner_id,
        name,
        SyncRow(new_sync_id(now, services.entropy), now, "success", "pull", len(changed)),
    )
