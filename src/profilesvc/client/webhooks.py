"""The operations on webhooks."""

from collections.abc import Sequence

from profilesvc.client.operation import PREFIX, Operation
from profilesvc.contract.envelope import Success
from profilesvc.contract.events import EventType
from profilesvc.contract.webhooks import (
    DeliveryEntry,
    DeliveryList,
    Format,
    WebhookCreated,
    WebhookDeleted,
    WebhookEntry,
    WebhookList,
    WebhookRecovered,
    WebhookRolled,
)

_WEBHOOKS = f"{PREFIX}/webhooks"


def create_webhook(
    url: str,
    types: Sequence[EventType] = (),
    description: str = "",
    format: Format = "standard",  # noqa: A002  the name on the wire
) -> Operation[WebhookCreated]:
    """Create a webhook; its secret is in this response only. No `types` means all. There is no retry.

    Raises:
        ValidationFailed: The URL is not allowed, or another webhook has it.
        PlanRestricted: The plan includes no further webhook.
    """
    body = {"url": url, "types": list(types), "description": description, "format": format}
    return Operation("POST", _WEBHOOKS, Success[WebhookCreated], body=body)


def list_webhooks() -> Operation[WebhookList]:
    """List your webhooks, oldest first."""
    return Operation("GET", _WEBHOOKS, Success[WebhookList], repeatable=True)


def webhook(webhook_id: int) -> Operation[WebhookEntry]:
    """Return a webhook."""
    return Operation("GET", f"{_WEBHOOKS}/{webhook_id}", Success[WebhookEntry], repeatable=True)


def change_webhook(
    webhook_id: int,
    url: str | None = None,
    types: Sequence[EventType] | None = None,
    description: str | None = None,
    enabled: bool | None = None,
) -> Operation[WebhookEntry]:
    """Change a webhook; None keeps what it is.

    Raises:
        ValidationFailed: The URL is not allowed, or another webhook has it.
    """
    given = {"url": url, "types": None if types is None else list(types), "description": description}
    body = {name: value for name, value in {**given, "enabled": enabled}.items() if value is not None}
    return Operation("PATCH", f"{_WEBHOOKS}/{webhook_id}", Success[WebhookEntry], body=body, repeatable=True)


def delete_webhook(webhook_id: int) -> Operation[WebhookDeleted]:
    """Delete a webhook and its deliveries. If a lost attempt has already deleted it, that is a success."""
    path, deleted = f"{_WEBHOOKS}/{webhook_id}", WebhookDeleted(id=webhook_id)
    return Operation("DELETE", path, Success[WebhookDeleted], repeatable=True, result_if_missing=deleted)


def roll_webhook(webhook_id: int) -> Operation[WebhookRolled]:
    """Give a webhook a new secret; the old one signs too for 24 hours. There is no retry."""
    return Operation("POST", f"{_WEBHOOKS}/{webhook_id}/roll", Success[WebhookRolled])


def test_webhook(webhook_id: int) -> Operation[DeliveryEntry]:
    """Queue an event of the type `webhook.test`.

    Raises:
        Conflict: The webhook is disabled.
    """
    return Operation("POST", f"{_WEBHOOKS}/{webhook_id}/test", Success[DeliveryEntry])


def deliveries(webhook_id: int, limit: int = 20, before: str | None = None) -> Operation[DeliveryList]:
    """List one page of at most 100 deliveries with their attempts, newest first."""
    params = {"limit": str(limit)} | ({} if before is None else {"before": before})
    path = f"{_WEBHOOKS}/{webhook_id}/deliveries"
    return Operation("GET", path, Success[DeliveryList], params, repeatable=True)


def resend_delivery(webhook_id: int, delivery_id: int) -> Operation[DeliveryEntry]:
    """Send a delivery again, with the same id.

    Raises:
        Conflict: The webhook is disabled.
    """
    path = f"{_WEBHOOKS}/{webhook_id}/deliveries/{delivery_id}/resend"
    return Operation("POST", path, Success[DeliveryEntry])


def recover_webhook(webhook_id: int, since: str) -> Operation[WebhookRecovered]:
    """Queue the events since an RFC 3339 time that were not delivered.

    Raises:
        Conflict: The webhook is disabled.
    """
    path = f"{_WEBHOOKS}/{webhook_id}/recover"
    return Operation("POST", path, Success[WebhookRecovered], body={"since": since}, repeatable=True)
