"""Webhooks by the client, and the check of deliveries next to that of the library `standardwebhooks`."""

import base64
import hmac
from datetime import UTC, datetime

import orjson
import pytest
from standardwebhooks import Webhook

from profilesvc.client import ProfileClient, WebhookRejected, verify_webhook
from profilesvc.client import errors as e
from support.clients.sdk import Recorded, Service, new_key

URL = "https://hooks.example/profiles"
BODY = b'{"id": "evt_1_1", "type": "key.created"}'
SECRET = "whsec_" + "MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"


def test_a_live_webhook_is_verified(service: Service, alice: ProfileClient) -> None:
    made = alice.create_webhook(URL, ["key.created"], "Ours")
    assert made.secret is not None
    assert made.secret.startswith("whsec_")
    assert made.secret not in repr(made)
    [listed] = alice.list_webhooks().webhooks
    assert listed == alice.webhook(made.id)
    assert (listed.url, listed.types, listed.description, listed.enabled) == (URL, ["key.created"], "Ours", True)
    rolled = alice.roll_webhook(made.id)
    assert rolled.secret != made.secret
    assert alice.webhook(made.id).previous_secret_expires_at == rolled.previous_secret_expires_at
    delivery = alice.test_webhook(made.id)
    again = alice.resend_delivery(made.id, delivery.id)
    page = alice.deliveries(made.id, limit=1)
    assert [each.id for each in page.deliveries] == [again.id]
    assert page.next_before is not None
    assert alice.deliveries(made.id, 1, page.next_before).deliveries[0].id == delivery.id
    changed = alice.change_webhook(made.id, f"{URL}/2", [], "", enabled=False)
    assert (changed.url, changed.types, changed.enabled, changed.disabled_reason) == (f"{URL}/2", [], False, "owner")
    new_key(alice)
    with pytest.raises(e.Conflict):
        alice.recover_webhook(made.id, "2026-01-02T00:00:00Z")
    alice.change_webhook(made.id, enabled=True)
    assert alice.recover_webhook(made.id, "2026-01-02T00:00:00Z").queued == len(alice.list_events().events)
    assert alice.recover_webhook(made.id, "2026-01-02T00:00:00Z").queued == 0, "they are on their way"
    assert alice.delete_webhook(made.id).deleted
    with pytest.raises(e.NotFound):
        alice.webhook(made.id)


def test_a_creation_is_not_repeated(alice: ProfileClient, recorded: Recorded) -> None:
    with pytest.raises(e.ValidationFailed) as caught:
        alice.create_webhook("http://hooks.example")
    assert caught.value.errors == [{"in": "body", "field": "url", "problem": "must start with https://"}]


def signed(secret: str = SECRET, at: int = 1_767_323_045, body: bytes = BODY) -> dict[str, str]:
    signature = Webhook(secret).sign("evt_1_1", datetime.fromtimestamp(at, UTC), body.decode())
    return {"Webhook-Id": "evt_1_1", "Webhook-Timestamp": str(at), "Webhook-Signature": signature}


def test_a_signature_of_the_library_is_accepted() -> None:
    headers = signed()
    assert verify_webhook(BODY, headers, SECRET, now=1_767_323_045 + 299) == orjson.loads(BODY)
    both = {**headers, "Webhook-Signature": f"v1a,x v1,AAAA {headers['Webhook-Signature']}"}
    assert verify_webhook(BODY, both, SECRET, now=1_767_323_045)["id"] == "evt_1_1"


@pytest.mark.parametrize(
    ("headers", "body", "now", "problem"),
    [
        (signed(), BODY + b" ", 0, "the signature is wrong"),
        (signed("whsec_AAAA"), BODY, 0, "the signature is wrong"),
        ({**signed(), "Webhook-Id": "evt_1_2"}, BODY, 0, "the signature is wrong"),
        ({**signed(), "Webhook-Timestamp": "1767323046"}, BODY, 0, "the signature is wrong"),
        ({**signed(), "Webhook-Signature": "v1,\u00e9"}, BODY, 0, "the signature is wrong"),
        (signed(), BODY, 301, "the delivery is more than 5 minutes old"),
        (signed(), BODY, -301, "the delivery is more than 5 minutes old"),
        ({}, BODY, 0, "a header is missing"),
        ({**signed(), "Webhook-Timestamp": "x"}, BODY, 0, "a header is missing"),
        ({**signed(), "Webhook-Signature": "v1,\udc80"}, BODY, 0, "a header is missing"),
        ({**signed(), "Webhook-Id": "\udc80"}, BODY, 0, "a header is missing"),
    ],
)
def test_A162_other_requests_are_refused(headers: dict[str, str], body: bytes, now: int, problem: str) -> None:
    with pytest.raises(WebhookRejected, match=problem):
        verify_webhook(body, headers, SECRET, now=1_767_323_045 + now)


def test_A162_a_timestamp_of_any_length_is_refused() -> None:
    with pytest.raises(WebhookRejected, match="a header is missing"):
        verify_webhook(BODY, {**signed(), "Webhook-Timestamp": "9" * 400}, SECRET)  # by the clock, which is a float


@pytest.mark.parametrize("secret", ["", "whsec_"])
def test_a_setting_without_a_secret_verifies_no_delivery(secret: str) -> None:
    by_no_key = base64.b64encode(hmac.digest(b"", b"evt_1_1.1767323045." + BODY, "sha256")).decode()
    with pytest.raises(WebhookRejected, match="the secret is no"):
        verify_webhook(BODY, {**signed(), "Webhook-Signature": f"v1,{by_no_key}"}, secret, now=1_767_323_045)
