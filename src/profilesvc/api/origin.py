"""CORS: which page may read an answer, and what a browser may send (D-30, D-31; the Fetch standard)."""

from collections.abc import Container

from quart import Quart, Response, request

from profilesvc.api.access import services
from profilesvc.api.quart_fast import fields
from profilesvc.api.request import asked_now
from profilesvc.services import origins

_READ = (
    *("Authorization", "Content-Type", "X-Idempotency-Key", "Idempotency-Key"),
    *("If-None-Match", "X-Request-Id", "Traceparent", "Tracestate"),
)
_SENT = (
    *("X-Request-Id", "Retry-After", "RateLimit", "RateLimit-Policy", "Idempotency-Replayed", "X-Data-Age"),
    *("ETag", "Location", "Allow", "WWW-Authenticate"),
)
_EXPOSED = ", ".join(_SENT)
_PREFLIGHT = {"Access-Control-Allow-Headers": ", ".join(_READ), "Access-Control-Max-Age": "600"}
_METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE")


def install(app: Quart) -> None:
    """Note the origin of each request, and tell the browser when its page may read the answer."""

    @app.before_request
    async def arrive() -> None:
        sent = fields(asked_now(), b"origin")  # the edge lets no second one through
        origins.arrive(services().settings, sent[0] if sent else None)

    @app.after_request
    async def allow(response: Response) -> Response:
        page = origins.page.get()
        if page.header is not None and page.accepted:  # never `*` and never credentials: a token is sent by the page
            response.headers["Access-Control-Allow-Origin"] = page.header
            response.headers["Access-Control-Expose-Headers"] = _EXPOSED
        return response


async def preflight(response: Response, methods: Container[str]) -> None:
    """Add what a browser asks for before it sends one of the methods of this path, if that could succeed."""
    if "Access-Control-Request-Method" not in request.headers:
        return
    await origins.foresee(services())
    if origins.page.get().accepted:
        allowed = ", ".join(method for method in _METHODS if method in methods)
        response.headers.update({"Access-Control-Allow-Methods": allowed, **_PREFLIGHT})
