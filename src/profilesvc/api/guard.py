"""What is settled before the framework sees a request, and what every answer carries: a plain ASGI wrapper.

Servers let through what an API must not act on: oversized headers, two Host or Origin headers, a length beside a
transfer coding, versions of HTTP that they do not speak, a body behind an Upgrade, which they lose (D-01, A081, A092,
A093, A123).
"""

import logging
import re
import sys
import time
from collections.abc import Awaitable, Callable, Mapping, MutableMapping
from typing import Any

from profilesvc.api.cache_control import keeping
from profilesvc.api.concurrency import FULL, PLACE, Place, Places
from profilesvc.api.failures import REQUEST_ID, body_for
from profilesvc.api.quart_fast import ROUTE, given
from profilesvc.contract.errors import HEADERS_TOO_LARGE, NOT_FOUND, SERVICE_UNAVAILABLE, VALIDATION_ERROR, ErrorKind
from profilesvc.domain.world import Entropy
from profilesvc.server.scope import BEFORE, MALFORMED
from profilesvc.services import audit

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Any, Any, Any], Awaitable[None]]
access_log = logging.getLogger("profilesvc.access")  # a line per request, when the command line switches it on
METRICS = "/metrics"
_ALWAYS = frozenset({"/healthz", "/readyz", METRICS})  # who watches a full service must not take it for a dead one
MAX_HEADER_BYTES = 16 * 1024
MAX_HEADER_LINES = 100
_NOTHING = [b""]
_HEADERS = [(b"x-content-type-options", b"nosniff")]  # of every response
_HTTPS_HEADERS = [*_HEADERS, (b"strict-transport-security", b"max-age=31536000")]
_NO_PATH = NOT_FOUND, "There is no such path."
_FRAMING = frozenset({b"content-length", b"transfer-encoding", b"upgrade"})
_VERSIONS = frozenset({"1.0", "1.1", "2", "3"})
_LABEL = rb"[A-Za-z0-9_-]{1,63}"
_HOST = re.compile(rb"(?:%b(?:\.%b)*\.?|\[[0-9A-Fa-f:.]{2,45}\])(?::[0-9]{0,5})?\Z" % (_LABEL, _LABEL))
_REQUEST_ID = re.compile(rb"[A-Za-z0-9._-]{8,64}\Z")


class Edge:
    """Wraps an ASGI app: refuses ambiguous requests and those beyond what it may work on at a time, names each answer.

    It reads from the app's `config`: MAX_IN_FLIGHT requests at a time; TRUSTED_HOPS, how many proxies in front are
    trusted to name the address of a caller; HTTPS, whether browsers may remember that the service is reached by https;
    METRICS_PORT, the port that serves the metrics and nothing else (without one they are next to everything else).
    """

    def __init__(
        self,
        app: App,
        entropy: Entropy,
        config: Mapping[str, Any],
        refused: Callable[[ErrorKind | None], None] = lambda _: None,
    ) -> None:
        self._app, self._entropy, self._config, self._refused = app, entropy, config, refused
        self._places = Places(lambda: int(config.get("MAX_IN_FLIGHT", sys.maxsize)), lambda: refused(None))

    @property
    def in_flight(self) -> int:
        """How many requests are being worked on; those that wait for their bodies are not."""
        return self._places.at_work.held

    async def __call__(self, scope: Any, receive: Receive, send: Send) -> None:
        """One ASGI call; anything but HTTP passes untouched."""
        if scope["type"] != "http":
            scope.get("state", {})[MALFORMED] = lambda: self._refused(VALIDATION_ERROR)
            await self._app(scope, receive, send)
            return
        scope = {**scope}
        names = given(scope)
        request_id = self._request_id(names.get(b"x-request-id", _NOTHING)[-1])
        scope[REQUEST_ID] = request_id.decode()  # so that the log can name the answer
        place = scope[PLACE] = Place(
            self._places, scope, names.get(b"x-forwarded-for", []), self._config.get("TRUSTED_HOPS", 0)
        )
        answered = self._named(send, scope, request_id)
        problem = self._problem(scope, place)
        if problem is not None:
            self._refused(problem[0])
            await _refuse(answered, scope["path"], *problem)
            return
        asked = audit.trace.set(audit.Trace("client", None, request_id.decode()))
        place.enter()
        try:
            await self._app(scope, receive, answered)
        finally:  # in one process with its caller a request may share the caller's task
            place.leave()
            audit.trace.reset(asked)

    def _named(self, send: Send, scope: Any, request_id: bytes) -> Send:
        """`send` with what every answer carries."""
        names, place, path = given(scope), scope[PLACE], scope["path"]
        extra = [(b"x-request-id", request_id), *(_HTTPS_HEADERS if self._config.get("HTTPS") else _HEADERS)]
        if b"upgrade" in names:
            extra.append((b"connection", b"close"))  # the server would not read on

        async def named(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = message.get("headers", ())
                message["headers"] = [*headers, *extra, *keeping(path, headers)]
                if b"expect" in names and not place.reads:  # the client was not asked for its body: it may not send it
                    message["headers"].append((b"connection", b"close"))
            await send(message)

        return _logged(named, scope) if access_log.isEnabledFor(logging.INFO) else named

    def _problem(self, scope: Any, place: Place) -> tuple[ErrorKind, str] | None:
        if scope["path"] not in _ALWAYS and not place.fits(scope.get(BEFORE, 0)):
            return SERVICE_UNAVAILABLE, FULL
        problem = _problem(scope)
        if scope["path"].startswith("//"):  # the framework would drop a slash and serve it (A096)
            problem = problem or _NO_PATH
        if (port := self._config.get("METRICS_PORT")) is not None:
            is_there = (scope.get("server") or ("", None))[1] == port
            if is_there is not (scope["path"] == METRICS):
                problem = problem or _NO_PATH
        return problem

    def _request_id(self, given: bytes) -> bytes:
        """The caller's id when it is a plain one, so that a proxy's trace goes on; otherwise a new one."""
        return given if _REQUEST_ID.match(given) else self._entropy.token_bytes(8).hex().encode()


def _problem(scope: Any) -> tuple[ErrorKind, str] | None:
    names, version = given(scope), scope.get("http_version", "1.1")
    if sum([len(name) + len(value) for name, value in scope["headers"]]) > MAX_HEADER_BYTES:
        return HEADERS_TOO_LARGE, HEADERS_TOO_LARGE.message
    if len(scope["headers"]) > MAX_HEADER_LINES:
        return HEADERS_TOO_LARGE, f"The request has more than {MAX_HEADER_LINES} headers."
    if version not in _VERSIONS:
        return VALIDATION_ERROR, "Speak HTTP/1.1."
    hosts = names.get(b"host", [])
    if len(hosts) > 1 or (not hosts and version == "1.1"):
        return VALIDATION_ERROR, "Send exactly one Host header."
    if hosts and not _HOST.match(hosts[0]):  # the framework's routing would fail on it
        return VALIDATION_ERROR, "Send a Host header that names a host."
    for name in (b"origin", b"content-type"):
        if len(names.get(name, ())) > 1:
            return VALIDATION_ERROR, f"Send at most one {name.decode().title()} header."
    return None if _FRAMING.isdisjoint(names) else _framing_problem(names, version)


def _framing_problem(names: dict[bytes, list[bytes]], version: str) -> tuple[ErrorKind, str] | None:
    """What could make two readers disagree about where the body ends."""
    lengths = names.get(b"content-length", [])
    codings = [value.strip().lower() for value in names.get(b"transfer-encoding", ())]
    if len(lengths) > 1 or (lengths and codings):
        return VALIDATION_ERROR, "Send one Content-Length, and not together with Transfer-Encoding."
    if codings and (codings != [b"chunked"] or version == "1.0"):
        return VALIDATION_ERROR, "Send no Transfer-Encoding but chunked, and that by HTTP/1.1."
    if b"upgrade" in names and (codings or lengths):
        return VALIDATION_ERROR, "Send no body with an Upgrade."
    return None


def _logged(send: Send, scope: Any) -> Send:
    """Write a line when the answer begins: the route and not the path, no query, no header; they could hold secrets."""
    begun = time.perf_counter()

    async def logged(message: Message) -> None:
        if message["type"] == "http.response.start":
            members = {
                "request_id": scope[REQUEST_ID],
                "method": scope["method"],
                "route": scope.get(ROUTE, "unknown"),
                "status": message["status"],
                "seconds": round(time.perf_counter() - begun, 6),
            }
            access_log.info("%s %s %d", members["method"], members["route"], members["status"], extra={"more": members})
        await send(message)

    return logged


async def _refuse(send: Send, path: str, kind: ErrorKind, message: str) -> None:
    body = body_for(path, kind, message, {})
    headers = [(b"retry-after", b"1")] if kind is SERVICE_UNAVAILABLE else []
    headers += [
        (b"content-type", b"application/json"),
        (b"content-length", str(len(body)).encode()),
        (b"connection", b"close"),
    ]
    await send({"type": "http.response.start", "status": kind.status, "headers": headers})
    await send({"type": "http.response.body", "body": body})
