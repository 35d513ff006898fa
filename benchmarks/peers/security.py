"""Tokens and secrets of the peers by PyJWT (RS256), as each framework's security chapter recommends."""

import hashlib
import hmac
import os
import secrets
import time
from pathlib import Path
from typing import Any

import jwt
from cryptography.hazmat.primitives import serialization

ISSUER = "http://peers.test"
ACCESS_SECONDS, REFRESH_SECONDS = 7_776_000, 2_592_000
ONLINE_SECONDS = 7200
_PRIVATE: Any = serialization.load_pem_private_key(Path(os.environ["BENCH_KEY_FILE"]).read_bytes(), None)
_PUBLIC = _PRIVATE.public_key()


def verified(token: str) -> dict[str, Any]:
    """Return the claims of a token.

    Raises:
        jwt.InvalidTokenError: The token is invalid.
    """
    claims: dict[str, Any] = jwt.decode(token, _PUBLIC, algorithms=["RS256"], audience=ISSUER, issuer=ISSUER)
    return claims


def issue(subject: str, epoch: int, seconds: int) -> str:
    """Return a signed token."""
    now = int(time.time())
    claims = {"iss": ISSUER, "aud": ISSUER, "iat": now, "exp": now + seconds, "sub": subject, "epoch": epoch}
    return jwt.encode({**claims, "jti": secrets.token_urlsafe(16)}, _PRIVATE, algorithm="RS256")


def digest(secret: str) -> str:
    """Return the digest of a secret. A slow hash is not necessary for 256 random bits."""
    return hashlib.sha256(secret.encode()).hexdigest()


def matches(secret: str, stored: str) -> bool:
    """Return whether a secret is the stored one, in constant time."""
    return hmac.compare_digest(digest(secret), stored)
