"""Quart without what this API has no use for: sessions, signals, questions whose answers do not change."""

import asyncio
import sys
from functools import cached_property
from typing import Any, ClassVar, NamedTuple

from quart import Quart, Request
from quart.ctx import AppContext
from quart.globals import _cv_app, _cv_request
from quart.sessions import NullSession, SessionInterface
from werkzeug.routing import MapAdapter

from profilesvc.api.quart_fast import LeanConnection, fields
from profilesvc.server.routing import MatchedRule


class NoSessions(SessionInterface):
    """There are no sessions: every request brings its own token."""

    async def open_session(self, _app: Quart, _request: Any) -> Any:
        """The null session, which is never saved."""
        return _NO_SESSION


_NO_SESSION = NullSession()


class LeanRequest(Request):
    """Quart's request, which would work out its blueprints and its length anew each time that it is asked."""

    _known: ClassVar[dict[str | None, list[str]]] = {}

    @property
    def blueprints(self) -> list[str]:
        """From the innermost one outwards."""
        known = self._known.get(self.endpoint)
        if known is None:
            known = self._known[self.endpoint] = super().blueprints
        return known

    @cached_property
    def content_length(self) -> int | None:
        """In bytes; None where it is not told."""
        told = fields(self, b"content-length")
        if len(told) != 1 or not told[0].isdecimal() or fields(self, b"transfer-encoding"):
            return None
        digits = told[0].lstrip("0") or "0"
        return int(digits) if len(digits) < 20 else sys.maxsize  # int() takes long for very many digits


_OF_A_REQUEST = {"return_rule": True}
_REMEMBERED, _LONGEST_REMEMBERED = 2_000, 128


class Routing(MapAdapter):
    """Routing by method and path alone; which host a request named was settled at the edge.

    The matches of before are remembered: thousands of sites ask for the same few paths.
    """

    def match(self, *args: Any, **options: Any) -> Any:
        """As Werkzeug matches."""
        if args or options != _OF_A_REQUEST or len(self.path_info) > _LONGEST_REMEMBERED:
            return super().match(*args, **options)
        known: dict[Any, Any] = self.map.__dict__.setdefault("remembered", {})
        asked = (self.default_method, self.path_info)
        found = known.get(asked)
        if found is None:
            found = super().match(*args, **options)
            if len(known) >= _REMEMBERED:
                known.clear()
            known[asked] = found
        rule, values = found
        return rule, dict(values)


class Around(NamedTuple):
    """What runs before and after the view of an endpoint."""

    before: list[Any]
    after: list[Any]


class LeanApp(Quart):
    """Quart without its signals, sessions and teardown functions, which nothing here listens to or has."""

    asgi_http_class = LeanConnection
    request_class = LeanRequest
    url_rule_class = MatchedRule
    session_interface = NoSessions()  # type: ignore[assignment]  # declared as narrower than it is used

    async def handle_request(self, request: Any) -> Any:
        """Serve inside Quart's contexts; that of the application is one for all, as nothing is kept in it."""
        context = self.request_context(request)
        context.session = _NO_SESSION
        app_before, request_before = _cv_app.set(self._always), _cv_request.set(context)
        try:
            context.match_request()
            return await self.full_dispatch_request(context)
        except asyncio.CancelledError:  # for whoever cancelled it
            raise
        except Exception as error:
            return await self.handle_exception(error)
        finally:
            _cv_request.reset(request_before)
            _cv_app.reset(app_before)

    @cached_property
    def _always(self) -> AppContext:
        return AppContext(self)

    def create_url_adapter(self, request: Any) -> MapAdapter | None:
        """What the request's path is matched by."""
        if request is None:
            return super().create_url_adapter(None)
        place = (request.scheme, request.path, request.method, request.query_string)
        return Routing(self.url_map, "localhost", "/", "", *place)

    def ensure_async(self, func: Any) -> Any:
        """Quart asks at each call whether a function is async: here it asks once for each."""
        known = self._async.get(func)
        if known is None:
            known = self._async[func] = super().ensure_async(func)
        return known

    @cached_property
    def _async(self) -> dict[Any, Any]:
        return {}

    @cached_property
    def _around(self) -> dict[str | None, Around]:
        return {}

    def _around_of(self, request: Any) -> Around:
        known = self._around.get(request.endpoint)
        if known is None:
            names = [*request.blueprints, None]
            before = [function for name in reversed(names) for function in self.before_request_funcs[name]]
            after = [function for name in names for function in reversed(self.after_request_funcs[name])]
            known = Around([self.ensure_async(each) for each in before], [self.ensure_async(each) for each in after])
            self._around[request.endpoint] = known
        return known

    async def full_dispatch_request(self, request_context: Any = None) -> Any:
        """Before, the view or what answers its failure, after."""
        around = self._around_of(request_context.request)
        try:
            answer = None
            for function in around.before:
                if answer is None:
                    answer = await function()
            if answer is None:
                answer = await self.dispatch_request(request_context)
        except Exception as error:
            answer = await self.handle_user_exception(error)
        response = await self.make_response(answer)
        for function in around.after:
            response = await function(response)
        return response
