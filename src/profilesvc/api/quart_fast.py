"""Quart with what this API does not use left out: tasks for each request, sessions, hosts in routing."""

from typing import Any
from urllib.parse import urlparse

from quart import Quart, Request, Response
from quart.asgi import ASGIHTTPConnection
from quart.sessions import NullSession, SessionInterface
from quart.wrappers.response import DataBody
from werkzeug.datastructures import Headers
from werkzeug.routing import MapAdapter

from profilesvc.api.request import AwaitedBody
from profilesvc.server.routing import MatchedRule


class FastConnection(ASGIHTTPConnection):
    """One request in the server's own task; its body is read when an endpoint asks for it.

    Quart makes two tasks for each request, to collect the body and to end the handler with its client: 45 % of a GET
    of a status (in process, `__call__`).
    """

    async def __call__(self, receive: Any, send: Any) -> None:
        """Serve the request."""
        request = self._create_request_from_scope(send)
        limit = self.app.config["MAX_CONTENT_LENGTH"]
        request.body = AwaitedBody(request.content_length, limit, self.scope, receive)
        await self.handle_request(request, send)

    def _create_request_from_scope(self, send: Any) -> Request:
        """Leave the headers' names as they are and skip the push promises: 13 % of the same request."""
        peer = (self.scope.get("client") or ("<local>", 0))[0]
        sent = [(name.decode("latin1"), value.decode("latin1")) for name, value in self.scope["headers"]]
        headers = Headers([("Remote-Addr", peer), *(each for each in sent if each[0] != "remote-addr")])
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

    async def _send_response(self, send: Any, response: Any) -> None:
        if not isinstance(response, Response) or not isinstance(response.response, DataBody):
            await super()._send_response(send, response)
            return
        headers = [(name.lower().encode("latin1"), value.encode("latin1")) for name, value in response.headers]
        await send({"type": "http.response.start", "status": response.status_code, "headers": headers})
        await send({"type": "http.response.body", "body": response.response.data, "more_body": False})


async def _no_push(_path: str, _headers: Headers) -> None:
    """Ignore HTTP/2 push, which this API does not use."""


class NoSessions(SessionInterface):
    """There are no sessions: every request brings its own token."""

    async def open_session(self, _app: Quart, _request: Any) -> Any:
        """Return the null session, which is never saved."""
        return NullSession()


class FastApp(Quart):
    """Quart by the classes that it lets an application choose."""

    asgi_http_class = FastConnection
    url_rule_class = MatchedRule
    session_interface = NoSessions()  # type: ignore[assignment]  # declared as narrower than it is used

    def create_url_adapter(self, request: Any) -> MapAdapter | None:
        """Route by method and path only; the guard has checked the host that the request named."""
        if request is None:
            return super().create_url_adapter(None)
        return MapAdapter(
            self.url_map, "localhost", "/", "", request.scheme, request.path, request.method, request.query_string
        )
