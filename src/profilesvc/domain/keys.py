"""API keys: names, holds and secrets."""

import base64
import hashlib
import hmac
import re
from dataclasses import dataclass

from profilesvc.contract.visible import has_visible_text
from profilesvc.domain.entropy import Entropy
from profilesvc.domain.errors import invalid

CLIENT_ID = re.compile(r"svcid_[0-9]{1,19}_[0-9]{1,16}_[a-z0-9_-]{1,64}\Z", re.ASCII)
SECRET_BYTES = 48
SECRET_LENGTH = 64  # in base64
NAME_LIMIT = 100
SLUG_LIMIT = 64
_NOT_IN_SLUG = re.compile(r"[^a-z0-9_-]")

# Only the most severe hold is shown, because lifting a milder one would not activate the key.
SEVERITY: dict[str, int] = {"user_requested": 1, "plan_downgrade": 2, "billing_issue": 3, "security_concern": 4}


@dataclass(frozen=True, slots=True)
class Hold:
    """One reason why a key is deactivated, and since when (milliseconds)."""

    reason: str
    set_at: int


def clean_name(name: str) -> str:
    """Return the name without surrounding spaces.

    Raises:
        ServiceError: VALIDATION_ERROR unless 1 to 100 characters are left, one of them visible.
    """
    name = name.strip()
    if not 1 <= len(name) <= NAME_LIMIT:
        raise invalid("body", "name", f"must have 1 to {NAME_LIMIT} characters")
    if not has_visible_text(name):
        raise invalid("body", "name", "must have visible text")
    return name


def slug(name: str) -> str:
    """Return the name as it appears in a client id. Each space becomes an underscore; an empty result is `key`."""
    return _NOT_IN_SLUG.sub("", name.lower().replace(" ", "_"))[:SLUG_LIMIT] or "key"


def new_client_id(user_id: int, now_ms: int, name: str) -> str:
    """Return `svcid_{user_id}_{milliseconds}_{slug}`. On a collision the caller tries the next millisecond."""
    return f"svcid_{user_id}_{now_ms}_{slug(name)}"


def new_secret(entropy: Entropy) -> str:
    """Return 48 random bytes in standard base64: 64 characters without padding."""
    return base64.b64encode(entropy.token_bytes(SECRET_BYTES)).decode()


def spoilt_secret(secret: str) -> str:
    """Return a sentence for a wrong secret that has a space, else an empty string.

    Base64 has no space, so it was copied with the secret, or a form that was not encoded turned a + into it (RFC 6749
    appendix B).
    """
    bare = secret.strip()
    if " " not in secret:
        return ""
    if len(bare) == SECRET_LENGTH and " " not in bare:
        return " The secret was sent with a space before or after it. Remove the space."
    return " The secret was sent with a space in place of a +. Encode the + of a form as %2B (curl: --data-urlencode)."


def secret_digest(secret: str, pepper: bytes | None) -> str:
    """Return the digest of a secret in hex: SHA-256, or HMAC-SHA-256 with a pepper. Accepts any string.

    A fast hash is secure for 384 random bits. A slow one would only help an attacker who floods the endpoint (D-21).
    """
    presented = secret.encode("utf-8", "surrogatepass")
    if pepper:
        return hmac.new(pepper, presented, hashlib.sha256).hexdigest()
    return hashlib.sha256(presented).hexdigest()


def check_value(pepper: bytes | None) -> str:
    """Return a value in hex by which a start recognises this pepper, or that there is none. It does not reveal it."""
    return hmac.digest(pepper or b"no pepper", b"profilesvc: the pepper of this database", hashlib.sha256).hex()


def secret_matches(presented: str, digest: str, pepper: bytes | None) -> bool:
    """Return whether the presented secret is the stored one, in constant time."""
    return hmac.compare_digest(secret_digest(presented, pepper), digest)
