"""Every failure becomes the envelope here and nowhere else, or what a standard's own route says instead (D-02)."""

import logging
from typing import Any
from urllib.parse import quote

import orjson
from quart import Quart, Response, request
from werkzeug.exceptions import HTTPException, RequestEntityTooLarge, RequestTimeout

from profilesvc.api.access import services
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
from profilesvc.contract.oauth2 import INVALID_CLIENT, error_members
from profilesvc.domain.errors import ServiceError

log = logging.getLogger("profilesvc")
REQUEST_ID = "profilesvc.request_id"  # where the edge leaves it in the ASGI scope
STANDARD_PATHS = ("/oauth2/", "/.well-known/")
NOT_CACHED = {"Cache-Control": "no-store", "Pragma": "no-cache"}  # RFC 6749 §5.1


def failure_body(kind: ErrorKind, message: str, details: dict[str, Any]) -> bytes:
    """The Failure envelope as bytes."""
    error: dict[str, Any] = {"code": kind.code, "message": message}
    if details:
        error["details"] = details
    return orjson.dumps({"status": "error", "error": error})


def body_for(path: str, kind: ErrorKind, message: str, details: dict[str, Any]) -> bytes:
    """The failure as the path speaks: the envelope, or a standard's own members (D-02)."""
    if path.startswith(STANDARD_PATHS):
        return orjson.dumps(error_members(kind, message, details))
    return failure_body(kind, message, details)


def render(error: ServiceError) -> Response:
    """The answer for a refusal."""
    response = Response(
        body_for(request.path, error.kind, error.message, error.details),
        error.kind.status,
        content_type="application/json",
    )
    setattr(response, "outcome", error.kind.code)  # noqa: B010  for the metrics
    if request.path.startswith(STANDARD_PATHS):
        response.headers.update(NOT_CACHED)
    response.headers.update(error.headers)
    if error.kind is INVALID_CLIENT and "Authorization" in request.headers:  # RFC 6749 §5.2: not for a form
        response.headers["WWW-Authenticate"] = 'Basic realm="profilesvc"'
    if error.kind is AUTH_INVALID_TOKEN:
        response.headers["Cache-Control"] = "no-store"
    return response


def _path() -> str:
    """The path as it may stand in a log: percent-encoded, so that a line break in it does not begin a line."""
    return quote(request.path)


def _request() -> str:
    """What was asked for, and the id by which the caller knows the answer."""
    return f"{request.method} {_path()} [{request.scope.get(REQUEST_ID, '-')}]"


def refusal(error: Exception) -> ServiceError:
    """What to answer for whatever was raised; what went wrong on our side is logged here."""
    if isinstance(error, ServiceError):
        if error.kind.status >= 500 and error.__cause__ is not None and not services().refused_by_database(error):
            log.warning("%s: %s (%s)", _request(), error.kind.code, type(error.__cause__).__name__)
        return error
    known = _of_framework(error) if isinstance(error, HTTPException) else None
    if known is None:
        log.error("%s: unexpected %s", _request(), type(error).__name__, exc_info=error)
    return known or ServiceError(INTERNAL_ERROR)


def _of_framework(error: HTTPException) -> ServiceError | None:
    """What the framework refuses by itself: unknown paths, methods, bodies that are too large or too slow."""
    if isinstance(error, RequestEntityTooLarge):
        return ServiceError(PAYLOAD_TOO_LARGE)
    if isinstance(error, RequestTimeout):
        return ServiceError(REQUEST_TIMEOUT, headers={"Connection": "close"})
    if error.code == 404:
        return ServiceError(NOT_FOUND, "There is no such path.")
    if error.code == 405:
        allow = ", ".join(sorted(getattr(error, "valid_methods", None) or ()))
        return ServiceError(METHOD_NOT_ALLOWED, headers={"Allow": allow})
    return ServiceError(VALIDATION_ERROR) if error.code is not None and 400 <= error.code < 500 else None


def install(app: Quart) -> None:
    """Register the handler: without one for HTTPException, Quart would answer those by itself."""

    async def answer(error: Exception) -> Response:
        return render(refusal(error))

    for kind in (ServiceError, HTTPException, Exception):
        app.register_error_handler(kind, answer)
