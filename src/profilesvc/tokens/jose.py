"""Parse compact JWTs strictly, because PyJWT accepts duplicate header fields and padded base64url."""

import base64
import json
import re
from typing import TypeGuard

from profilesvc.contract.json import JsonObject

_COMPACT = re.compile(r"[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+\Z", re.ASCII)


def is_compact(token: str, limit: int) -> bool:
    """Return whether a token is three base64url parts of at most `limit` characters together (RFC 7515 §7.1)."""
    return len(token) <= limit and _COMPACT.match(token) is not None


def unverified(token: str) -> tuple[JsonObject, JsonObject]:
    """Return the header and payload of a compact token without verifying the signature.

    Raises:
        ValueError: A part is not canonical base64url, not JSON, or has a duplicate field.
        TypeError: Header or payload is not an object.
        RecursionError: Header or payload is nested too deeply.
    """
    header, payload, signature = token.split(".")
    b64_decode(signature)
    return json_object(b64_decode(header)), json_object(b64_decode(payload))


def b64(raw: bytes) -> str:
    """Return bytes as base64url without padding."""
    return base64.urlsafe_b64encode(raw).rstrip(b"=").decode()


def b64_decode(part: str) -> bytes:
    """Return the bytes of a base64url string.

    Raises:
        ValueError: The string is not the one that `b64` returns for these bytes.
    """
    raw = base64.urlsafe_b64decode(part + "=" * (-len(part) % 4))
    if b64(raw) != part:  # unused bits must be zero
        raise ValueError("not canonical base64url")
    return raw


def json_object(raw: bytes) -> JsonObject:
    """Parse a JSON object in UTF-8.

    Raises:
        ValueError: The bytes are not JSON, or an object has a duplicate field.
        TypeError: The JSON is not an object.
        RecursionError: The JSON is nested too deeply.
    """
    value = json.loads(raw.decode("utf-8"), object_pairs_hook=_unique_fields)
    if not isinstance(value, dict):
        raise TypeError("not an object")
    return value


def _unique_fields(pairs: list[tuple[str, object]]) -> JsonObject:
    fields = dict(pairs)
    if len(fields) != len(pairs):
        raise ValueError("duplicate field")
    return fields


def is_instant(value: object) -> TypeGuard[int]:
    """Return whether a value is a time in whole seconds that a JSON number holds exactly (RFC 7519 §2)."""
    return type(value) is int and 0 <= value < 2**53
