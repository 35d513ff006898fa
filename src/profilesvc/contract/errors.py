"""The error catalogue: one row per code; a code never has two statuses (D-01)."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ErrorKind:
    """One row of the catalogue: the code on the wire, its HTTP status, the default message."""

    code: str
    status: int
    message: str


# Codes of the API document.
VALIDATION_ERROR = ErrorKind("VALIDATION_ERROR", 400, "The request is not valid.")
AUTH_INVALID_TOKEN = ErrorKind("AUTH_INVALID_TOKEN", 401, "The access token is missing, invalid or expired.")
AUTH_INSUFFICIENT_PERMISSIONS = ErrorKind(
    "AUTH_INSUFFICIENT_PERMISSIONS", 403, "The credential does not allow this operation."
)
PLAN_RESTRICTION = ErrorKind("PLAN_RESTRICTION", 403, "The current plan does not include this feature.")
QUOTA_EXCEEDED = ErrorKind("QUOTA_EXCEEDED", 429, "The monthly post limit is reached.")
PROVIDER_API_ERROR = ErrorKind("PROVIDER_API_ERROR", 502, "The external provider did not accept the request.")

# Ours: what the API document leaves open (D-01).
NOT_FOUND = ErrorKind("NOT_FOUND", 404, "There is nothing here that you may see.")
METHOD_NOT_ALLOWED = ErrorKind("METHOD_NOT_ALLOWED", 405, "This path does not take that method.")
REQUEST_TIMEOUT = ErrorKind("REQUEST_TIMEOUT", 408, "The request did not arrive in time.")
LOCATION_NOT_VERIFIED = ErrorKind(
    "LOCATION_NOT_VERIFIED", 409, "The location must be verified at the provider before sync can run."
)
SYNC_DISABLED = ErrorKind("SYNC_DISABLED", 409, "Sync is switched off for this location.")
IDEMPOTENCY_IN_PROGRESS = ErrorKind(
    "IDEMPOTENCY_IN_PROGRESS", 409, "The first request with this idempotency key is still running."
)
CONFLICT = ErrorKind("CONFLICT", 409, "The request conflicts with the current state.")
PAYLOAD_TOO_LARGE = ErrorKind("PAYLOAD_TOO_LARGE", 413, "The body is larger than this route accepts.")
UNSUPPORTED_MEDIA_TYPE = ErrorKind(
    "UNSUPPORTED_MEDIA_TYPE", 415, "Send the body as JSON with Content-Type: application/json."
)
IDEMPOTENCY_KEY_REUSED = ErrorKind(
    "IDEMPOTENCY_KEY_REUSED", 422, "This idempotency key was used before with a different request."
)
RATE_LIMITED = ErrorKind("RATE_LIMITED", 429, "Too many requests; try again later.")
HEADERS_TOO_LARGE = ErrorKind("HEADERS_TOO_LARGE", 431, "The request headers are larger than 16 KB.")
INTERNAL_ERROR = ErrorKind("INTERNAL_ERROR", 500, "Something went wrong on our side.")
SERVICE_UNAVAILABLE = ErrorKind("SERVICE_UNAVAILABLE", 503, "The service cannot answer right now; try again.")

CATALOGUE: dict[str, ErrorKind] = {kind.code: kind for kind in list(vars().values()) if isinstance(kind, ErrorKind)}
