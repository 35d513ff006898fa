"""Locations: list, read, the sync switch, verification, the provider's own changes."""

from profilesvc.api.endpoint import Routes
from profilesvc.contract.errors import (
    CONFLICT,
    LOCATION_NOT_VERIFIED,
    PLAN_RESTRICTION,
    PROVIDER_API_ERROR,
    SYNC_DISABLED,
)
from profilesvc.contract.locations import (
    LocationDetail,
    LocationList,
    LocationListQuery,
    SyncSwitch,
    SyncSwitched,
    VerificationRefreshed,
)
from profilesvc.contract.updates import GoogleUpdated, UpdateMask, UpdateSettled
from profilesvc.domain.permissions import Permission
from profilesvc.services import locations
from profilesvc.services.access import user_or_service
from profilesvc.services.context import AllowedLocation, Caller, Rendered, Services
from profilesvc.services.feed import updates
from profilesvc.services.idempotency import IdempotencyKey

routes = Routes("locations")
_SETTLING = (LOCATION_NOT_VERIFIED, SYNC_DISABLED, CONFLICT, PLAN_RESTRICTION, PROVIDER_API_ERROR)


@routes.endpoint(
    "GET /external-business/locations",
    access=user_or_service(Permission.READ),
    query=LocationListQuery,
    data=LocationList,
)
async def list_locations(services: Services, caller: Caller, query: LocationListQuery) -> Rendered:
    """List locations.

    The locations that the caller may see, sorted by title, then by name.
    """
    return await locations.list_page(services, caller, query)


@routes.endpoint(
    "GET /external-business/locations/<location:locationId>",
    access=user_or_service(Permission.READ),
    data=LocationDetail,
    errors=(PROVIDER_API_ERROR,),
)
async def get_location(services: Services, location: AllowedLocation) -> Rendered:
    """Get a location.

    By default the profile is at most a minute old, with the change feed at most a day. While the provider is down,
    the last one is returned, and `X-Data-Age` is its age in seconds.
    """
    return await locations.get(services, location)


@routes.endpoint(
    "PATCH /external-business/locations/<location:locationId>/sync",
    access=user_or_service(Permission.WRITE),
    body=SyncSwitch,
    data=SyncSwitched,
    errors=(LOCATION_NOT_VERIFIED, PLAN_RESTRICTION),
)
async def switch_sync(services: Services, location: AllowedLocation, body: SyncSwitch) -> SyncSwitched:
    """Switch sync on or off.

    Only a verified location can be switched on.
    """
    return await locations.switch_sync(services, location, body.syncEnabled)


@routes.endpoint(
    "POST /external-business/locations/<location:locationId>/refresh-verification",
    access=user_or_service(Permission.WRITE),
    data=VerificationRefreshed,
    errors=(PROVIDER_API_ERROR,),
)
async def refresh_verification(services: Services, location: AllowedLocation) -> VerificationRefreshed:
    """Refresh the verification.

    Ask the provider whether the location is verified.
    """
    return await locations.refresh_verification(services, location)


@routes.endpoint(
    "GET /external-business/locations/<location:locationId>/google-updated",
    access=user_or_service(Permission.READ),
    data=GoogleUpdated,
    errors=(PROVIDER_API_ERROR,),
    addition=True,
)
async def get_google_updated(services: Services, location: AllowedLocation) -> Rendered:
    """Get provider's changes.

    The profile as consumers see it, and masks of the fields that differ from the owner's values or are in review. It
    is read from the provider on every call.
    """
    return await updates.read(services, location)


@routes.endpoint(
    "POST /external-business/locations/<location:locationId>/google-updated/accept",
    access=user_or_service(Permission.WRITE),
    body=UpdateMask,
    data=UpdateSettled,
    errors=_SETTLING,
    addition=True,
)
async def accept_google_update(
    services: Services,
    caller: Caller,
    location: AllowedLocation,
    body: UpdateMask,
    idempotency: IdempotencyKey | None,
) -> Rendered:
    """Accept provider's changes.

    Patch the profile with the provider's values of the fields in `updateMask`. They become the desired values, so
    that a later sync does not change them back.
    """
    return await updates.settle(services, caller, location, ("accept", body.updateMask), idempotency)


@routes.endpoint(
    "POST /external-business/locations/<location:locationId>/google-updated/reject",
    access=user_or_service(Permission.WRITE),
    body=UpdateMask,
    data=UpdateSettled,
    errors=_SETTLING,
    addition=True,
)
async def reject_google_update(
    services: Services,
    caller: Caller,
    location: AllowedLocation,
    body: UpdateMask,
    idempotency: IdempotencyKey | None,
) -> Rendered:
    """Reject provider's changes.

    Patch the profile with the owner's last values of the fields in `updateMask`, which replace the provider's.
    """
    return await updates.settle(services, caller, location, ("reject", body.updateMask), idempotency)
