"""The requests of an API key."""

from profilesvc.api.endpoint import Routes
from profilesvc.api.routes.keys import KEY
from profilesvc.contract.requests import KeyRequests, KeyRequestsQuery
from profilesvc.services.access import USER
from profilesvc.services.context import Caller, Services
from profilesvc.services.insight import key_requests

routes = Routes("keys_requests", addition=True, no_store=True)


@routes.endpoint(f"GET {KEY}/requests", access=USER, query=KeyRequestsQuery, data=KeyRequests)
async def list_key_requests(services: Services, caller: Caller, client_id: str, query: KeyRequestsQuery) -> KeyRequests:
    """List an API key's requests.

    Every request with the key's secret or one of its tokens is counted per day, also one that was rejected. The log of
    the last 7 days shows why calls failed. It has no bodies, queries and headers.
    """
    return await key_requests.read(services, caller, client_id, query)
