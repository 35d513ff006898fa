"""What the OpenAPI document says of the headers of answers."""

from typing import Any

REPLAYED_HEADER = {
    "Idempotency-Replayed": {"description": "`true` on a repeated answer.", "schema": {"type": "string"}}
}
RETRY_AFTER = {"description": "Seconds, at least 1, until a repeat may succeed.", "schema": {"type": "integer"}}
HEADERS = {
    "ETag": {
        "description": "Stands for the response: sent in `If-None-Match`, it brings 304 while that is the same.",
        "schema": {"type": "string"},
    },
    "RateLimit-Policy": {
        "description": "The bucket with the least left: its name, quota (q) and window in seconds (w), as "
        '`"reads-per-key";q=300;w=60`. Absent where limits are off (draft-ietf-httpapi-ratelimit-headers-10).',
        "schema": {"type": "string"},
    },
    "RateLimit": {
        "description": "What is left of it (r), and the seconds until there is more (t), as "
        '`"reads-per-key";r=299;t=60`.',
        "schema": {"type": "string"},
    },
    "Location": {
        "description": "The path of the new resource, by which it is changed or deleted.",
        "schema": {"type": "string", "format": "uri-reference"},
    },
    "WWW-Authenticate": {
        "description": 'How to authenticate, and what was wrong, as `Bearer error="invalid_token"` (RFC 6750 §3).',
        "schema": {"type": "string"},
    },
}


def limit_headers() -> dict[str, Any]:
    """References to the fields that every answer of a limited route carries."""
    return header_references("RateLimit-Policy", "RateLimit")


def header_references(*names: str) -> dict[str, Any]:
    """References to headers that are described once."""
    return {name: {"$ref": f"#/components/headers/{name}"} for name in names}


CONDITION = {
    "name": "If-None-Match",
    "in": "header",
    "required": False,
    "description": "The `ETag` of a response that you have: 304 without a body while it is still valid. Ours.",
    "schema": {"type": "string"},
}
TAG_HEADER = header_references("ETag")
NOT_MODIFIED = {"description": "The response that you have, by `If-None-Match`, is still valid.", "headers": TAG_HEADER}
