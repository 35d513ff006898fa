"""The page of a delivery to a webhook: its request, and the response to each attempt."""

from quart import Blueprint, Response

from profilesvc.contract.json import JsonObject
from profilesvc.dashboard import pages, problems
from profilesvc.dashboard.visits import Visit, view
from profilesvc.delivery import requests
from profilesvc.domain.errors import ServiceError
from profilesvc.services.notify import deliveries, webhooks

_DELIVERY = "/webhooks/<webhook_id>/deliveries/<delivery_id>"


blueprint = Blueprint("deliveries", __name__)


@view(blueprint, _DELIVERY)
async def show(visit: Visit, webhook_id: str, delivery_id: str) -> Response:
    return pages.page("delivery.html", **await _values(visit, webhook_id, delivery_id))


@view(blueprint, f"{_DELIVERY}/live")
async def live(visit: Visit, webhook_id: str, delivery_id: str) -> Response:
    return pages.page("_delivery.html", **await _values(visit, webhook_id, delivery_id))


@view(blueprint, f"{_DELIVERY}/resend", "POST")
async def resend(visit: Visit, webhook_id: str, delivery_id: str) -> Response:
    try:
        queued = await deliveries.resend(visit.services, visit.caller, webhook_id, delivery_id)
    except ServiceError as error:
        values = await _values(visit, webhook_id, delivery_id)
        return pages.page("delivery.html", problems=problems.from_error(error), **values)
    return pages.redirect(f"{pages.PATH}/webhooks/{webhook_id}/deliveries/{queued.id}", "queued")


async def _values(visit: Visit, webhook_id: str, delivery_id: str) -> JsonObject:
    webhook = await webhooks.get(visit.services, visit.caller, webhook_id)
    delivery = await deliveries.get_delivery(visit.services, visit.caller, webhook_id, delivery_id)
    return {
        "visit": visit,
        "webhook": webhook,
        "delivery": delivery,
        "sent": await requests.sent_request(visit.services, visit.caller, webhook.id, delivery),
    }
