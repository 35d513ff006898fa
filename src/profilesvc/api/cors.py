"""CORS: which page may read a response, and what a browser may send (D-30, D-31; the Fetch standard)."""

from collections.abc import Container

from quart import Response
from quart.typing import ResponseTypes

from profilesvc.domain.request import current
from profilesvc.services import origins
from profilesvc.services.context import Services

_ACCEPTED = (
    *("Authorization", "Content-Type", "X-Idempotency-Key", "Idempotency-Key"),
    *("If-None-Match", "X-Request-Id", "Traceparent", "Tracestate"),
)
_SENT = (
    *("X-Request-Id", "Retry-After", "RateLimit", "RateLimit-Policy", "Idempotency-Replayed", "X-Data-Age"),
    *("ETag", "Location", "Allow", "WWW-Authenticate"),
)
_EXPOSED = ", ".join(_SENT)
_PREFLIGHT = {"Access-Control-Allow-Headers": ", ".join(_ACCEPTED), "Access-Control-Max-Age": "600"}
_METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE")


async def allow(response: ResponseTypes) -> ResponseTypes:
    """Tell the browser if the page of a request may read the response."""
    page = current()
    if page.origin_header is not None and page.may_read:  # never `*` and never credentials: pages send tokens
        response.headers["Access-Control-Allow-Origin"] = page.origin_header
        response.headers["Access-Control-Expose-Headers"] = _EXPOSED
    return response


async def preflight(running: Services, response: Response, methods: Container[str]) -> None:
    """Add what a browser asks for before it sends one of the methods of this path, if that could succeed."""
    await origins.preflight(running, current())
    if current().may_read:
        allowed = ", ".join(method for method in _METHODS if method in methods)
        response.headers.update({"Access-Control-Allow-Methods": allowed, **_PREFLIGHT})
