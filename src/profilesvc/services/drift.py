"""Differences of the provider's profile from the last sync: `profile.drifted`, once per distinct difference."""

import hashlib
import json

import orjson
from sqlalchemy.ext.asyncio import AsyncSession

from profilesvc.contract.events import ProfileDrifted
from profilesvc.contract.json import JsonObject
from profilesvc.contract.sync import Difference
from profilesvc.domain import meaning, profiles, verification
from profilesvc.domain.masks import Masks
from profilesvc.provider.port import Provider
from profilesvc.services import events
from profilesvc.services.context import AllowedLocation, Services
from profilesvc.services.provider_logins import require_kept
from profilesvc.storage import locations
from profilesvc.storage.locations import LocationState


async def note(
    services: Services,
    location: AllowedLocation,
    row: LocationState,
    profile: JsonObject,
    started: int,
    holder: str | None = None,
) -> None:
    """Compare a profile that was read after `started` with the last sync, by the row from before that reading.

    Nothing is written while the differences are those that were reported last, or if a sync has run since. `holder` is
    that of the sync's lock if a sync reports what it has found.
    """
    synced = json.loads(row.last_sync or "{}")
    differences = profiles.differences(synced, profile, profiles.filtered_leaves(synced, location.plan.syncable))
    digest = _digest(differences, profile)
    if digest == row.drift:
        return
    async with services.storage.write() as session:
        if await locations.drifted(session, row, digest, started, holder) and differences:
            _publish(services, session, row.owner_id, row.name, differences)


def _digest(differences: list[JsonObject], profile: JsonObject) -> str | None:
    """Return what identifies these differences, whatever the spelling of their values; None for none."""
    if not differences:
        return None
    region = meaning.region_of(profile)
    formed = [
        one | {side: meaning.form(one["field"], one[side], region) for side in ("source", "provider")}
        for one in differences
    ]
    return hashlib.sha256(orjson.dumps(formed, option=orjson.OPT_SORT_KEYS)).hexdigest()


def _differs(one: JsonObject, profile: JsonObject) -> bool:
    region = meaning.region_of(profile)
    return not meaning.same(one["field"], one["source"], one["provider"], (region, region))


def _publish(services: Services, session: AsyncSession, owner_id: int, name: str, fields: list[JsonObject]) -> None:
    differences = [Difference(**field) for field in fields]
    event = events.new("profile.drifted", ProfileDrifted(location_id=name, differences=differences), location_name=name)
    events.publish(services, session, owner_id, event)


async def note_google(
    services: Services, location: AllowedLocation, remote: Provider, profile: JsonObject, *, is_check: bool = False
) -> int:
    """Publish what the provider itself has changed, once per change, and return how many calls that took.

    The profile only shows that there is something. It is read if nothing was published of it yet, or for a check.

    Raises:
        ProviderError: The provider's version could not be read.
        ServiceError: SERVICE_UNAVAILABLE.
    """
    is_updated = verification.has_flag(profile, "hasGoogleUpdated")
    async with services.storage.read() as session:
        before = await locations.google_update(session, location.owner_id, location.name)
    if not is_updated and before is None:
        return 0
    edits, calls = list[JsonObject](), 0
    if is_updated:
        if before is not None and not is_check:
            return 0
        edits, calls = _google_differences(profile, await remote.google_updated(location.name)), 1
    digest = _digest(edits, profile)
    if digest != before:
        async with services.storage.write() as session:
            await require_kept(session, location)
            owner_id, name = location.owner_id, location.name
            differing = [one for one in edits if _differs(one, profile)]
            if await locations.note_google_update(session, owner_id, name, before, digest) and differing:
                _publish(services, session, owner_id, name, differing)
    return calls


def _google_differences(profile: JsonObject, updated: JsonObject) -> list[JsonObject]:
    """Return the fields that the provider shows consumers with another value; those in review are the owner's own."""
    location, masks = updated.get("location") or {}, Masks.of(updated)
    values = [(path, profiles.at(profile, path), profiles.at(location, path)) for path in sorted(masks.theirs)]
    return [{"field": path, "source": ours, "provider": theirs} for path, ours, theirs in values if ours != theirs]
