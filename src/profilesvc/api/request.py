"""The incoming request: its headers, its body, and the steps that every endpoint begins with (D-03)."""

import asyncio
import re
from collections.abc import AsyncIterator, Awaitable, Callable, Generator, MutableMapping
from typing import Any, NamedTuple, cast

from quart import Request, after_this_request, current_app, request
from quart.wrappers.request import Body

from profilesvc.api import cors
from profilesvc.contract.errors import PAYLOAD_TOO_LARGE, REQUEST_TIMEOUT, UNSUPPORTED_MEDIA_TYPE, ErrorKind
from profilesvc.contract.oauth2 import COMPRESSED
from profilesvc.domain.errors import ServiceError
from profilesvc.domain.request import current
from profilesvc.server.scope import ARRIVED
from profilesvc.services import access, origins
from profilesvc.services.context import Caller, Services

KB = 1024
GRACE_SECONDS = 5
MOST_SECONDS = 10
LEAST_BYTES_PER_SECOND = KB
PLACE = "profilesvc.place"  # where the guard leaves what a request holds in the ASGI scope
_HEADERS = "profilesvc.headers"
_BEARER = re.compile(r"bearer ([^ ]+)\Z", re.IGNORECASE)
_CODINGS = frozenset({"", "identity"})


class HttpRefusal(ServiceError):
    """A refusal by HTTP itself, with headers of its own."""

    def __init__(self, kind: ErrorKind, message: str | None = None, **headers: str) -> None:
        super().__init__(kind, message)
        self.headers = {name.replace("_", "-"): value for name, value in headers.items()}


class BodyRule(NamedTuple):
    """What an endpoint accepts as a body: at most `limit` bytes, and the media types that `require_type` passes."""

    limit: int
    require_type: Callable[[str | None], None]


Admit = Callable[[bool], Awaitable[Caller]]  # with whether the request is to be counted


def services() -> Services:
    """Return the services of the running app."""
    return cast(Services, current_app.extensions["profilesvc"])


def this_request() -> Request:
    """Return the request itself: each access through Quart's proxy costs more than what is read."""
    return cast(Any, request)._get_current_object()  # type: ignore[no-any-return]


def headers_of(scope: MutableMapping[str, Any]) -> dict[bytes, list[bytes]]:
    """Return the values of all headers by lower-case name, collected once for a request."""
    headers: dict[bytes, list[bytes]] | None = scope.get(_HEADERS)
    if headers is None:
        headers = scope[_HEADERS] = {}
        for name, value in scope["headers"]:
            headers.setdefault(name, []).append(value)
    return headers


def header_values(asked: Request, name: bytes) -> list[str]:
    """Return the values of a header by its lower-case name."""
    return [value.decode("latin1") for value in headers_of(cast(Any, asked.scope)).get(name, ())]


def bearer_token(headers: list[str]) -> str:
    """Return the token of exactly one `Authorization: Bearer …` header.

    Raises:
        ServiceError: AUTH_INVALID_TOKEN.
    """
    if not headers or not any(headers):
        raise access.refused("missing")
    match = _BEARER.match(headers[0]) if len(headers) == 1 else None
    if match is None:
        raise access.refused("malformed")
    return match.group(1)


async def begin() -> None:
    """Note what the app knows of a request before its endpoint does: the route, and what its origin means."""
    here = current()
    if (rule := this_request().url_rule) is not None:
        here.route = rule.rule
    if here.origin_header is not None:
        origins.note(services().settings, here)
        after_this_request(cors.allow)


async def receive(
    running: Services, asked: Request, rule: BodyRule | None, admit: Admit | None
) -> tuple[Caller | None, bytes]:
    """Count the request, judge the head of its body, admit the caller, read the body.

    Without `admit` the endpoint is public, and the request is counted by its address before any work.

    Raises:
        ServiceError: RATE_LIMITED, PAYLOAD_TOO_LARGE, UNSUPPORTED_MEDIA_TYPE, what `admit` raises, REQUEST_TIMEOUT.
    """
    if admit is None:
        await running.limiter.by_address()
    body = cast(AwaitedBody, asked.body)
    if rule is not None:
        body.require_size(rule.limit)
        if body.has_content():
            _require_type(asked, rule)
    caller = None if admit is None else await admit(True)
    if rule is None:
        return caller, b""
    known = body.has_content()
    raw = await body.read(rule.limit)
    if raw and known is None:  # an empty body has no media type, and only now is it known not to be empty
        _require_type(asked, rule)
    if admit is not None and body.was_late:  # the token may have been revoked meanwhile (D-14)
        caller = await admit(False)
    return caller, raw


def _require_type(asked: Request, rule: BodyRule) -> None:
    codings = [
        coding.strip().lower() for value in header_values(asked, b"content-encoding") for coding in value.split(",")
    ]
    if not _CODINGS.issuperset(codings):
        raise HttpRefusal(UNSUPPORTED_MEDIA_TYPE, COMPRESSED.message, Accept_Encoding="identity")
    rule.require_type(asked.headers.get("Content-Type"))


def _too_large(limit: int) -> ServiceError:
    return ServiceError(PAYLOAD_TOO_LARGE, f"The body must not exceed {limit // KB} KB.")


class AwaitedBody(Body):
    """A body that stays with the server until it is awaited; Quart's own is collected by a task at once.

    It has 5 s, one more for each KB that has arrived, and 10 s in all. `was_late`: whether it had to be waited for.
    """

    def __init__(self, announced: int | None, limit: int, scope: Any, receive: Callable[[], Any]) -> None:
        super().__init__(None, None)
        self._announced, self._limit, self._scope, self._receive = announced, limit, scope, receive
        self._whole: bytes | None = None
        self.was_late = False

    def has_content(self) -> bool | None:
        """Return whether it is not empty; None if that cannot be known before it is read."""
        if self._announced is not None:
            return self._announced > 0
        there, more = self._arrived()
        return None if more and not there else there > 0

    def require_size(self, limit: int) -> None:
        """Refuse a body by what is known of its size.

        Raises:
            ServiceError: PAYLOAD_TOO_LARGE.
        """
        if (self._announced or 0) > limit or self._arrived()[0] > limit:
            raise _too_large(limit)

    async def read(self, limit: int) -> bytes:
        """Return the whole body.

        Raises:
            ServiceError: PAYLOAD_TOO_LARGE, REQUEST_TIMEOUT, SERVICE_UNAVAILABLE.
        """
        if self._whole is None:
            self.require_size(limit)
            self._scope[PLACE].reads = True
            if self._arrived()[1]:
                self.was_late = ARRIVED in self._scope
                self._whole = await self._collect(limit)
            else:
                self._whole = (await self._receive()).get("body", b"")
        if len(self._whole) > limit:
            raise _too_large(limit)
        return self._whole

    def __await__(self) -> Generator[Any, None, bytes]:
        """Return the whole body, as Quart reads forms."""
        return self.read(self._limit).__await__()

    async def _pieces(self) -> AsyncIterator[bytes]:
        yield await self.read(self._limit)

    def __aiter__(self) -> AsyncIterator[bytes]:  # type: ignore[override]  # Quart uses it in `async for` only
        """Yield the whole body as its only piece."""
        return self._pieces()

    def _arrived(self) -> tuple[int, bool]:
        """Return how many bytes have arrived, and whether more will come."""
        arrived: tuple[int, bool] = self._scope.get(ARRIVED, _unknown)()
        return arrived

    async def _collect(self, limit: int) -> bytes:
        body, begun, more = bytearray(), asyncio.get_running_loop().time(), True
        with self._scope[PLACE].waiting_for(limit if self._announced is None else self._announced):
            while more:
                seconds = min(GRACE_SECONDS + len(body) / LEAST_BYTES_PER_SECOND, MOST_SECONDS)
                message = await self._next(begun + seconds)
                body += message.get("body", b"")
                more = message.get("more_body", False)
                if len(body) > limit:
                    raise _too_large(limit)
        return bytes(body)

    async def _next(self, deadline: float) -> Any:
        try:
            async with asyncio.timeout_at(deadline):
                message = await self._receive()
        except TimeoutError:
            raise HttpRefusal(REQUEST_TIMEOUT, Connection="close") from None
        if message["type"] != "http.request":  # the client has left
            raise ServiceError(REQUEST_TIMEOUT)
        return message


def _unknown() -> tuple[int, bool]:
    return 0, True
