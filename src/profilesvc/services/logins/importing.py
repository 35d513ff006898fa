"""The import of locations, with the data that the provider has of them."""

import json
from typing import NamedTuple

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
    started = services.clock.now()
    with raising_provider_failure(), low_priority():
        imported = []
        for profile in await services.provider.locations(account):
            current = await _verification(services, profile["name"])
            is_verified, state = verification.derive(current.voice_of_merchant, current.verifications)
            imported.append(Imported(profile, Place(account, None), started, is_verified, state))
    async with services.storage.write() as session:
        for location in imported:
            await _import_one(services, session, user.id, location)
    return [location.name for location in imported]


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


class Imported(NamedTuple):
    """A location as the provider has it, read at an instant. Its `verification_state` is None if that was not read."""

    profile: JsonObject
    place: Place
    read_at: int
    is_verified: bool
    verification_state: str | None = None

    @property
    def name(self) -> str:
        return str(self.profile["name"])


async def _import_one(services: Services, session: AsyncSession, owner_id: int, imported: Imported) -> None:
    if not await locations.claim(session, owner_id, imported.name):
        raise ServiceError(CONFLICT, f"{imported.name} belongs to another user.")
    place = await locations.place_of(session, owner_id, imported.name)
    if place is not None and place.connection_id is not None:
        imported = imported._replace(place=place)  # a login of the owner stays
    await store_imported(services, session, owner_id, imported)


async def store_imported(services: Services, session: AsyncSession, owner_id: int, imported: Imported) -> None:
    """Store a location of an owner as the provider has it. A profile that another request read later stays."""
    name, now = imported.name, services.clock.now()
    old = await locations.state(session, owner_id, name)
    if old is not None and old.profile_read_at > imported.read_at:
        imported = imported._replace(profile=json.loads(old.profile), read_at=old.profile_read_at)
    profile, is_verified = imported.profile, imported.is_verified
    state = imported.verification_state or verification.state_of(is_verified, old.verification_state if old else None)
    desired = json.dumps(profiles.split(profile, None)[0])
    cached = {
        "profile": json.dumps(profile),
        "title": title_of(profile),
        "profile_read_at": imported.read_at,
        "is_verified": is_verified,
        "verification_state": state,
        **imported.place._asdict(),
    }
    changed = profiles.changed({} if old is None else json.loads(old.profile), profile)
    if old is None:
        await locations.add(session, owner_id=owner_id, name=name, source=desired, sync_enabled=False, **cached)
    else:
        source = {} if old.last_sync is not None else {"source": desired}
        await verify_location(services, session, owner_id, name, is_verified, state)
        await locations.import_again(session, owner_id, name, **cached, **source)
    entry = SyncRow(new_sync_id(now, services.entropy), now, "success", "pull", len(changed))
    await sync.add(session, owner_id, name, entry)
