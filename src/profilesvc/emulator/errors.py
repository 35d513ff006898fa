"""Errors in the provider's envelope: google.rpc.Status with details by `@type`."""

import re
from typing import NamedTuple

from pydantic import ValidationError

from profilesvc.contract.json import JsonObject

INVALID = "Request contains an invalid argument."
STATUS_NAMES = {
    400: "INVALID_ARGUMENT",
    401: "UNAUTHENTICATED",
    403: "PERMISSION_DENIED",
    404: "NOT_FOUND",
    409: "ALREADY_EXISTS",
    429: "RESOURCE_EXHAUSTED",
    500: "INTERNAL",
    501: "UNIMPLEMENTED",
    503: "UNAVAILABLE",
    504: "DEADLINE_EXCEEDED",
}
MISSING_VALUE, INVALID_VALUE = 2, 3
UNSUPPORTED = 1301  # 3 is a guess: no response with it has been recorded
PHOTO_FETCH_FAILED = 1000


class ApiError(Exception):
    """An error of the API: HTTP status, message and details. `status` overrides the name of the HTTP status."""

    def __init__(self, http_status: int, message: str, *details: JsonObject, status: str = "") -> None:
        super().__init__(message)
        self.http_status = http_status
        self.message = message
        self.details = list(details)
        self.status = status or STATUS_NAMES.get(http_status, "UNKNOWN")

    def body(self) -> JsonObject:
        error: JsonObject = {"code": self.http_status, "message": self.message, "status": self.status}
        return {"error": {**error, "details": self.details} if self.details else error}


def not_found() -> ApiError:
    """Return the error for unknown names and for resources that the caller may not see."""
    return ApiError(404, "Requested entity was not found.")


def bad_request(field: str, description: str, message: str = INVALID) -> ApiError:
    """Return the error for an invalid mask, a missing field or a malformed value. `field` is a snake_case path."""
    violation = {"field": field, "description": description}
    return ApiError(
        400, message, {"@type": "type.googleapis.com/google.rpc.BadRequest", "fieldViolations": [violation]}
    )


def failed_precondition(message: str) -> ApiError:
    """Return the error for an operation that the location's state does not allow."""
    return ApiError(400, message, status="FAILED_PRECONDITION")


def business(reason: str, **metadata: str) -> ApiError:
    """Return the error for a violated v1 rule. The domain is a guess, but clients only compare the reason."""
    domain = "mybusinessbusinessinformation.googleapis.com"
    return ApiError(400, INVALID, error_info(reason, domain, metadata=dict(metadata)))


def post_error(code: int, field: str, message: str) -> ApiError:
    """Return the error for a violated v4 rule."""
    detail = {"code": code, "field": field, "message": message}
    kind = "type.googleapis.com/google.mybusiness.v4.ValidationError"
    return ApiError(400, INVALID, {"@type": kind, "errorDetails": [detail]})


def error_info(reason: str, domain: str = "googleapis.com", **more: JsonObject) -> JsonObject:
    """Return the detail of an error that names its reason."""
    return {"@type": "type.googleapis.com/google.rpc.ErrorInfo", "reason": reason, "domain": domain, **more}


class Limit(NamedTuple):
    """A limit of the provider, as its errors name it. Only that of requests has been recorded."""

    metric: str
    name: str
    label: str
    quota: str
    unit: str


REQUESTS = Limit(
    "default_requests", "Requests", "Requests per minute", "DefaultRequestsPerMinutePerProject", "1/min/{project}"
)
EDITS = Limit("edits", "Edits", "Edits per minute", "EditsPerMinutePerLocation", "1/min/{project}/{location}")
UPDATES = Limit("updates", "Updates", "Updates per day", "UpdatesPerDayPerProject", "1/d/{project}")


def quota_exceeded(service: str, limit: Limit, value: int) -> ApiError:
    """Return the error for too many requests."""
    metadata = {
        "service": service,
        "quota_metric": f"{service}/{limit.metric}",
        "quota_limit": limit.quota,
        "quota_location": "global",
        "quota_limit_value": str(value),
        "quota_unit": limit.unit,
        "consumer": "projects/1",
    }
    message = (
        f"Quota exceeded for quota metric '{limit.name}' and limit '{limit.label}' of service '{service}'"
        " for consumer 'project_number:1'."
    )
    return ApiError(429, message, error_info("RATE_LIMIT_EXCEEDED", metadata=metadata))


def snake(name: str) -> str:
    """Convert `openInfo` to `open_info`, because error paths are in snake_case."""
    return re.sub(r"([A-Z])", lambda match: "_" + match[1].lower(), name)


def body_error(error: ValidationError, root: str) -> ApiError:
    """Return the error for the first problem of a body. A post text that is too long has its own v4 detail."""
    problem = error.errors()[0]
    path = [snake(part) for part in problem["loc"] if isinstance(part, str)]
    if problem["type"] in ("string_too_long", "too_long") and root == "local_post":
        limit = problem["ctx"]["max_length"]
        return post_error(INVALID_VALUE, ".".join(path), f"Must be at most {limit} characters")
    if problem["type"] == "reply_size":
        return post_error(INVALID_VALUE, ".".join(path), "Must be at most 4096 bytes")
    if problem["type"] == "extra_forbidden":
        parent = ".".join([root, *path[:-1]])
        message = (
            f"Invalid JSON payload received. Unknown name \"{problem['loc'][-1]}\" at '{parent}': Cannot find field."
        )
        return bad_request(parent, message, message)
    where = ".".join([root, *path])
    message = f"Invalid value at '{where}': {problem['msg']}"
    if problem["type"] == "literal_error":
        message = f"Invalid value at '{where}' (type), \"{str(problem['input'])[:100]}\""
    return bad_request(where, message, message)
