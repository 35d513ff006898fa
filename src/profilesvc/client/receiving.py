"""The check of a delivery in a receiver of webhooks."""

import base64
import binascii
import hashlib
import hmac
import json
import time
from collections.abc import Mapping
from typing import Any

_TOLERANCE = 300  # seconds


class WebhookRejected(Exception):
    """A request to a receiver that is not a valid delivery. Respond with 401."""


def verify_webhook(body: bytes, headers: Mapping[str, str], secret: str, *, now: float | None = None) -> dict[str, Any]:
    """Check a delivery by Standard Webhooks and return the event.

    `body` is the body as it arrived, before JSON is parsed. The names of `headers` may have any case. A delivery can
    arrive twice: ignore an `id` that you have.

    Raises:
        WebhookRejected: The signature is wrong, or the delivery is more than 5 minutes old.
    """
    values = {name.lower(): value for name, value in headers.items()}
    try:
        message_id, timestamp = values["webhook-id"], values["webhook-timestamp"]
        age = (time.time() if now is None else now) - int(timestamp)
        key = base64.b64decode(secret.removeprefix("whsec_"), validate=True)
        if not key:  # of a setting that is missing: everybody could sign with it
            raise ValueError
        signatures = [signature.encode() for signature in values["webhook-signature"].split()]
        signed = hmac.digest(key, f"{message_id}.{timestamp}.".encode() + body, hashlib.sha256)
    except (KeyError, ValueError, OverflowError, binascii.Error):
        raise WebhookRejected("a header is missing or malformed, or the secret is no `whsec_…`") from None
    expected = b"v1," + base64.b64encode(signed)
    if not any(hmac.compare_digest(expected, signature) for signature in signatures):
        raise WebhookRejected("the signature is wrong")
    if abs(age) > _TOLERANCE:
        raise WebhookRejected("the delivery is more than 5 minutes old")
    event: dict[str, Any] = json.loads(body)
    return event
