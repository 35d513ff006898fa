"""An ASGI wrapper that checks each request before the framework sees it, and adds headers to every response.

Servers accept requests that an API must reject: with oversized headers, two Host or Origin headers, a length next to a
transfer coding, a version of HTTP that they do not support, or a body after an Upgrade header, which they lose.
"""

import logging
import re
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from profilesvc.api.failures import body_for
from profilesvc.api.request import SLOT, headers_of
from profilesvc.contract.errors import HEADERS_TOO_LARGE, NOT_FOUND, SERVICE_UNAVAILABLE, VALIDATION_ERROR, ErrorKind
from profilesvc.domain.entropy import Entropy
from profilesvc.domain.errors import ServiceError
from profilesvc.domain.rates import Counted
from profilesvc.domain.request import Finished, RequestInfo, client_address, serving
from profilesvc.server.scope import BEFORE, MALFORMED, App, Message, Receive, Scope, Send
from profilesvc.services.context import Services

access_log = logging.getLogger("profilesvc.access")  # a line per request, if `access_log` is set
METRICS = "/metrics"
_NEVER_FULL = frozenset({"/healthz", "/readyz", METRICS})  # so that monitoring does not report a full service as down
FULL = "The service is full."
MEMORY_BYTES = 64 * 1024 * 1024
_FREE_FACTOR = 4
MAX_HEADER_BYTES = 16 * 1024
MAX_HEADER_LINES = 100
_NO_VALUE = [b""]
_HEADERS = [(b"x-content-type-options", b"nosniff")]  # of every response
_HTTPS_HEADERS = [*_HEADERS, (b"strict-transport-security", b"max-age=31536000")]
# Also for responses that may not be cached, because a cache may be configured to store them all the same.
_BY_CALLER = (b"Authorization", ("/api/", "/oauth2/", "/metrics"))
_BY_SESSION = (b"Accept-Language, Cookie, X-Fragment", ("/dashboard",))
_PRIVATE = (b"cache-control", b"private, no-store")
_NO_PATH = NOT_FOUND, "There is no such path."
_FRAMING = frozenset({b"content-length", b"transfer-encoding", b"upgrade"})
_METHODS = frozenset({"GET", "HEAD", "OPTIONS", "POST", "PUT", "PATCH", "DELETE"})
_VERSIONS = frozenset({"1.0", "1.1", "2", "3"})
_LABEL = rb"[A-Za-z0-9_-]{1,63}"
_HOST = re.compile(rb"(?:%b(?:\.%b)*\.?|\[[0-9A-Fa-f:.]{2,45}\])(?::[0-9]{0,5})?\Z" % (_LABEL, _LABEL))
_REQUEST_ID = re.compile(rb"[A-Za-z0-9._-]{8,64}\Z")


class Shares:
    """An amount that addresses share: each may hold four times the amount that is still free.

    So a single address can use four fifths, several use less each, and a part stays free for the next one.
    """

    def __init__(self, total: Callable[[], int]) -> None:
        self._total = total
        self._by_address: dict[str, int] = {}
        self.held = 0

    def fits(self, address: str, amount: int, waiting: int = 0) -> bool:
        """Return whether the address may have that much more; `waiting` replaces the held amount if it is larger."""
        free = self._total() - max(self.held, waiting)
        return amount <= free and self._by_address.get(address, 0) + amount <= _FREE_FACTOR * free

    def add(self, address: str, amount: int) -> None:
        """Add to the amount of an address; a negative amount is released."""
        self.held += amount
        total = self._by_address.get(address, 0) + amount
        if total:
            self._by_address[address] = total
        else:
            self._by_address.pop(address, None)


class Capacity:
    """The slots that the requests of a process share, and the memory: for bodies, and for responses that wait.

    `on_full` is called when a request is rejected after its endpoint has started.
    """

    def __init__(self, total: Callable[[], int], on_full: Callable[[], None]) -> None:
        self.active, self.memory = Shares(total), Shares(lambda: MEMORY_BYTES)
        self.on_full = on_full
        self.sending = Shares(lambda: MEMORY_BYTES)
        self.waiting = 0


class Slot:
    """The slot of an active request, or the memory for its body while it waits for that."""

    __slots__ = ("_capacity", "_is_active", "_network", "reads")

    def __init__(self, capacity: Capacity, network: str) -> None:
        self._capacity, self._network = capacity, network
        self._is_active = False
        self.reads = False  # whether the endpoint reads the body

    def fits(self, earlier: int) -> bool:
        """Return whether the request may run; `earlier` requests had no response yet when this one arrived."""
        return self._capacity.active.fits(self._network, 1, earlier - self._capacity.waiting)

    def enter(self) -> None:
        self._capacity.active.add(self._network, 1)
        self._is_active = True

    def leave(self) -> None:
        """Release the slot, if the request has one."""
        if self._is_active:
            self._capacity.active.add(self._network, -1)
            self._is_active = False

    @contextmanager
    def waiting_for(self, size: int) -> Iterator[None]:
        """Release the slot and reserve memory for so many bytes during the block.

        Raises:
            ServiceError: SERVICE_UNAVAILABLE, if no memory is free before the block or no slot after it.
        """
        capacity = self._capacity
        self._require(capacity.memory.fits(self._network, size))
        self.leave()
        capacity.memory.add(self._network, size)
        capacity.waiting += 1
        try:
            yield
        finally:
            capacity.waiting -= 1
            capacity.memory.add(self._network, -size)
        self._require(self.fits(0))
        self.enter()

    @contextmanager
    def sending(self, size: int) -> Iterator[None]:
        """Release the slot and reserve memory for so many bytes of a response, while the client reads it.

        Raises:
            ServiceError: SERVICE_UNAVAILABLE, if no memory is free.
        """
        shares = self._capacity.sending
        self._require(shares.fits(self._network, size))
        self.leave()
        shares.add(self._network, size)
        try:
            yield
        finally:
            shares.add(self._network, -size)

    def _require(self, fits: bool) -> None:
        if not fits:
            self._capacity.on_full()
            raise ServiceError(SERVICE_UNAVAILABLE, FULL, retry_after=1)


class RequestGuard:
    """An ASGI wrapper that rejects ambiguous requests and excess load, and adds a request id to each response.

    It reads the app's `config`: MAX_IN_FLIGHT, how many requests may be active; TRUSTED_HOPS, how many proxies are
    trusted to report the address of a caller; HTTPS, whether to send Strict-Transport-Security; METRICS_PORT, the port
    that serves only the metrics (without it, every port serves them). `services` returns them while they are
    open, for their metrics.
    """

    def __init__(
        self,
        app: App,
        entropy: Entropy,
        config: Mapping[str, Any],
        services: Callable[[], Services | None] = lambda: None,
    ) -> None:
        self._app, self._entropy = app, entropy
        self._config = config
        self._services = services
        self._capacity = Capacity(
            lambda: int(config.get("MAX_IN_FLIGHT", sys.maxsize)), lambda: self._count_rejected(None)
        )

    @property
    def in_flight(self) -> int:
        """Return the number of active requests. Those that wait for their bodies are not active."""
        return self._capacity.active.held

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one ASGI call; pass on anything but HTTP unchanged."""
        if scope["type"] != "http":
            scope.get("state", {})[MALFORMED] = lambda: self._count_rejected(VALIDATION_ERROR)
            await self._app(scope, receive, send)
            return
        scope = {**scope}
        request = self._request(scope)
        slot = scope[SLOT] = Slot(self._capacity, request.client_network)
        problem = self._problem(scope, slot)
        if problem is not None:
            self._count_rejected(problem[0])
            await reject(self._with_headers(send, scope, request), scope["path"], *problem)
            return
        sender = self._with_headers(send, scope, request, is_counted=True)
        outer = serving.set(request)
        slot.enter()
        try:
            await self._app(scope, receive, sender)
        finally:  # a client in the same process may call the app in its own task
            slot.leave()
            serving.reset(outer)

    def _with_headers(self, send: Send, scope: Scope, request: RequestInfo, *, is_counted: bool = False) -> Send:
        """Return a `send` that adds the headers of every response, and measures and logs it."""
        names, slot = headers_of(scope), scope[SLOT]
        path, started_at = scope["path"], time.perf_counter()
        began = 0 if (at_start := self._services()) is None else at_start.clock.now()
        extra = [(b"x-request-id", (request.request_id or "").encode())]
        extra += _HTTPS_HEADERS if self._config.get("HTTPS") else _HEADERS
        if b"upgrade" in names:
            extra.append((b"connection", b"close"))  # the server would not read another request

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = message.get("headers", ())
                message["headers"] = [*headers, *extra, *_cache_headers(path, headers), *_rate_limit(request.tightest)]
                if b"expect" in names and not slot.reads:  # the client waits for 100 Continue before its body
                    message["headers"].append((b"connection", b"close"))
                seconds = time.perf_counter() - started_at
                if is_counted and (services := self._services()) is not None:
                    method = scope["method"] if scope["method"] in _METHODS else "other"
                    services.metrics.request(method, request.route, message["status"], request.outcome, seconds)
                    lasted = services.clock.now() - began
                    for note in services.finished:
                        note(Finished(request.key, request, method, message["status"], began, lasted))
                if access_log.isEnabledFor(logging.INFO):
                    _log(scope, message["status"], seconds, request)
            await send(message)

        return send_with_headers

    def _count_rejected(self, kind: ErrorKind | None) -> None:
        """Count a rejected request; None is one that a full service rejected after its endpoint had started."""
        if (services := self._services()) is None:
            return
        if kind is not None:
            services.metrics.request("other", "unknown", kind.status, kind.code, 0.0)
        if kind in {None, SERVICE_UNAVAILABLE}:
            services.metrics.limit_reached("in-flight")

    def _problem(self, scope: Scope, slot: Slot) -> tuple[ErrorKind, str] | None:
        if scope["path"] not in _NEVER_FULL and not slot.fits(scope.get(BEFORE, 0)):
            return SERVICE_UNAVAILABLE, FULL
        problem = _problem(scope)
        if scope["path"].startswith("//"):  # the framework would drop a slash and serve it
            problem = problem or _NO_PATH
        if (port := self._config.get("METRICS_PORT")) is not None:
            is_metrics_port = (scope.get("server") or ("", None))[1] == port
            if is_metrics_port is not (scope["path"] == METRICS):
                problem = problem or _NO_PATH
        return problem

    def _request(self, scope: Scope) -> RequestInfo:
        """Return the state of a new request. A valid id of the caller stays, so that it matches a proxy's log."""
        names, peer = headers_of(scope), scope.get("client")
        forwarded = [value.decode("latin1") for value in names.get(b"x-forwarded-for", ())]
        address = client_address(peer[0] if peer else None, forwarded, self._config.get("TRUSTED_HOPS", 0))
        header = names.get(b"x-request-id", _NO_VALUE)[-1]
        request_id = header.decode() if _REQUEST_ID.match(header) else self._entropy.token_bytes(8).hex()
        origin = names.get(b"origin")  # `_problem` rejects a second one
        return RequestInfo(address, request_id, "client", None if origin is None else origin[0].decode("latin1"))


def _problem(scope: Scope) -> tuple[ErrorKind, str] | None:
    names, version = headers_of(scope), scope.get("http_version", "1.1")
    if sum([len(name) + len(value) for name, value in scope["headers"]]) > MAX_HEADER_BYTES:
        return HEADERS_TOO_LARGE, HEADERS_TOO_LARGE.message
    if len(scope["headers"]) > MAX_HEADER_LINES:
        return HEADERS_TOO_LARGE, f"The request has more than {MAX_HEADER_LINES} headers."
    if version not in _VERSIONS:
        return VALIDATION_ERROR, "Send the request with HTTP/1.1."
    hosts = names.get(b"host", [])
    if len(hosts) > 1 or (not hosts and version == "1.1"):
        return VALIDATION_ERROR, "Send exactly one Host header."
    if hosts and not _HOST.match(hosts[0]):  # the framework's routing would fail
        return VALIDATION_ERROR, "The Host header must name a host."
    for name in (b"origin", b"content-type"):
        if len(names.get(name, ())) > 1:
            return VALIDATION_ERROR, f"Send at most one {name.decode().title()} header."
    return None if _FRAMING.isdisjoint(names) else _framing_problem(names, version)


def _framing_problem(names: dict[bytes, list[bytes]], version: str) -> tuple[ErrorKind, str] | None:
    """Return the problem if a proxy and this server could disagree about where the body ends."""
    lengths = names.get(b"content-length", [])
    codings = [value.strip().lower() for value in names.get(b"transfer-encoding", ())]
    if len(lengths) > 1 or (lengths and codings):
        return VALIDATION_ERROR, "Send either one Content-Length header or Transfer-Encoding, not both."
    if codings and (codings != [b"chunked"] or version == "1.0"):
        return VALIDATION_ERROR, "Send no Transfer-Encoding other than chunked, and that only with HTTP/1.1."
    if b"upgrade" in names and (codings or lengths):
        return VALIDATION_ERROR, "A request with an Upgrade header must have no body."
    return None


def _cache_headers(path: str, headers: Iterable[tuple[bytes, bytes]]) -> list[tuple[bytes, bytes]]:
    """Return Vary for a response (RFC 9110 §12.5.5), and Cache-Control if it has none (RFC 9111 §3)."""
    policy, vary = None, b"Origin"
    is_tagged = False
    for name, value in headers:
        if name == b"cache-control":
            policy = value
        elif name == b"etag":
            is_tagged = True
    if policy is None or b"no-store" in policy or b"private" in policy:
        for header, paths in (_BY_CALLER, _BY_SESSION):
            if path.startswith(paths):
                vary += b", " + header
    if is_tagged:
        vary += b", Accept-Encoding"
    return [(b"vary", vary)] if policy is not None else [_PRIVATE, (b"vary", vary)]


def _rate_limit(tightest: Counted | None) -> list[tuple[bytes, bytes]]:
    """Return the headers of the limit with the fewest requests left (draft-ietf-httpapi-ratelimit-headers-10)."""
    if tightest is None:
        return []
    name, window = tightest.name, tightest.window
    standing = tightest.standing
    policy = f'"{name}";q={window.limit};w={window.seconds}'
    return [
        (b"ratelimit-policy", policy.encode()),
        (b"ratelimit", f'"{name}";r={standing.left};t={tightest.seconds}'.encode()),
    ]


def _log(scope: Scope, status: int, seconds: float, request: RequestInfo) -> None:
    """Log a response: the route and not the path, no query and no header, because they could contain secrets."""
    method, route = scope["method"], request.route
    fields = {"method": method, "route": route, "status": status, "seconds": round(seconds, 6)}
    access_log.info("%s %s %d", method, route, status, extra={"more": {"request_id": request.request_id, **fields}})


async def reject(send: Send, path: str, kind: ErrorKind, message: str) -> None:
    """Respond to a request that the app does not serve."""
    body = body_for(path, kind, message, {})
    headers = [(b"retry-after", b"1")] if kind is SERVICE_UNAVAILABLE else []
    headers += [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode())]
    headers.append((b"connection", b"close"))
    await send({"type": "http.response.start", "status": kind.status, "headers": headers})
    await send({"type": "http.response.body", "body": body})
