"""The error catalogue. A code never has two statuses, so clients can switch on either (D-01)."""

from dataclasses import dataclass
from enum import StrEnum


@dataclass(frozen=True, slots=True)
class ErrorKind:
    """One entry of the catalogue: the code on the wire, its HTTP status, the default message.

    `retry` is whether the same request can succeed soon: yes, no, or if `details.retryable`. Our own clients follow it.
    """

    code: str
    status: int
    message: str
    retry: str = "no"


class Forbidden(StrEnum):
    """`details.reason` of AUTH_INSUFFICIENT_PERMISSIONS, and when it occurs. A deactivated key has
    `deactivation_reason` instead, as the contract defines (D-102).
    """

    when: str

    def __new__(cls, value: str, when: str) -> "Forbidden":
        reason = str.__new__(cls, value)
        reason._value_, reason.when = value, when
        return reason

    PERMISSION_MISSING = "permission_missing", "The token lacks the permission in `required`."
    PERMISSIONS_NOT_ALLOWED = "permissions_not_allowed", "A token request: none of `requested` is in `allowed`."
    OTHER_LOCATION = "other_location", "The API key belongs to another location."
    USER_TOKEN_REQUIRED = "user_token_required", "The operation accepts only user tokens."
    SERVICE_TOKEN_REQUIRED = "service_token_required", "The operation accepts only service tokens."
    ORIGIN_NOT_ALLOWED = "origin_not_allowed", "A web page of an origin that is not in the key's `allowed_domains`."
    NO_USER = "no_user", "A token exchange: the login has no user, and none can be created."


# Documented codes: docs/api-contract.md#error-catalogue
VALIDATION_ERROR = ErrorKind("VALIDATION_ERROR", 400, "The request is not valid.")
AUTH_INVALID_TOKEN = ErrorKind(
    "AUTH_INVALID_TOKEN", 401, "The access token is missing, invalid or expired. Request a new one."
)
AUTH_INSUFFICIENT_PERMISSIONS = ErrorKind(
    "AUTH_INSUFFICIENT_PERMISSIONS", 403, "These credentials do not allow this operation."
)
PLAN_RESTRICTION = ErrorKind("PLAN_RESTRICTION", 403, "The current plan does not include this feature.")
QUOTA_EXCEEDED = ErrorKind("QUOTA_EXCEEDED", 429, "The monthly post limit is reached.")
PROVIDER_API_ERROR = ErrorKind(
    "PROVIDER_API_ERROR", 502, "The external provider rejected the request or failed.", "if `details.retryable`"
)

# Additions of this service.
NOT_FOUND = ErrorKind("NOT_FOUND", 404, "Not found, or you do not have access to it.")
METHOD_NOT_ALLOWED = ErrorKind("METHOD_NOT_ALLOWED", 405, "Method not allowed. See the Allow header.")
REQUEST_TIMEOUT = ErrorKind("REQUEST_TIMEOUT", 408, "The request did not arrive in time. Send it again.")
LOCATION_NOT_VERIFIED = ErrorKind(
    "LOCATION_NOT_VERIFIED",
    409,
    "The location is not verified. Verify it at the provider before you enable or run sync.",
)
SYNC_DISABLED = ErrorKind("SYNC_DISABLED", 409, "Sync is switched off for this location. Switch it on first.")
IDEMPOTENCY_IN_PROGRESS = ErrorKind(
    "IDEMPOTENCY_IN_PROGRESS", 409, "The first request with this idempotency key is still running. Retry later.", "yes"
)
CONFLICT = ErrorKind("CONFLICT", 409, "The request conflicts with the current state.")
PAYLOAD_TOO_LARGE = ErrorKind("PAYLOAD_TOO_LARGE", 413, "The body is larger than this endpoint accepts.")
UNSUPPORTED_MEDIA_TYPE = ErrorKind(
    "UNSUPPORTED_MEDIA_TYPE", 415, "Send the body as JSON with Content-Type: application/json."
)
IDEMPOTENCY_KEY_REUSED = ErrorKind(
    "IDEMPOTENCY_KEY_REUSED", 422, "This idempotency key was used with a different request. Use a new key."
)
RATE_LIMITED = ErrorKind("RATE_LIMITED", 429, "Too many requests. Retry after the time in Retry-After.", "yes")
HEADERS_TOO_LARGE = ErrorKind(
    "HEADERS_TOO_LARGE", 431, "The request headers are larger than 16 KB. Send fewer or shorter headers."
)
INTERNAL_ERROR = ErrorKind("INTERNAL_ERROR", 500, "Internal error. Report the request id if it happens again.")
SERVICE_UNAVAILABLE = ErrorKind(
    "SERVICE_UNAVAILABLE", 503, "The service is temporarily unavailable. Retry later.", "yes"
)

CATALOGUE: dict[str, ErrorKind] = {kind.code: kind for kind in list(vars().values()) if isinstance(kind, ErrorKind)}
