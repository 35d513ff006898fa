"""Load the demo data into an empty database."""

import json

from sqlalchemy.ext.asyncio import AsyncSession

from profilesvc.contract.errors import CONFLICT
from profilesvc.contract.json import JsonObject
from profilesvc.domain import profiles, verification
from profilesvc.domain.entropy import new_sync_id
from profilesvc.domain.errors import ServiceError
from profilesvc.domain.time import parse_iso
from profilesvc.services.context import Services
from profilesvc.storage import locations, sync, users
from profilesvc.storage.sync import SyncRow


async def load(services: Services, world: JsonObject) -> None:
    """Load users, businesses and locations; posts come from the provider.

    Raises:
        ServiceError: CONFLICT unless the database is empty.
    """
    if not await load_if_empty(services, world):
        raise ServiceError(CONFLICT, "The database is not empty.")


async def load_if_empty(services: Services, world: JsonObject) -> bool:
    """Load the demo data unless there are users. Return whether it was loaded."""
    now = services.clock.now()
    async with services.storage.write() as session:
        if not await users.is_empty(session):
            return False
        await users.add_with_ids(session, world["users"], world["businesses"], now)
        for location in world["locations"]:
            await _location(services, session, location, now)
    return True


async def _location(services: Services, session: AsyncSession, location: JsonObject, now: int) -> None:
    profile = location["profile"]
    is_verified, state = verification.derive(location["voice_of_merchant"], location["verifications"])
    business_id, last_sync = location["business_id"], location.get("last_sync")
    await locations.claim(session, location["user_id"], profile["name"])
    await locations.add(
        session,
        name=profile["name"],
        owner_id=location["user_id"],
        business_id=business_id,
        assigned_at=None if business_id is None else now,
        account=location["account"],
        title=profile["title"],
        profile=json.dumps({**profile, **(location.get("provider_profile") or {})}),
        profile_read_at=now,
        is_verified=is_verified,
        verification_state=state,
        sync_enabled=location["sync_enabled"],
        source=json.dumps(profiles.split(profile, None)[0]),
        last_sync=None if last_sync is None else json.dumps(last_sync),
    )
    if last_sync is not None:
        synced_at = parse_iso(location["last_synced_at"])
        sync_id, count = new_sync_id(synced_at, services.entropy), len(profiles.leaves(last_sync))
        await sync.add(
            session, location["user_id"], profile["name"], SyncRow(sync_id, synced_at, "success", "push", count)
        )
