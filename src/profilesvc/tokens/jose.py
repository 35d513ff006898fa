"""How any compact JWT is read here, ours and an identity provider's: one spelling per token, no member twice."""

import base64
import json
import re
from functools import lru_cache
from typing import Any

import orjson
from cryptography.hazmat.primitives.asymmetric.padding import PKCS1v15
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey
from cryptography.hazmat.primitives.hashes import SHA256

_RS256 = (PKCS1v15(), SHA256())
_GRAMMAR = re.compile(r"[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+\Z", re.ASCII)


def is_compact(token: str, limit: int) -> bool:
    """Three base64url parts of at most `limit` characters together (RFC 7515 §7.1)."""
    return len(token) <= limit and _GRAMMAR.match(token) is not None


def taken_apart(token: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """Header and payload of a compact token, unverified; ValueError and the like unless its parts are canonical."""
    header, payload, signature = token.split(".")
    b64_decode(signature)
    return json_object(b64_decode(header)), json_object(b64_decode(payload))


def signed(typ: str, kid: str, claims: dict[str, Any], private: RSAPrivateKey) -> str:
    """A compact JWT, signed by RS256 (RFC 7515 §7.1, RFC 7518 §3.3); the same of everything gives the same bytes."""
    text = f"{_header(typ, kid)}.{b64(orjson.dumps(claims))}"
    return f"{text}.{b64(private.sign(text.encode(), *_RS256))}"


@lru_cache(16)
def _header(typ: str, kid: str) -> str:
    return b64(orjson.dumps({"alg": "RS256", "kid": kid, "typ": typ}))


def b64(raw: bytes) -> str:
    """base64url without padding."""
    return base64.urlsafe_b64encode(raw).rstrip(b"=").decode()


def b64_decode(part: str) -> bytes:
    """The bytes of a base64url text in its one spelling; ValueError otherwise."""
    raw = base64.urlsafe_b64decode(part + "=" * (-len(part) % 4))
    if b64(raw) != part:  # unused bits must be zero
        raise ValueError("not canonical base64url")
    return raw


def json_object(raw: bytes) -> dict[str, Any]:
    """A JSON object in UTF-8 without duplicate members; ValueError, TypeError or RecursionError otherwise."""
    value = json.loads(raw.decode("utf-8"), object_pairs_hook=_unique_members)
    if not isinstance(value, dict):
        raise TypeError("not an object")
    return value


def _unique_members(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    if len(members) != len(pairs):
        raise ValueError("duplicate member")
    return members


def is_instant(value: object) -> bool:
    """Whole seconds since the epoch, as JSON numbers can hold them exactly (RFC 7519 §2, without fractions)."""
    return type(value) is int and 0 <= value < 2**53
