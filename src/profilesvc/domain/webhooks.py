"""The rules of webhooks: the signature of Standard Webhooks, the schedule of attempts, secrets."""

import base64
import hashlib
import hmac
from collections.abc import Sequence

from profilesvc.domain.time import DAY, HOUR, MINUTE, SECOND

# Waits before the attempts after the first one (docs/events.md).
SCHEDULE = (5 * SECOND, 5 * MINUTE, 30 * MINUTE, 2 * HOUR, 5 * HOUR, 10 * HOUR, 14 * HOUR, 20 * HOUR, 24 * HOUR)
JITTER = 0.1  # of a wait, so that deliveries that failed together do not return together
MAX_WAIT = DAY  # the longest Retry-After that is followed
FAILING_FOR = 5 * DAY  # after which a channel is disabled
OVERLAP = DAY  # how long the previous secret signs too
PREFIX = "whsec_"
_DEFAULT_KEY = b"profilesvc"


def next_wait(tries: int, chance: float) -> int | None:
    """Return the milliseconds to wait after `tries` failed attempts, or None after the last; `chance` is 0 to 1."""
    return None if tries > len(SCHEDULE) else round(SCHEDULE[tries - 1] * (1 + JITTER * chance))


def secret(pepper: bytes | None, nonce: str) -> bytes:
    """Return the secret of a webhook. With a pepper, a copy of the database is not enough to sign."""
    return derived(pepper, "webhook", nonce)


def derived(pepper: bytes | None, purpose: str, nonce: str) -> bytes:
    """Return a secret for one purpose. Only who knows the nonce of a channel and the pepper can compute it."""
    return hmac.digest(pepper or _DEFAULT_KEY, f"{purpose}:{nonce}".encode(), hashlib.sha256)


def shown_secret(key: bytes) -> str:
    """Return a secret as its owner gets it, such as `whsec_MfKQ…`."""
    return PREFIX + base64.b64encode(key).decode()


def signature(keys: Sequence[bytes], message_id: str, timestamp: int, body: bytes) -> str:
    """Return the header `webhook-signature` of Standard Webhooks: one signature for each key."""
    signed = f"{message_id}.{timestamp}.".encode() + body
    return " ".join("v1," + base64.b64encode(hmac.digest(key, signed, hashlib.sha256)).decode() for key in keys)
