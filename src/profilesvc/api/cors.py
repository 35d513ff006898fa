"""CORS, as the Fetch standard defines it: which page may read a response, and what a browser may send."""

from collections.abc import Container

from quart import Response
from quart.typing import ResponseTypes

from profilesvc.domain.request import current_request
from profilesvc.services import origins
from profilesvc.services.context import Services

_REQUEST_HEADERS = (
    *("Authorization", "Content-Type", "X-Idempotency-Key", "Idempotency-Key"),
    *("If-None-Match", "X-Request-Id", "Traceparent", "Tracestate"),
)
_RESPONSE_HEADERS = (
    *("X-Request-Id", "Retry-After", "RateLimit", "RateLimit-Policy", "Idempotency-Replayed", "X-Data-Age"),
    *("ETag", "Location", "Allow", "WWW-Authenticate"),
)
_EXPOSED = ", ".join(_RESPONSE_HEADERS)
_PREFLIGHT = {"Access-Control-Allow-Headers": ", ".join(_REQUEST_HEADERS), "Access-Control-Max-Age": "600"}
_METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE")


async def allow(response: ResponseTypes) -> ResponseTypes:
    """Allow the page that sent the request to read the response, if its origin is allowed."""
    info = current_request()
    if info.origin_header is not None and info.may_read:  # never `*` and never credentials, because pages send tokens
        response.headers["Access-Control-Allow-Origin"] = info.origin_header
        response.headers["Access-Control-Expose-Headers"] = _EXPOSED
    return response


async def preflight(services: Services, response: Response, methods: Container[str]) -> None:
    """Add the headers of a preflight response, if a request of the page could succeed."""
    await origins.preflight(services, current_request())
    if current_request().may_read:
        allowed = ", ".join(method for method in _METHODS if method in methods)
        response.headers.update({"Access-Control-Allow-Methods": allowed, **_PREFLIGHT})
