"""What is checked before the framework sees a request, and what every response carries: a plain ASGI wrapper.

Servers accept what an API must not act on: oversized headers, two Host or Origin headers, a length next to a transfer
coding, versions of HTTP that they do not support, a body behind an Upgrade, which they lose (D-01, A081, A092, A093,
A123).
"""

import logging
import re
import sys
import time
from collections.abc import Awaitable, Callable, Iterator, Mapping, MutableMapping
from contextlib import contextmanager
from typing import Any

from profilesvc.api.caching import cache_headers
from profilesvc.api.failures import body_for
from profilesvc.api.request import PLACE, headers_of
from profilesvc.contract.errors import HEADERS_TOO_LARGE, NOT_FOUND, SERVICE_UNAVAILABLE, VALIDATION_ERROR, ErrorKind
from profilesvc.domain.addresses import client_address, network
from profilesvc.domain.errors import ServiceError
from profilesvc.domain.rates import Counted
from profilesvc.domain.request import RequestInfo, serving
from profilesvc.domain.world import Entropy
from profilesvc.server.scope import BEFORE, MALFORMED
from profilesvc.services.context import Services

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Any, Any, Any], Awaitable[None]]
access_log = logging.getLogger("profilesvc.access")  # a line per request, when the command line switches it on
METRICS = "/metrics"
_ALWAYS = frozenset({"/healthz", "/readyz", METRICS})  # monitors of a full service must not take it for a dead one
FULL = "The service is full."
ROOM_BYTES = 64 * 1024 * 1024
_TIMES_FREE = 4
MAX_HEADER_BYTES = 16 * 1024
MAX_HEADER_LINES = 100
_NOTHING = [b""]
_HEADERS = [(b"x-content-type-options", b"nosniff")]  # of every response
_HTTPS_HEADERS = [*_HEADERS, (b"strict-transport-security", b"max-age=31536000")]
_NO_PATH = NOT_FOUND, "There is no such path."
_FRAMING = frozenset({b"content-length", b"transfer-encoding", b"upgrade"})
_METHODS = frozenset({"GET", "HEAD", "OPTIONS", "POST", "PUT", "PATCH", "DELETE"})
_VERSIONS = frozenset({"1.0", "1.1", "2", "3"})
_LABEL = rb"[A-Za-z0-9_-]{1,63}"
_HOST = re.compile(rb"(?:%b(?:\.%b)*\.?|\[[0-9A-Fa-f:.]{2,45}\])(?::[0-9]{0,5})?\Z" % (_LABEL, _LABEL))
_REQUEST_ID = re.compile(rb"[A-Za-z0-9._-]{8,64}\Z")


class Shares:
    """An amount that addresses share: each may hold four times what is still free.

    So one address alone can use four fifths, many use less each, and something is left for the next one.
    """

    def __init__(self, most: Callable[[], int]) -> None:
        self._most = most
        self._by_address: dict[str, int] = {}
        self.held = 0

    def fits(self, address: str, amount: int, waiting: int = 0) -> bool:
        """Return whether the address may have that much more; `waiting` counts if it is more than what is held."""
        free = self._most() - max(self.held, waiting)
        return amount <= free and self._by_address.get(address, 0) + amount <= _TIMES_FREE * free

    def add(self, address: str, amount: int) -> None:
        """Add to what the address holds; a negative amount is given back."""
        self.held += amount
        now = self._by_address.get(address, 0) + amount
        if now:
            self._by_address[address] = now
        else:
            self._by_address.pop(address, None)


class Places:
    """What the requests of a process share. `on_full` is called when one must be refused in the middle."""

    def __init__(self, most: Callable[[], int], on_full: Callable[[], None]) -> None:
        self.at_work, self.room, self.on_full = Shares(most), Shares(lambda: ROOM_BYTES), on_full
        self.waiting = 0


class Place:
    """What one request holds: a place at work, or room for its body while it waits for that."""

    __slots__ = ("_at_work", "_owner", "_places", "address", "reads")

    def __init__(self, places: Places, scope: Any, forwarded: list[bytes], hops: int) -> None:
        peer, entries = scope.get("client"), [value.decode("latin1") for value in forwarded]
        self.address = client_address(peer[0] if peer else None, entries, hops)
        self._owner = "local" if self.address is None else network(self.address, 32, 64)
        self._places, self._at_work = places, False
        self.reads = False  # whether the body was asked for

    def fits(self, came_before: int) -> bool:
        """Return whether it may be worked on; `came_before` requests had no response yet when this one arrived."""
        return self._places.at_work.fits(self._owner, 1, came_before - self._places.waiting)

    def enter(self) -> None:
        """Count as at work."""
        self._places.at_work.add(self._owner, 1)
        self._at_work = True

    def leave(self) -> None:
        """Give the place back, if it is held."""
        if self._at_work:
            self._places.at_work.add(self._owner, -1)
            self._at_work = False

    @contextmanager
    def waiting_for(self, size: int) -> Iterator[None]:
        """Open a block in which the request waits for so many bytes: it has memory for them and no place at work.

        Raises:
            ServiceError: SERVICE_UNAVAILABLE without memory before the block, or without a place after it.
        """
        places = self._places
        self._require(places.room.fits(self._owner, size))
        self.leave()
        places.room.add(self._owner, size)
        places.waiting += 1
        try:
            yield
        finally:
            places.waiting -= 1
            places.room.add(self._owner, -size)
        self._require(self.fits(0))
        self.enter()

    def _require(self, fits: bool) -> None:
        if not fits:
            self._places.on_full()
            raise ServiceError(SERVICE_UNAVAILABLE, FULL, retry_after=1)


class RequestGuard:
    """Wraps an ASGI app: refuses ambiguous requests and those beyond what it may work on at a time, names responses.

    It reads from the app's `config`: MAX_IN_FLIGHT requests at a time; TRUSTED_HOPS, how many proxies in front are
    trusted to name the address of a caller; HTTPS, whether browsers may remember that the service is reached by https;
    METRICS_PORT, the port that serves the metrics and nothing else (without one, every port does). `running`
    returns the services while they are open, for their metrics.
    """

    def __init__(
        self,
        app: App,
        entropy: Entropy,
        config: Mapping[str, Any],
        running: Callable[[], Services | None] = lambda: None,
    ) -> None:
        self._app, self._entropy, self._config = app, entropy, config
        self._running = running
        self._places = Places(lambda: int(config.get("MAX_IN_FLIGHT", sys.maxsize)), lambda: self._refused(None))

    @property
    def in_flight(self) -> int:
        """How many requests are being worked on; those that wait for their bodies are not."""
        return self._places.at_work.held

    async def __call__(self, scope: Any, receive: Receive, send: Send) -> None:
        """Serve one ASGI call; anything but HTTP passes untouched."""
        if scope["type"] != "http":
            scope.get("state", {})[MALFORMED] = lambda: self._refused(VALIDATION_ERROR)
            await self._app(scope, receive, send)
            return
        scope = {**scope}
        names = headers_of(scope)
        place = scope[PLACE] = Place(
            self._places, scope, names.get(b"x-forwarded-for", []), self._config.get("TRUSTED_HOPS", 0)
        )
        request_id = self._request_id(names.get(b"x-request-id", _NOTHING)[-1])
        origin = names.get(b"origin")  # at most one passes
        request = RequestInfo(
            place.address, request_id, "client", None if origin is None else origin[0].decode("latin1")
        )
        problem = self._problem(scope, place)
        if problem is not None:
            self._refused(problem[0])
            await _refuse(self._named(send, scope, request), scope["path"], *problem)
            return
        answered = self._named(send, scope, request, is_counted=True)
        outer = serving.set(request)
        place.enter()
        try:
            await self._app(scope, receive, answered)
        finally:  # in one process with its caller a request may share the caller's task
            place.leave()
            serving.reset(outer)

    def _named(self, send: Send, scope: Any, request: RequestInfo, *, is_counted: bool = False) -> Send:
        """Return `send` with what every response carries; it also measures and logs the response."""
        names, place, path, begun = headers_of(scope), scope[PLACE], scope["path"], time.perf_counter()
        extra = [(b"x-request-id", (request.request_id or "").encode())]
        extra += _HTTPS_HEADERS if self._config.get("HTTPS") else _HEADERS
        if b"upgrade" in names:
            extra.append((b"connection", b"close"))  # the server would not read on

        async def named(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = message.get("headers", ())
                message["headers"] = [*headers, *extra, *cache_headers(path, headers), *_rate_limit(request.tightest)]
                if b"expect" in names and not place.reads:  # the client was not asked for its body: it may not send it
                    message["headers"].append((b"connection", b"close"))
                seconds = time.perf_counter() - begun
                if is_counted and (running := self._running()) is not None:
                    method = scope["method"] if scope["method"] in _METHODS else "other"
                    running.metrics.request(method, request.route, message["status"], request.outcome, seconds)
                if access_log.isEnabledFor(logging.INFO):
                    _log(scope, message["status"], seconds, request)
            await send(message)

        return named

    def _refused(self, kind: ErrorKind | None) -> None:
        """Count what the guard refused, whatever its method and path; None: a full service refused in an endpoint."""
        if (running := self._running()) is None:
            return
        if kind is not None:
            running.metrics.request("other", "unknown", kind.status, kind.code, 0.0)
        if kind in {None, SERVICE_UNAVAILABLE}:
            running.metrics.limit_reached("in-flight")

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

    def _request_id(self, sent: bytes) -> str:
        """Return the caller's id if it is a plain one, so that a proxy's trace goes on; otherwise a new one."""
        return sent.decode() if _REQUEST_ID.match(sent) else self._entropy.token_bytes(8).hex()


def _problem(scope: Any) -> tuple[ErrorKind, str] | None:
    names, version = headers_of(scope), scope.get("http_version", "1.1")
    if sum([len(name) + len(value) for name, value in scope["headers"]]) > MAX_HEADER_BYTES:
        return HEADERS_TOO_LARGE, HEADERS_TOO_LARGE.message
    if len(scope["headers"]) > MAX_HEADER_LINES:
        return HEADERS_TOO_LARGE, f"The request has more than {MAX_HEADER_LINES} headers."
    if version not in _VERSIONS:
        return VALIDATION_ERROR, "Send the request by HTTP/1.1."
    hosts = names.get(b"host", [])
    if len(hosts) > 1 or (not hosts and version == "1.1"):
        return VALIDATION_ERROR, "Send exactly one Host header."
    if hosts and not _HOST.match(hosts[0]):  # the framework's routing would fail on it
        return VALIDATION_ERROR, "The Host header must name a host."
    for name in (b"origin", b"content-type"):
        if len(names.get(name, ())) > 1:
            return VALIDATION_ERROR, f"Send at most one {name.decode().title()} header."
    return None if _FRAMING.isdisjoint(names) else _framing_problem(names, version)


def _framing_problem(names: dict[bytes, list[bytes]], version: str) -> tuple[ErrorKind, str] | None:
    """Return what could make two readers disagree about where the body ends."""
    lengths = names.get(b"content-length", [])
    codings = [value.strip().lower() for value in names.get(b"transfer-encoding", ())]
    if len(lengths) > 1 or (lengths and codings):
        return VALIDATION_ERROR, "Send one Content-Length header, and none together with Transfer-Encoding."
    if codings and (codings != [b"chunked"] or version == "1.0"):
        return VALIDATION_ERROR, "The only Transfer-Encoding that is accepted is chunked, by HTTP/1.1."
    if b"upgrade" in names and (codings or lengths):
        return VALIDATION_ERROR, "A request with an Upgrade header must have no body."
    return None


def _rate_limit(tightest: Counted | None) -> list[tuple[bytes, bytes]]:
    """Return the headers about the bucket with the least left (draft-ietf-httpapi-ratelimit-headers-10)."""
    if tightest is None:
        return []
    name, window, standing = tightest.name, tightest.window, tightest.standing
    policy = f'"{name}";q={window.limit};w={window.seconds}'
    return [
        (b"ratelimit-policy", policy.encode()),
        (b"ratelimit", f'"{name}";r={standing.left};t={tightest.seconds}'.encode()),
    ]


def _log(scope: Any, status: int, seconds: float, request: RequestInfo) -> None:
    """Log a response: the route and not the path, no query and no header, because they could hold secrets."""
    method, route = scope["method"], request.route
    fields = {"method": method, "route": route, "status": status, "seconds": round(seconds, 6)}
    access_log.info("%s %s %d", method, route, status, extra={"more": {"request_id": request.request_id, **fields}})


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
