"""The examples of webhooks for the OpenAPI document. Nothing is sent: a delivery stays as it is queued."""

import itertools

import httpx

from profilesvc.contract.json import JsonObject
from support.examples.recorder import Examples

_SINCE = {"since": "2026-01-02T00:00:00Z"}


def record(examples: Examples, owner: httpx.Client) -> None:
    """Record the life of a webhook."""
    url, types = "https://hooks.harbour.example/profiles", ["connection.offline", "connection.online"]
    webhook = examples.ok("create_webhook", "Two types of events", owner, {"url": url, "types": types})
    chat = {"url": "https://hooks.slack.example/services/T0/B0/x", "format": "slack", "description": "#alerts"}
    examples.ok("create_webhook", "A channel of Slack", owner, chat)
    examples.fails("create_webhook", "A private address", owner, {"url": "https://169.254.169.254/latest"})
    examples.fails("create_webhook", "The same endpoint again", owner, {"url": url})
    examples.ok("list_webhooks", "Two webhooks", owner)
    here: JsonObject = {"webhook_id": webhook["id"]}
    examples.ok("get_webhook", "A webhook", owner, **here)
    examples.ok("change_webhook", "All types", owner, {"types": []}, **here)
    examples.fails("change_webhook", "An unknown type", owner, {"types": ["key.lost"]}, **here)
    examples.ok("roll_webhook", "A new secret", owner, **here)
    delivery = examples.ok("test_webhook", "A queued test", owner, **here)
    examples.ok("list_deliveries", "The newest delivery", owner, limit=1, **here)
    examples.fails("list_deliveries", "A limit of 0", owner, limit=0, **here)
    examples.ok("resend_delivery", "The same again", owner, **here, delivery_id=delivery["id"])
    examples.ok("recover_webhook", "Events of a night", owner, _SINCE, **here)
    examples.fails("recover_webhook", "A time in no format", owner, {"since": "yesterday"}, **here)
    examples.ok("change_webhook", "A pause", owner, {"enabled": False}, **here)
    for name, body in (("test_webhook", None), ("recover_webhook", _SINCE)):
        examples.fails(name, "A webhook that is disabled", owner, body, **here)
    again: JsonObject = {**here, "delivery_id": delivery["id"]}
    examples.fails("resend_delivery", "A webhook that is disabled", owner, **again)
    _record_missing(examples, owner, here)
    _record_limit(examples, examples.lab.user("carol"))
    examples.ok("delete_webhook", "A webhook and its deliveries", owner, **here)


def _record_missing(examples: Examples, owner: httpx.Client, here: JsonObject) -> None:
    missing: JsonObject = {"webhook_id": "999"}
    for name in ("get_webhook", "delete_webhook", "roll_webhook", "test_webhook", "list_deliveries"):
        examples.fails(name, "An unknown webhook", owner, **missing)
    examples.fails("change_webhook", "An unknown webhook", owner, {}, **missing)
    examples.fails("recover_webhook", "An unknown webhook", owner, _SINCE, **missing)
    examples.fails("resend_delivery", "An unknown delivery", owner, **here, delivery_id="999")


def _record_limit(examples: Examples, owner: httpx.Client) -> None:
    """Create webhooks until the plan includes no more."""
    numbers = itertools.count(1)
    while (
        response := examples.call("create_webhook", owner, {"url": f"https://hooks.example/{next(numbers)}"})
    ).is_success:
        continue
    examples.failed("create_webhook", "The plan includes no more", response)
