"""API keys: the dashboard user's routes."""

from profilesvc.api.access import USER, services
from profilesvc.api.endpoint import Routes
from profilesvc.contract.errors import CONFLICT, NOT_FOUND, PLAN_RESTRICTION
from profilesvc.contract.keys import BusinessList, KeyCreate, KeyCreated, KeyList, KeyListQuery, KeyRevoked
from profilesvc.services import keys
from profilesvc.services.context import Caller

routes = Routes("keys")


@routes.endpoint(
    "POST /developer/credentials",
    access=USER,
    body=KeyCreate,
    data=KeyCreated,
    status=201,
    no_store=True,
    errors=(NOT_FOUND, CONFLICT, PLAN_RESTRICTION),
)
async def create_key(caller: Caller, body: KeyCreate) -> KeyCreated:
    """Create an API key; its secret is shown in this answer only."""
    return await keys.create(services(), caller, body)


@routes.endpoint("GET /developer/credentials", access=USER, query=KeyListQuery, data=KeyList, no_store=True)
async def list_keys(caller: Caller, query: KeyListQuery) -> KeyList:
    """List your API keys, newest first; never their secrets."""
    return await keys.list_all(services(), caller, query.include_revoked == "true")


@routes.endpoint(
    "DELETE /developer/credentials/<client_id>", access=USER, data=KeyRevoked, no_store=True, errors=(NOT_FOUND,)
)
async def revoke_key(caller: Caller, client_id: str) -> KeyRevoked:
    """Revoke an API key; all tokens issued with it are invalid at once."""
    return await keys.revoke(services(), caller, client_id)


@routes.endpoint("GET /businesses", access=USER, data=BusinessList)
async def list_businesses(caller: Caller) -> BusinessList:
    """List your businesses. An addition of this service (D-23)."""
    return await keys.businesses(services(), caller)
