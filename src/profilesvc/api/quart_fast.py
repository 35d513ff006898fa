"""The way of a request through Quart without what this API has no use for: a third of the framework's cost.

Quart gives each request two tasks and two timers, so that a body is collected while it arrives and a handler dies with
its client. Here a request is served in the server's own task, and its body is read when a route asks for it.
"""

import time
from collections.abc import Sequence
from typing import Any, cast
from urllib.parse import urlparse

from quart import Request, Response
from quart.asgi import ASGIHTTPConnection
from quart.wrappers.response import DataBody
from werkzeug.datastructures import Headers

from profilesvc.api.body import AwaitedBody
from profilesvc.api.compression import ASKED, fitted

_GIVEN = "profilesvc.headers"
ROUTE = "profilesvc.route"  # where the route that was taken is left in the ASGI scope
_METHODS = frozenset({"GET", "HEAD", "OPTIONS", "POST", "PUT", "PATCH", "DELETE"})


class LeanConnection(ASGIHTTPConnection):
    """One request, in one task."""

    async def __call__(self, receive: Any, send: Any) -> None:
        """Serve the request."""
        request = self._create_request_from_scope(send)
        limit = self.app.config["MAX_CONTENT_LENGTH"]
        request.body = AwaitedBody(request.content_length, limit, self.scope, receive)
        await self.handle_request(request, send)

    def _create_request_from_scope(self, send: Any) -> Request:
        headers = _Given(self.scope)
        if self.scope["http_version"] < "1.1":
            headers.setdefault("Host", "")
        path = self.scope["path"]
        return self.app.request_class(
            self.scope["method"],
            self.scope["scheme"],
            path if path.startswith("/") else urlparse(path).path,
            self.scope["query_string"],
            headers,
            self.scope.get("root_path", ""),
            self.scope["http_version"],
            send_push_promise=_no_push,
            scope=self.scope,
        )

    async def handle_request(self, request: Request, send: Any) -> None:
        """Serve, and count the answer."""
        self._counted = (request, time.perf_counter())
        await super().handle_request(request, send)

    def _count(self, response: Any, status: int) -> None:
        request, begun = self._counted
        running = self.app.extensions.get("profilesvc")
        if running is None:
            return
        method = request.method if request.method in _METHODS else "other"
        route = request.url_rule.rule if request.url_rule else "unknown"
        cast(Any, self.scope)[ROUTE] = route
        outcome = getattr(response, "outcome", "ok")
        running.metrics.request(method, route, status, outcome, time.perf_counter() - begun)

    async def _send_response(self, send: Any, response: Any) -> None:
        status = response.status_code
        if not isinstance(response, Response) or not hasattr(response.response, "data"):
            self._count(response, status)
            await super()._send_response(send, response)
            return
        headers = [(name.lower().encode("latin1"), value.encode("latin1")) for name, value in response.headers]
        body = response.response.data
        if not ASKED.isdisjoint(asked := given(self.scope)):
            packed = getattr(response, "packed", None)
            status, headers, body = await fitted(asked, status, headers, body, packed)
        self._count(response, status)
        await send({"type": "http.response.start", "status": status, "headers": headers})
        await send({"type": "http.response.body", "body": body, "more_body": False})


def fields(request: Any, name: bytes) -> list[str]:
    """The values of a header, whose name is given as ASGI does: in small letters. Quart's own look-up takes longer."""
    return [value.decode("latin1") for value in given(request.scope).get(name, ())]


def given(scope: Any) -> dict[bytes, list[bytes]]:
    """The values of all headers by name, put together once for a request."""
    known: dict[bytes, list[bytes]] = scope.get(_GIVEN)
    if known is None:
        known = scope[_GIVEN] = {}
        for name, value in scope["headers"]:
            known.setdefault(name, []).append(value)
    return known


async def _no_push(_path: str, _headers: Headers) -> None:
    """HTTP/2 push, which this API does not use."""


class JsonResponse(Response):
    """An answer of JSON bytes: what Quart would work out for any answer is known of these.

    `more`: headers that are known to be good ones.
    """

    def __init__(self, body: bytes, status: int, more: Sequence[tuple[str, str]] = ()) -> None:
        self.headers = Headers()
        self.headers._list = [("Content-Type", "application/json"), ("Content-Length", str(len(body))), *more]
        self.status_code = status
        self.response = DataBody(body)
        self.timeout = None  # the server bounds how long an answer may wait to be taken


class _Given(Headers):
    """The headers of an ASGI scope; Werkzeug would look for line breaks in them, which no server lets through."""

    def __init__(self, scope: Any) -> None:
        peer = (scope.get("client") or ("<local>", 0))[0]
        sent = [each for each in scope["headers"] if each[0] != b"remote-addr"]
        self._list = [(name.decode("latin1"), value.decode("latin1")) for name, value in sent]
        self._list.append(("Remote-Addr", peer))
