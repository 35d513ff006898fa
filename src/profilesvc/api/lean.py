"""The way of a request through Quart without what this API has no use for: a third of the framework's cost.

Quart gives each request two tasks and two timers, so that a body can be read while it arrives and a handler dies with
its client. A request whose body is there, or that has none, needs neither: it is served in the server's own task.
Everything else takes Quart's way, with its time and size limits.
"""

import asyncio
import time
from collections.abc import Sequence
from typing import Any, cast
from urllib.parse import urlparse

from quart import Request, Response
from quart.asgi import ASGIHTTPConnection
from quart.wrappers.response import DataBody
from werkzeug.datastructures import Headers

from profilesvc.api.delivery import ASKED, fitted

WHOLE_BODY = "profilesvc.body"  # where the scope has the body when all of it was there at once
_GIVEN = "profilesvc.headers"
_LONGEST = 64 * 1024
ROUTE = "profilesvc.route"  # where the route that was taken is left in the ASGI scope
_LATE = 0.001
_WITH_BODY = frozenset({"POST", "PUT", "PATCH"})
_METHODS = frozenset({"GET", "HEAD", "OPTIONS", "POST", "PUT", "PATCH", "DELETE"})


class LeanConnection(ASGIHTTPConnection):
    """One request; in one task when its body, if any, arrives at once."""

    async def __call__(self, receive: Any, send: Any) -> None:
        """Serve the request."""
        length = _announced(self.scope)
        if length is None or length > _LONGEST:
            await super().__call__(receive, send)
            return
        message: dict[str, Any] = {"type": "http.request", "body": b""}
        if length:
            try:
                async with asyncio.timeout(self.app.config["BODY_TIMEOUT"]):
                    message = await receive()
            except TimeoutError:  # it has waited: Quart shall answer as it does, and not wait for as long again
                await self._serve(send, body_timeout=_LATE)
                return
        if message["type"] != "http.request":
            return
        if message.get("more_body", False):
            await super().__call__(_again(message, receive), send)
            return
        await self._serve(send, body=message.get("body", b""))

    async def _serve(self, send: Any, body: bytes | None = None, body_timeout: float | None = None) -> None:
        request = self._create_request_from_scope(send)
        if body is None:
            request.body_timeout = body_timeout  # type: ignore[assignment]
        else:
            request.body.set_result(body)
            self.scope[WHOLE_BODY] = body  # type: ignore[literal-required]  # a name of our own
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
            max_content_length=self.app.config["MAX_CONTENT_LENGTH"],
            body_timeout=self.app.config["BODY_TIMEOUT"],
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


def _announced(scope: Any) -> int | None:
    """The length of the body in bytes, 0 for none, None for a body of unknown length (HTTP/2 need not tell it)."""
    there = given(scope)
    if b"transfer-encoding" in there:
        return None
    told = there.get(b"content-length")
    if told is None:
        return None if scope["method"] in _WITH_BODY else 0
    return int(told[0]) if told[0].isdigit() and len(told[0]) < 10 else _LONGEST + 1


def _again(first: dict[str, Any], receive: Any) -> Any:
    """`receive` that gives a message back first."""
    waiting = [first]

    async def both() -> Any:
        return waiting.pop() if waiting else await receive()

    return both


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
