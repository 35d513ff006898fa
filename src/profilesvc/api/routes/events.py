"""The log of events, for the owner."""

from profilesvc.api.endpoint import Routes
from profilesvc.contract.events import EventList, EventListQuery
from profilesvc.services import events
from profilesvc.services.access import USER
from profilesvc.services.context import Caller, Services

routes = Routes("events", addition=True, no_store=True)


@routes.endpoint("GET /events", access=USER, query=EventListQuery, data=EventList)
async def list_events(services: Services, caller: Caller, query: EventListQuery) -> EventList:
    """List your events.

    The events of your keys, sites and locations, oldest first, for 30 days. Webhooks receive the same documents. To
    continue, send `next_after` of the last response as `after`.
    """
    return await events.list_page(services, caller, query)
