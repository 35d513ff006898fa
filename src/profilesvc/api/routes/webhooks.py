"""Webhooks: create, change, replace the secret, test, and see what was delivered."""

from profilesvc.api.endpoint import Routes
from profilesvc.contract.errors import CONFLICT, PLAN_RESTRICTION
from profilesvc.contract.webhooks import (
    DeliveryEntry,
    DeliveryList,
    DeliveryListQuery,
    WebhookChange,
    WebhookCreate,
    WebhookCreated,
    WebhookDeleted,
    WebhookEntry,
    WebhookList,
    WebhookRecover,
    WebhookRecovered,
    WebhookRolled,
)
from profilesvc.services.access import USER
from profilesvc.services.context import Caller, Services
from profilesvc.services.notify import deliveries, webhooks

routes = Routes("webhooks", addition=True, no_store=True)
WEBHOOKS, WEBHOOK = "/webhooks", "/webhooks/<webhook_id>"


@routes.endpoint(
    f"POST {WEBHOOKS}",
    access=USER,
    body=WebhookCreate,
    data=WebhookCreated,
    status=201,
    created_at=lambda webhook: f"{WEBHOOKS}/{webhook['id']}",
    errors=(PLAN_RESTRICTION,),
)
async def create_webhook(services: Services, caller: Caller, body: WebhookCreate) -> WebhookCreated:
    """Create a webhook.

    Its secret is in this response only. Deliveries follow Standard Webhooks: verify `webhook-signature` before you
    use a body. A delivery that fails is repeated nine times within 76 hours.
    """
    return await webhooks.create(services, caller, body)


@routes.endpoint(f"GET {WEBHOOKS}", access=USER, data=WebhookList)
async def list_webhooks(services: Services, caller: Caller) -> WebhookList:
    """List your webhooks.

    The oldest is first. Secrets are never returned.
    """
    return await webhooks.list_all(services, caller)


@routes.endpoint(f"GET {WEBHOOK}", access=USER, data=WebhookEntry)
async def get_webhook(services: Services, caller: Caller, webhook_id: str) -> WebhookEntry:
    """Read a webhook.

    Its secret is never returned.
    """
    return await webhooks.get(services, caller, webhook_id)


@routes.endpoint(f"PATCH {WEBHOOK}", access=USER, body=WebhookChange, data=WebhookEntry)
async def change_webhook(services: Services, caller: Caller, webhook_id: str, body: WebhookChange) -> WebhookEntry:
    """Change a webhook.

    Fields that are not sent stay. A webhook that the service disabled is enabled by `enabled: true`; then use
    `recover` for the events that it missed.
    """
    return await webhooks.change(services, caller, webhook_id, body)


@routes.endpoint(f"DELETE {WEBHOOK}", access=USER, data=WebhookDeleted)
async def delete_webhook(services: Services, caller: Caller, webhook_id: str) -> WebhookDeleted:
    """Delete a webhook.

    Its deliveries are deleted too. To pause it, send `enabled: false`.
    """
    return await webhooks.delete(services, caller, webhook_id)


@routes.endpoint(f"POST {WEBHOOK}/roll", access=USER, data=WebhookRolled)
async def roll_webhook(services: Services, caller: Caller, webhook_id: str) -> WebhookRolled:
    """Replace a webhook's secret.

    The new secret is in this response only. For 24 hours each delivery has two signatures, one by the old secret.
    """
    return await webhooks.roll(services, caller, webhook_id)


@routes.endpoint(f"POST {WEBHOOK}/test", access=USER, data=DeliveryEntry, errors=(CONFLICT,))
async def test_webhook(services: Services, caller: Caller, webhook_id: str) -> DeliveryEntry:
    """Send a test event.

    Its type is `webhook.test`. The response has the delivery as it is queued; the list of deliveries shows the result.
    """
    return await deliveries.test(services, caller, webhook_id)


@routes.endpoint(f"GET {WEBHOOK}/deliveries", access=USER, query=DeliveryListQuery, data=DeliveryList)
async def list_deliveries(
    services: Services, caller: Caller, webhook_id: str, query: DeliveryListQuery
) -> DeliveryList:
    """List a webhook's deliveries.

    The newest is first, with each attempt: status, duration, and the start of the response. They are kept for 30 days.
    """
    return await deliveries.list_deliveries(services, caller, webhook_id, query)


@routes.endpoint(f"POST {WEBHOOK}/deliveries/<delivery_id>/resend", access=USER, data=DeliveryEntry, errors=(CONFLICT,))
async def resend_delivery(services: Services, caller: Caller, webhook_id: str, delivery_id: str) -> DeliveryEntry:
    """Send a delivery again.

    The event and its `webhook-id` are the same, so that a receiver can ignore what it has.
    """
    return await deliveries.resend(services, caller, webhook_id, delivery_id)


@routes.endpoint(f"POST {WEBHOOK}/recover", access=USER, body=WebhookRecover, data=WebhookRecovered, errors=(CONFLICT,))
async def recover_webhook(
    services: Services, caller: Caller, webhook_id: str, body: WebhookRecover
) -> WebhookRecovered:
    """Send missed events.

    Queues the events since a time that were not delivered and are not on their way.
    """
    return await deliveries.recover(services, caller, webhook_id, body)
