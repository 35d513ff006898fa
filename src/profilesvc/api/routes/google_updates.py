"""The provider's own changes of a profile: read, accept, reject."""

from profilesvc.api.endpoint import READ, WRITE, Routes
from profilesvc.contract.errors import (
    CONFLICT,
    LOCATION_NOT_VERIFIED,
    PLAN_RESTRICTION,
    PROVIDER_API_ERROR,
    SYNC_DISABLED,
)
from profilesvc.contract.updates import GoogleUpdated, UpdateMask, UpdateSettled
from profilesvc.services.context import AllowedLocation, Caller, Rendered, Services
from profilesvc.services.feed import updates
from profilesvc.services.idempotency import IdempotencyKey

routes = Routes("locations_updates", addition=True)
_UPDATED = "/external-business/locations/<location:locationId>/google-updated"
_SETTLING = (LOCATION_NOT_VERIFIED, SYNC_DISABLED, CONFLICT, PLAN_RESTRICTION, PROVIDER_API_ERROR)


@routes.endpoint(f"GET {_UPDATED}", access=READ, data=GoogleUpdated, errors=(PROVIDER_API_ERROR,))
async def get_google_updated(services: Services, location: AllowedLocation) -> Rendered:
    """Get provider's changes.

    The profile as consumers see it, and masks of the fields that differ from the owner's values or are in review. It
    is read from the provider on every call.
    """
    return await updates.read(services, location)


@routes.endpoint(f"POST {_UPDATED}/accept", access=WRITE, body=UpdateMask, data=UpdateSettled, errors=_SETTLING)
async def accept_google_update(
    services: Services, caller: Caller, location: AllowedLocation, body: UpdateMask, idempotency: IdempotencyKey | None
) -> Rendered:
    """Accept provider's changes.

    Patch the profile with the provider's values of the fields in `updateMask`. They become the desired values, so
    that a later sync does not change them back.
    """
    return await updates.settle(services, caller, location, ("accept", body.updateMask), idempotency)


@routes.endpoint(f"POST {_UPDATED}/reject", access=WRITE, body=UpdateMask, data=UpdateSettled, errors=_SETTLING)
async def reject_google_update(
    services: Services, caller: Caller, location: AllowedLocation, body: UpdateMask, idempotency: IdempotencyKey | None
) -> Rendered:
    """Reject provider's changes.

    Patch the profile with the owner's last values of the fields in `updateMask`, which replace the provider's.
    """
    return await updates.settle(services, caller, location, ("reject", body.updateMask), idempotency)
