"""Compare a site's data with the provider's, and preview a sync; nothing is changed."""

import json

from profilesvc.contract.json import JsonObject
from profilesvc.contract.sync import ComparedField, FilteredField, SyncComparison, SyncPreview
from profilesvc.domain import profiles
from profilesvc.domain.time import iso
from profilesvc.domain.updates import NO_EDITS, Masks, has_flag
from profilesvc.provider.port import Provider
from profilesvc.services.access import require_plan
from profilesvc.services.context import AllowedLocation, Services
from profilesvc.services.locations import Found, load, note
from profilesvc.services.provider_errors import raising_provider_failure
from profilesvc.services.provider_logins import provider_at
from profilesvc.services.sync import checked, require_syncable


async def compare(services: Services, location: AllowedLocation) -> SyncComparison:
    """Return the source, the provider's data (read live), the last sync, and where source and provider differ (D-85).

    Raises:
        ServiceError: PROVIDER_API_ERROR.
    """
    row, now = await load(services, location), services.clock.now()
    with raising_provider_failure():
        remote = await provider_at(services, location)
        provider = await remote.location(location.name)
        source = json.loads(row.source or "{}")
        filtered = profiles.filtered_leaves(source, location.plan.syncable)
        found = profiles.differences(source, provider, filtered)
        edits = await _edits(remote, location, provider) if found else NO_EDITS
    await note(services, location, remote, Found(row, provider, now))
    return SyncComparison(
        source=source,
        provider=provider,
        lastSync=json.loads(row.last_sync or "{}"),
        differences=[ComparedField(**one, editStatus=edits.status(one["field"])) for one in found],
        filtered=filtered,
    )


def has_edits(provider: JsonObject) -> bool:
    """Return whether consumers see other values than the owner's, by the metadata of a profile."""
    return has_flag(provider, "hasGoogleUpdated") or has_flag(provider, "hasPendingEdits")


async def _edits(remote: Provider, location: AllowedLocation, provider: JsonObject) -> Masks:
    """Return the states of edits, by a second call only if the profile's metadata shows that there are any."""
    if not has_edits(provider):
        return NO_EDITS
    return Masks.of(await remote.google_updated(location.name))


async def preview(services: Services, location: AllowedLocation, body: JsonObject) -> SyncPreview:
    """Return what a sync of the body would do now, without a patch or an entry in the history.

    Raises:
        ServiceError: The same as for a sync.
    """
    push = checked(location, body)
    require_plan(location, "sync")
    row = require_syncable(await load(services, location))
    changed, unchanged = list[str](), list[str]()
    if push.sendable:
        with raising_provider_failure():
            remote = await provider_at(services, location)
            patch = profiles.plan_patch(await remote.location(row.name), push.sendable)
        changed, unchanged = patch.changed, patch.unchanged
    reasons = profiles.filter_reasons(body, location.plan.syncable)
    return SyncPreview(
        status="success" if push.sendable else "skipped",
        fieldsUpdated=changed,
        fieldsUnchanged=unchanged,
        fieldsFiltered=push.filtered,
        reasons=[FilteredField(field=path, reason=reason) for path, reason in reasons],
        timestamp=iso(services.clock.now()),
    )
