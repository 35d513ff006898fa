"""Compare a site's data with the provider's, and preview a sync; nothing is changed."""

import json

from profilesvc.contract.errors import LOCATION_NOT_VERIFIED
from profilesvc.contract.json import JsonObject
from profilesvc.contract.sync import CheckedBy, ComparedField, FilteredField, SyncComparison, SyncPreview
from profilesvc.domain import profiles, verification
from profilesvc.domain.errors import ServiceError
from profilesvc.domain.masks import NO_EDITS, Masks
from profilesvc.domain.time import iso
from profilesvc.domain.verification import has_flag
from profilesvc.provider.port import Provider, ProviderError
from profilesvc.services.access import require_plan
from profilesvc.services.context import AllowedLocation, Services
from profilesvc.services.locations import Observed, load, note
from profilesvc.services.provider_errors import provider_failure, raising_provider_failure
from profilesvc.services.provider_logins import provider_at
from profilesvc.services.sync import Push, checked, planned, require_syncable
from profilesvc.storage.locations import LocationState

_DECIDED = ("rejected", "reauth_required")  # the reasons of an error that a sync would have too, whenever it is sent


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
        differences = profiles.differences(source, provider, filtered)
        has_states = differences and has_edits(provider)  # a second call reads them
        edits = Masks.of(await remote.google_updated(location.name)) if has_states else NO_EDITS
    await note(services, location, remote, Observed(row, provider, now))
    return SyncComparison(
        source=source,
        provider=provider,
        lastSync=json.loads(row.last_sync or "{}"),
        differences=[ComparedField(**one, editStatus=edits.status(one["field"])) for one in differences],
        filtered=filtered,
    )


def has_edits(provider: JsonObject) -> bool:
    """Return whether consumers see other values than the owner's, by the metadata of a profile."""
    return has_flag(provider, "hasGoogleUpdated") or has_flag(provider, "hasPendingEdits")


async def preview(services: Services, location: AllowedLocation, body: JsonObject) -> SyncPreview:
    """Return what a sync of the body would do now, without an update or an entry in the history.

    The provider validates the update, because only it knows all its rules (D-124).

    Raises:
        ServiceError: The same as for a sync.
    """
    push = await checked(services, location, body)
    require_plan(location, "sync")
    row = require_syncable(await load(services, location))
    patch, checked_by = await _tried(services, location, row, push)
    reasons = profiles.filter_reasons(body, location.plan.syncable)
    return SyncPreview(
        checked=checked_by,
        status="success" if push.sendable else "skipped",
        fieldsUpdated=patch.changed,
        fieldsUnchanged=patch.unchanged,
        fieldsFiltered=push.filtered,
        reasons=[FilteredField(field=path, reason=reason) for path, reason in reasons],
        timestamp=iso(services.clock.now()),
    )


async def _tried(
    services: Services, location: AllowedLocation, row: LocationState, push: Push
) -> tuple[profiles.Patch, CheckedBy]:
    """Return the patch of a push, and who has checked it. What the provider rejects is the error of a sync.

    If the provider cannot be asked, the patch is for the profile that was last read from it.
    """
    patch = None
    if push.sendable:
        try:
            remote = await provider_at(services, location)
            current = await remote.location(row.name)
            await _require_verified(remote, row.name, current)
            patch = planned(current, push)
            if patch.mask:
                await remote.validate_location(row.name, patch.body, patch.mask)
        except ProviderError as error:
            if error.reason in _DECIDED or not row.profile_read_at:
                raise provider_failure(error) from error
        else:
            return patch, "provider"
    return patch or planned(json.loads(row.profile or "{}"), push), "format"


async def _require_verified(remote: Provider, name: str, current: JsonObject) -> None:
    """Require what a sync requires of the provider's profile, and store nothing (D-73).

    Raises:
        ServiceError: LOCATION_NOT_VERIFIED.
    """
    if has_flag(current, "hasVoiceOfMerchant"):
        return
    read = await remote.verification(name)
    is_verified, state = verification.derive(read.voice_of_merchant, read.verifications)
    if not is_verified:
        raise ServiceError(LOCATION_NOT_VERIFIED, verificationState=state)
