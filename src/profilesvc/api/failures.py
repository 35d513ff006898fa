"""Build the response for every failure: our envelope, or on the standard paths the fields of the standard."""

import contextlib
import logging
from urllib.parse import quote

import orjson
from quart import Quart, Response, request
from werkzeug.exceptions import HTTPException, RequestEntityTooLarge, RequestTimeout

from profilesvc.api.request import HttpError, bearer_token, current_services, header_values, quart_request
from profilesvc.contract.errors import (
    AUTH_INVALID_TOKEN,
    INTERNAL_ERROR,
    METHOD_NOT_ALLOWED,
    NOT_FOUND,
    PAYLOAD_TOO_LARGE,
    REQUEST_TIMEOUT,
    VALIDATION_ERROR,
    ErrorKind,
)
from profilesvc.contract.json import JsonObject
from profilesvc.contract.oauth2 import INVALID_CLIENT, error_members
from profilesvc.domain.errors import ServiceError
from profilesvc.domain.request import current_request
from profilesvc.services.access import note_bearer

log = logging.getLogger("profilesvc")
STANDARD_PATHS = ("/oauth2/", "/.well-known/")
NOT_CACHED = {"Cache-Control": "no-store", "Pragma": "no-cache"}  # RFC 6749 §5.1


def failure_body(kind: ErrorKind, message: str, details: JsonObject) -> bytes:
    error: JsonObject = {"code": kind.code, "message": message}
    if details:
        error["details"] = details
    return orjson.dumps({"status": "error", "error": error})


def body_for(path: str, kind: ErrorKind, message: str, details: JsonObject) -> bytes:
    """Return the body of a failure of this path: the envelope, or the standard's fields."""
    if path.startswith(STANDARD_PATHS):
        return orjson.dumps(error_members(kind, message, details))
    return failure_body(kind, message, details)


def headers_of(error: ServiceError) -> dict[str, str]:
    """Return the headers that describe an error to programs."""
    headers = dict(error.headers) if isinstance(error, HttpError) else {}
    if error.retry_after is not None:
        headers["Retry-After"] = str(error.retry_after)
    if error.replayed:
        headers["Idempotency-Replayed"] = "true"
    if error.of_bearer:
        headers["WWW-Authenticate"] = _challenge(error.details)
    return headers


def _challenge(details: JsonObject) -> str:
    """Return the WWW-Authenticate header that describes the problem of a bearer token (RFC 6750 §3)."""
    if "required" in details:
        return f'Bearer error="insufficient_scope", scope="{details["required"]}"'
    return "Bearer" if details.get("reason") == "missing" else 'Bearer error="invalid_token"'


def render(error: ServiceError, *, no_store: bool = False) -> Response:
    """Return the response for an error; `no_store` keeps it out of caches, like the endpoint's other responses."""
    info = current_request()
    info.outcome, info.details = error.kind.code, error.details
    if info.key is None and error.kind is not AUTH_INVALID_TOKEN and "Authorization" in request.headers:
        with contextlib.suppress(
            ServiceError
        ):  # so that the owner of its key finds what failed before the token was read
            note_bearer(current_services(), bearer_token(header_values(quart_request(), b"authorization")))
    body = body_for(request.path, error.kind, error.message, error.details)
    response = Response(body, error.kind.status, content_type="application/json")
    if request.path.startswith(STANDARD_PATHS):
        response.headers.update(NOT_CACHED)
    response.headers.update(headers_of(error))
    if error.kind is INVALID_CLIENT and "Authorization" in request.headers:  # RFC 6749 §5.2: not for a form
        response.headers["WWW-Authenticate"] = 'Basic realm="profilesvc"'
    if no_store or error.kind is AUTH_INVALID_TOKEN:
        response.headers["Cache-Control"] = "no-store"
    return response


def _request_line() -> str:
    """Return the method, path and request id for a log; the path is percent-encoded, so it has no line breaks."""
    return f"{request.method} {quote(request.path)} [{current_request().request_id}]"


def service_error(error: Exception) -> ServiceError:
    """Return the error of the catalogue for an exception; log it if it is not the caller's fault."""
    if isinstance(error, ServiceError):
        has_cause = error.kind.status >= 500 and error.__cause__ is not None
        if has_cause and not current_services().rejected_by_database(error):
            log.warning("%s: %s (%s)", _request_line(), error.kind.code, type(error.__cause__).__name__)
        return error
    translated = _framework_error(error) if isinstance(error, HTTPException) else None
    if translated is None:
        log.error("%s: unexpected %s", _request_line(), type(error).__name__, exc_info=error)
    return translated or ServiceError(INTERNAL_ERROR)


def _framework_error(error: HTTPException) -> ServiceError | None:
    """Translate an error of the framework: unknown paths, methods, bodies too large or too slow."""
    if isinstance(error, RequestEntityTooLarge):
        return ServiceError(PAYLOAD_TOO_LARGE)
    if isinstance(error, RequestTimeout):
        return HttpError(REQUEST_TIMEOUT, Connection="close")
    if error.code == 404:
        return ServiceError(NOT_FOUND, "There is no such path.")
    if error.code == 405:
        return HttpError(METHOD_NOT_ALLOWED, Allow=", ".join(sorted(getattr(error, "valid_methods", None) or ())))
    return ServiceError(VALIDATION_ERROR) if error.code is not None and 400 <= error.code < 500 else None


def install(app: Quart) -> None:
    """Register the handler; without one for HTTPException, Quart would render those itself."""

    async def respond(error: Exception) -> Response:
        return render(service_error(error))

    for kind in (ServiceError, HTTPException, Exception):
        app.register_error_handler(kind, respond)
