"""A hint for each error code, for the reader of a notebook."""

HINTS: dict[str, str] = {
    "VALIDATION_ERROR": "details.errors names each field and its problem. Correct the request before you retry.",
    "AUTH_INVALID_TOKEN": "Get a new token. If the client credentials themselves are rejected, connect the site again.",
    "AUTH_INSUFFICIENT_PERMISSIONS": "The caller has no permission. For a deactivated key, details has the reason.",
    "PLAN_RESTRICTION": "The owner's plan does not include this. Choose a larger plan.",
    "QUOTA_EXCEEDED": "The monthly posts are used up. Do not retry before details.resets_at.",
    "PROVIDER_API_ERROR": "If details.retryable is true, try again later. Otherwise change the request.",
    "NOT_FOUND": "Check the id. Resources of other users look the same as those that do not exist.",
    "METHOD_NOT_ALLOWED": "The Allow header lists the methods of this path.",
    "REQUEST_TIMEOUT": "Send the request again, and its body without pauses.",
    "LOCATION_NOT_VERIFIED": "Verify the location at the provider, then call refresh-verification.",
    "SYNC_DISABLED": "Switch sync on for the location first.",
    "IDEMPOTENCY_IN_PROGRESS": "The first request is still running. Retry after the time in Retry-After.",
    "CONFLICT": "The message names the state that prevents the request. Change it first.",
    "PAYLOAD_TOO_LARGE": "Send a smaller body. The message names the limit.",
    "UNSUPPORTED_MEDIA_TYPE": "Send JSON with Content-Type: application/json.",
    "IDEMPOTENCY_KEY_REUSED": "Use a new idempotency key for a new request.",
    "RATE_LIMITED": "Wait for the time in Retry-After.",
    "HEADERS_TOO_LARGE": "Send fewer or shorter headers; cookies are the usual cause.",
    "INTERNAL_ERROR": "A defect of the service. Report it with the request id.",
    "SERVICE_UNAVAILABLE": "Try again after the time in Retry-After.",
}
