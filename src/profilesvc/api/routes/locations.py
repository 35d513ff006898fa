"""Locations: list, read, the sync switch, verification."""

from profilesvc.api.endpoint import READ, WRITE, Routes
from profilesvc.contract.errors import LOCATION_NOT_VERIFIED, PLAN_RESTRICTION, PROVIDER_API_ERROR
from profilesvc.contract.locations import (
    LocationDetail,
    LocationList,
    LocationListQuery,
    SyncSwitch,
    SyncSwitched,
    VerificationRefreshed,
)
from profilesvc.services import locations
from profilesvc.services.context import AllowedLocation, Caller, Rendered, Services

routes = Routes("locations")


@routes.endpoint("GET /external-business/locations", access=READ, query=LocationListQuery, data=LocationList)
async def list_locations(services: Services, caller: Caller, query: LocationListQuery) -> Rendered:
    """List locations.

    The locations that the caller may see, sorted by title, then by name.
    """
    return await locations.list_page(services, caller, query)


@routes.endpoint(
    "GET /external-business/locations/<location:locationId>",
    access=READ,
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
    access=WRITE,
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
    access=WRITE,
    data=VerificationRefreshed,
    errors=(PROVIDER_API_ERROR,),
)
async def refresh_verification(services: Services, location: AllowedLocation) -> VerificationRefreshed:
    """Refresh the verification.

    Ask the provider whether the location is verified.
    """
    return await locations.refresh_verification(services, location)
