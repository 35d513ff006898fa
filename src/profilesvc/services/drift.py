"""Whether the provider's profile still is what was synced last: `profile.drifted`, once per distinct difference."""

import hashlib
import json

import orjson

from profilesvc.contract.events import ProfileDrifted
from profilesvc.contract.json import JsonObject
from profilesvc.contract.sync import Difference
from profilesvc.domain import profiles
from profilesvc.services import events
from profilesvc.services.context import AllowedLocation, Services
from profilesvc.storage import locations
from profilesvc.storage.locations import LocationState


async def note(services: Services, location: AllowedLocation, row: LocationState, profile: JsonObject) -> None:
    """Compare a profile that was just read from the provider with the last sync.

    Nothing is written while the differences are those that were reported last.
    """
    synced = json.loads(row.last_sync or "{}")
    found = profiles.differences(synced, profile, profiles.filtered_leaves(synced, location.plan.syncable))
    digest = hashlib.sha256(orjson.dumps(found, option=orjson.OPT_SORT_KEYS)).hexdigest() if found else None
    if digest == row.drift:
        return
    async with services.storage.write() as session:
        if await locations.drifted(session, row, digest) and found:
            differences = [Difference(**difference) for difference in found]
            data = ProfileDrifted(location_id=row.name, differences=differences)
            event = events.new("profile.drifted", data, location_name=row.name)
            events.publish(services, session, row.owner_id, event)
