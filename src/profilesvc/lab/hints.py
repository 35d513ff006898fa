"""What to do about each error code, in a sentence for the reader of a page."""

HINTS: dict[str, str] = {
    "VALIDATION_ERROR": "details.errors names each field and its problem. Correct the request before you retry.",
    "AUTH_INVALID_TOKEN": "Get a new token. If the client credentials themselves are rejected, connect the site again.",
    "AUTH_INSUFFICIENT_PERMISSIONS": "The caller is known but may not do this. A deactivated key says why in details.",
    "PLAN_RESTRICTION": "The owner's plan does not include this. A larger plan does.",
    "QUOTA_EXCEEDED": "The month's posts are used up. details.resets_at says when it goes on; do not retry before.",
    "PROVIDER_API_ERROR": "details.retryable says whether to try again later or to change what was sent.",
    "NOT_FOUND": "Check the id. What belongs to somebody else looks the same as what does not exist.",
    "METHOD_NOT_ALLOWED": "The Allow header lists the methods of this path.",
    "REQUEST_TIMEOUT": "Send the request again, and its body without a pause.",
    "LOCATION_NOT_VERIFIED": "Verify the location at the provider, then call refresh-verification.",
    "SYNC_DISABLED": "Switch sync on for the location first.",
    "IDEMPOTENCY_IN_PROGRESS": "The first request is still running. Wait as long as Retry-After says, then repeat it.",
    "CONFLICT": "The state of things is in the way; the message says which. Change that first.",
    "PAYLOAD_TOO_LARGE": "Send less; the message names the limit.",
    "UNSUPPORTED_MEDIA_TYPE": "Send JSON, and say so: Content-Type: application/json.",
    "IDEMPOTENCY_KEY_REUSED": "A key belongs to one request. Make a new key for a new request.",
    "RATE_LIMITED": "Wait as long as Retry-After says.",
    "HEADERS_TOO_LARGE": "Send fewer or shorter headers; cookies are the usual cause.",
    "INTERNAL_ERROR": "A defect of the service. Report it with the request id.",
    "SERVICE_UNAVAILABLE": "Try again after the seconds that Retry-After names.",
}
