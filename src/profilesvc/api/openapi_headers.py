"""What the OpenAPI document says of the headers of answers."""

from typing import Any

REPLAYED_HEADER = {
    "Idempotency-Replayed": {"description": "`true` on a repeated answer.", "schema": {"type": "string"}}
}
RETRY_AFTER = {"description": "Seconds, at least 1, until a repeat may succeed.", "schema": {"type": "integer"}}
TAG_HEADER = {
    "ETag": {
        "description": "Stands for the answer: sent in `If-None-Match`, it brings 304 while that is the same. Ours.",
        "schema": {"type": "string"},
    }
}
CONDITION = {
    "name": "If-None-Match",
    "in": "header",
    "required": False,
    "description": "The `ETag` of an answer that you have: 304 without a body when it is still good. Ours.",
    "schema": {"type": "string"},
}
NOT_MODIFIED = {"description": "What you have, by `If-None-Match`, is still good.", "headers": TAG_HEADER}
LIMIT_HEADERS = {
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
}


def limit_headers() -> dict[str, Any]:
    """References to the fields that every answer of a limited route carries."""
    return {name: {"$ref": f"#/components/headers/{name}"} for name in LIMIT_HEADERS}
