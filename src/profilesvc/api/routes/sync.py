"""Sync: compare, push, history."""

from profilesvc.api.endpoint import READ, WRITE, Routes
from profilesvc.contract.errors import (
    CONFLICT,
    LOCATION_NOT_VERIFIED,
    PLAN_RESTRICTION,
    PROVIDER_API_ERROR,
    SYNC_DISABLED,
)
from profilesvc.contract.json import JsonObject
from profilesvc.contract.provider.location import Location
from profilesvc.contract.sync import SyncComparison, SyncHistory, SyncHistoryQuery, SyncPreview, SyncQuery, SyncResult
from profilesvc.domain.masks import masked_body
from profilesvc.services import comparison, sync
from profilesvc.services.context import AllowedLocation, Caller, Rendered, Services
from profilesvc.services.idempotency import IdempotencyKey

routes = Routes("sync")


@routes.endpoint(
    "GET /sync/comparison/<location:locationId>", access=READ, data=SyncComparison, errors=(PROVIDER_API_ERROR,)
)
async def compare_profile(services: Services, location: AllowedLocation) -> SyncComparison:
    """Compare a profile.

    Compare the profile that was last requested with the provider's current one.
    """
    return await comparison.compare(services, location)


@routes.endpoint(
    "POST /sync/<location:locationId>",
    access=WRITE,
    query=SyncQuery,
    body=dict,
    body_schema=Location,
    data=SyncResult | SyncPreview,
    errors=(LOCATION_NOT_VERIFIED, SYNC_DISABLED, CONFLICT, PLAN_RESTRICTION, PROVIDER_API_ERROR),
)
async def sync_profile(
    services: Services,
    caller: Caller,
    location: AllowedLocation,
    query: SyncQuery,
    body: JsonObject,
    idempotency: IdempotencyKey | None,
) -> Rendered | SyncPreview:
    """Sync a profile.

    Send profile data to the provider. Fields that it cannot accept are named in `fieldsFiltered`. With
    `validateOnly=true` nothing is changed, and the response shows what would change. With `updateMask` only the named
    fields of the body are synced.
    """
    if query.updateMask is not None:
        body = masked_body(body, query.updateMask)
    if query.validateOnly == "true":
        return await comparison.preview(services, location, body)
    return await sync.run(services, caller, location, body, idempotency)


@routes.endpoint("GET /sync/history/<location:locationId>", access=READ, query=SyncHistoryQuery, data=SyncHistory)
async def list_sync_history(services: Services, location: AllowedLocation, query: SyncHistoryQuery) -> SyncHistory:
    """List past syncs.

    The newest sync is first. The pages end after the last 10,000 syncs.
    """
    return await sync.history(services, location, query)
