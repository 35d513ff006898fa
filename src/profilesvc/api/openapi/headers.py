"""The descriptions of the headers in the OpenAPI document."""

from profilesvc.contract.json import JsonObject

REPLAYED_HEADER = {
    "Idempotency-Replayed": {"description": "`true` on a replayed response.", "schema": {"type": "string"}}
}
RETRY_AFTER = {
    "description": "The number of seconds, at least 1, after which a retry may succeed.",
    "schema": {"type": "integer"},
}
HEADERS = {
    "Allow": {"description": "The methods of this path.", "schema": {"type": "string"}},
    "ETag": {
        "description": "Identifies this version of the response. Send it in `If-None-Match` to get a 304 while it is "
        "valid.",
        "schema": {"type": "string"},
    },
    "RateLimit-Policy": {
        "description": "The limit with the fewest requests left: its name, quota (q) and window in seconds (w), as in "
        '`"reads-per-key";q=300;w=60`. Absent if limits are off (draft-ietf-httpapi-ratelimit-headers-10).',
        "schema": {"type": "string"},
    },
    "RateLimit": {
        "description": "The number of requests left (r), and the seconds until there are more (t), as in "
        '`"reads-per-key";r=299;t=60`.',
        "schema": {"type": "string"},
    },
    "Location": {
        "description": "The path of the new resource, for later requests that change or delete it.",
        "schema": {"type": "string", "format": "uri-reference"},
    },
    "WWW-Authenticate": {
        "description": 'How to authenticate, and what was wrong, as in `Bearer error="invalid_token"` (RFC 6750 §3).',
        "schema": {"type": "string"},
    },
}


def limit_headers() -> JsonObject:
    """Return references to the headers of every response of a route with limits."""
    return header_references("RateLimit-Policy", "RateLimit")


def header_references(*names: str) -> JsonObject:
    return {name: {"$ref": f"#/components/headers/{name}"} for name in names}


ALLOW = header_references("Allow")
CONDITION = {
    "name": "If-None-Match",
    "in": "header",
    "required": False,
    "description": "The `ETag` of a response that you have: 304 without a body while it is still valid. An addition "
    "of this service.",
    "schema": {"type": "string"},
}
TAG_HEADER = header_references("ETag")
NOT_MODIFIED = {
    "description": "The response whose `ETag` you sent in `If-None-Match` is still valid.",
    "headers": TAG_HEADER,
}
