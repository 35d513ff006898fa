"""Quart without the features that this API does not use: tasks for each request, sessions, hosts in routing."""

import asyncio
import logging
from collections.abc import AsyncIterable, AsyncIterator
from functools import cached_property, lru_cache
from typing import Any, cast
from urllib.parse import urlparse

from quart import Quart, Request
from quart.asgi import ASGIHTTPConnection
from quart.ctx import AppContext
from quart.globals import _cv_app, _cv_request
from quart.sessions import NullSession
from quart.typing import ResponseTypes
from quart.wrappers.response import DataBody
from werkzeug.datastructures import Headers
from werkzeug.routing import MapAdapter

from profilesvc.api import html_forms
from profilesvc.api.caching import negotiated
from profilesvc.api.guard import reject
from profilesvc.api.request import KB, SLOT, AwaitedBody, begin, headers_of
from profilesvc.domain.errors import ServiceError
from profilesvc.server.routing import MatchedRule
from profilesvc.server.scope import LEFT, Scope

log = logging.getLogger("profilesvc")
PIECE = 64 * KB  # of a response; the server keeps about as much that a client has not read
_MOST_DIGITS = 18  # of a length; `int` rejects thousands of them
_MOST_REMEMBERED, _LONGEST_REMEMBERED = 2_000, 128


def unchecked(headers: list[tuple[str, str]]) -> Headers:
    """Return headers without Werkzeug's checks of characters; the server or this code has written them."""
    unchecked_headers = Headers()
    unchecked_headers._list = headers
    return unchecked_headers


class FastRequest(Request):
    """Quart's request without repeated searches in its headers and its endpoint's name.

    They cost 14 % of the CPU of a status, and 10 % of a list of 50 posts (in process, in turns).
    """

    @property
    def blueprints(self) -> list[str]:
        """The names of the blueprints, from the innermost to the outermost."""
        return _blueprints(self.endpoint)

    @property
    def content_length(self) -> int | None:
        """The announced length of the body in bytes; the guard has rejected a second one."""
        announced = headers_of(cast(Scope, self.scope)).get(b"content-length", [b""])[0]
        return int(announced.lstrip(b"0")[:_MOST_DIGITS] or 0) if announced.isdigit() else None

    async def _load_form_data(self) -> None:
        """Read a form that no rule of its own has read before, by the rule of small ones."""
        if self._form is None:
            await html_forms.read(self, html_forms.LOGIN)


@lru_cache(None)  # every endpoint of the app
def _blueprints(endpoint: str | None) -> list[str]:
    names = (endpoint or "").split(".")[:-1]
    return [".".join(names[:count]) for count in range(len(names), 0, -1)]


class FastConnection(ASGIHTTPConnection):
    """One request in the server's own task; its body is read when an endpoint needs it.

    Quart creates two tasks for each request, to collect its body and to end its handler when the client disconnects.
    They cost 45 % more CPU for the status of a key, and 47 % for a list of 50 posts (in process, in turns).
    `_create_request_from_scope` and `_send_response` leave out the checks of headers that no server passes on, and send
    a body as one message instead of two: together 13 % of a heartbeat and 7 % of a list.
    """

    async def __call__(self, receive: Any, send: Any) -> None:
        request = self._create_request_from_scope(send)
        limit = self.app.config["MAX_CONTENT_LENGTH"]
        request.body = cast(Any, AwaitedBody(request.content_length, limit, cast(Scope, self.scope), receive))
        await self.handle_request(request, send)

    def _create_request_from_scope(self, send: object) -> Request:
        scope = cast(Scope, self.scope)
        path = scope["path"]
        headers = unchecked([("Remote-Addr", (scope.get("client") or ("<local>",))[0])])
        headers._list += [(name.decode("latin1"), value.decode("latin1")) for name, value in scope["headers"]]
        if scope["http_version"] < "1.1":
            headers.setdefault("Host", "")
        return self.app.request_class(
            scope["method"],
            scope["scheme"],
            path if path.startswith("/") else urlparse(path).path,
            scope["query_string"],
            headers,
            scope.get("root_path", ""),
            scope["http_version"],
            send_push_promise=_no_push,
            scope=self.scope,
        )

    async def _send_response(self, send: Any, response: Any) -> None:
        if (tag := response.headers.get("ETag")) is not None:
            response = await negotiated(headers_of(cast(Scope, self.scope)), response, tag)
        body = getattr(response.response, "data", None)
        headers = [(name.lower().encode("latin1"), value.encode("latin1")) for name, value in response.headers]
        start = {"type": "http.response.start", "status": response.status_code, "headers": headers}
        if body is None or len(body) > PIECE:
            await self._send_long(send, start, response.response)
            return
        await send(start)
        await send({"type": "http.response.body", "body": body, "more_body": False})

    async def _send_long(self, send: Any, start: Any, body: Any) -> None:
        """Send a long response or a stream in pieces, each after most of the one before has been read.

        A stream that fails ends without its last piece, so that a client does not mistake it for a whole one.
        """
        scope = cast(Scope, self.scope)
        size, begun = 2 * PIECE if isinstance(body, SharedBody) else len(getattr(body, "data", b"")) or 2 * PIECE, False
        try:
            async with body as pieces:
                with scope[SLOT].sending(size):
                    begun = True
                    await send(start)
                    async for piece in _divided(pieces):
                        if scope.get(LEFT, bool)():
                            return
                        await send({"type": "http.response.body", "body": piece, "more_body": True})
                    await send({"type": "http.response.body", "body": b"", "more_body": False})
        except ServiceError as error:
            if not begun:
                await reject(send, scope["path"], error.kind, error.message)
                return
            log.warning("a response ended early: %s", error.kind.code)


async def _divided(pieces: AsyncIterable[bytes | str]) -> AsyncIterator[bytes]:
    async for piece in pieces:
        data = piece.encode() if isinstance(piece, str) else piece
        for start in range(0, len(data), PIECE):
            yield data[start : start + PIECE]


class SharedBody(DataBody):
    """A body that many responses share: the copy of its `owner`."""

    def __init__(self, data: bytes, owner: object) -> None:
        super().__init__(data)
        self._owner = owner


async def _no_push(_path: str, _headers: Headers) -> None:
    """Ignore a push of HTTP/2, which this API does not use."""


class RememberedRouting(MapAdapter):
    """Routing that remembers its matches, because thousands of sites ask for the same few paths."""

    def match(self, *args: Any, **options: Any) -> Any:
        """Return the rule and its values, as Werkzeug does."""
        if args or options != {"return_rule": True} or len(self.path_info) > _LONGEST_REMEMBERED:
            return super().match(*args, **options)
        remembered: dict[Any, Any] = self.map.__dict__.setdefault("remembered", {})
        key = (self.default_method, self.path_info)
        if key not in remembered:
            if len(remembered) >= _MOST_REMEMBERED:
                remembered.clear()
            remembered[key] = super().match(*args, **options)
        rule, values = remembered[key]
        return rule, dict(values)


_NO_SESSION = NullSession()  # every request has its own token


class FastApp(Quart):
    """Quart with classes of our own and a shorter dispatch.

    `handle_request`, `full_dispatch_request` and `ensure_async` leave out signals, sessions, teardown functions and an
    application context for each request, because this API does not use them. Together they save 11.5 % of the CPU of a
    status, and 9 % of a list of 50 posts (in process, in turns). They use private names of Quart, so its version has
    an upper bound.
    """

    asgi_http_class = FastConnection
    request_class = FastRequest
    url_rule_class = MatchedRule

    def create_url_adapter(self, request: Any) -> MapAdapter | None:
        """Route by method and path only; the guard has checked the host."""
        if request is None:
            return super().create_url_adapter(None)
        return RememberedRouting(
            self.url_map, "localhost", "/", "", request.scheme, request.path, request.method, request.query_string
        )

    async def handle_request(self, request: Request) -> ResponseTypes:
        """Serve a request inside Quart's contexts; one application context serves all."""
        context = self.request_context(request)
        context.session = _NO_SESSION
        app_token, request_token = _cv_app.set(self._app_context), _cv_request.set(context)
        try:
            context.match_request()
            return await self.full_dispatch_request(context)
        except asyncio.CancelledError:
            raise
        except Exception as error:
            return await self.handle_exception(error)
        finally:
            _cv_request.reset(request_token)
            _cv_app.reset(app_token)

    async def full_dispatch_request(self, request_context: Any = None) -> ResponseTypes:
        """Run the functions before the view, the view or the error handler, and the functions after it."""
        result: Any
        try:
            begin(request_context.request)
            result = await self.preprocess_request(request_context)
            if result is None:
                result = await self.dispatch_request(request_context)
        except Exception as error:
            result = await self.handle_user_exception(error)
        return await self.process_response(await self.make_response(result), request_context)

    def ensure_async(self, func: Any) -> Any:
        """Return the function as an async one, looked up once for each function."""
        function = self._async_functions.get(func)
        if function is None:
            function = self._async_functions[func] = super().ensure_async(func)
        return function

    @cached_property
    def _app_context(self) -> AppContext:
        return AppContext(self)

    @cached_property
    def _async_functions(self) -> dict[Any, Any]:
        return {}
