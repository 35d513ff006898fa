"""Reading responses: the data of a success, or a typed error."""

import time
from typing import TypeVar

import httpx
from pydantic import ValidationError

from profilesvc.client import errors
from profilesvc.client.errors import ProfileApiError, UnreadableResponse
from profilesvc.contract.envelope import Success
from profilesvc.contract.json import JsonObject
from profilesvc.contract.retry_after import retry_after

T = TypeVar("T")

ERROR_CLASSES: dict[str, type[ProfileApiError]] = {
    "VALIDATION_ERROR": errors.ValidationFailed,
    "AUTH_INVALID_TOKEN": errors.InvalidToken,
    "AUTH_INSUFFICIENT_PERMISSIONS": errors.InsufficientPermissions,
    "PLAN_RESTRICTION": errors.PlanRestriction,
    "NOT_FOUND": errors.NotFound,
    "METHOD_NOT_ALLOWED": errors.MethodNotAllowed,
    "REQUEST_TIMEOUT": errors.RequestTimedOut,
    "CONFLICT": errors.Conflict,
    "LOCATION_NOT_VERIFIED": errors.LocationNotVerified,
    "SYNC_DISABLED": errors.SyncDisabled,
    "IDEMPOTENCY_IN_PROGRESS": errors.IdempotencyInProgress,
    "IDEMPOTENCY_KEY_REUSED": errors.IdempotencyKeyReused,
    "PAYLOAD_TOO_LARGE": errors.PayloadTooLarge,
    "UNSUPPORTED_MEDIA_TYPE": errors.UnsupportedMediaType,
    "HEADERS_TOO_LARGE": errors.HeadersTooLarge,
    "RATE_LIMITED": errors.RateLimited,
    "QUOTA_EXCEEDED": errors.QuotaExceeded,
    "PROVIDER_API_ERROR": errors.ProviderFailed,
    "INTERNAL_ERROR": errors.InternalError,
    "SERVICE_UNAVAILABLE": errors.ServiceUnavailable,
}

# For codes of a newer service, and for responses of a gateway in front of it. A gateway's 502 and 504
# concern the service, not the provider.
_BY_STATUS: dict[int, type[ProfileApiError]] = {
    400: errors.ValidationFailed,
    401: errors.InvalidToken,
    403: errors.InsufficientPermissions,
    404: errors.NotFound,
    409: errors.Conflict,
    429: errors.RateLimited,
    500: errors.InternalError,
    502: errors.ServiceUnavailable,
    503: errors.ServiceUnavailable,
    504: errors.ServiceUnavailable,
}


def failure_of(response: httpx.Response) -> ProfileApiError:
    """Build the error for an unsuccessful response, from its code or else from its status."""
    error = _error_of(response)
    code, details = error.get("code"), error.get("details")
    details = details if isinstance(details, dict) else {}
    kind = ERROR_CLASSES.get(str(code)) or _BY_STATUS.get(response.status_code, ProfileApiError)
    if kind is errors.InsufficientPermissions and "deactivation_reason" in details:
        kind = errors.KeyDeactivated
    message = str(error.get("message") or f"The response is HTTP {response.status_code} without an error envelope.")
    code = str(code or f"HTTP_{response.status_code}")
    wait = retry_after(response.headers.get("Retry-After"), time.time())
    return kind(code, response.status_code, message, details, response.headers.get("X-Request-Id"), wait)


def read(response: httpx.Response, envelope: type[Success[T]]) -> T:
    """Return the data of a success; unknown fields are ignored.

    Raises:
        ProfileApiError: The response reports a failure or cannot be read.
    """
    if not response.is_success:
        raise failure_of(response)
    try:
        return envelope.model_validate_json(response.content, extra="ignore").data
    except ValidationError:  # its text is dropped because it can quote a secret
        message, request_id = "The response does not match the contract.", response.headers.get("X-Request-Id")
        raise UnreadableResponse("UNREADABLE_RESPONSE", response.status_code, message, {}, request_id) from None


def _error_of(response: httpx.Response) -> JsonObject:
    try:
        body = response.json()
    except ValueError:
        return {}
    error = body.get("error") if isinstance(body, dict) else None
    return error if isinstance(error, dict) else {}
