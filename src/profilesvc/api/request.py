"""The incoming request: its headers, its body, and the first steps of every endpoint."""

import asyncio
import re
from collections.abc import AsyncIterator, Awaitable, Callable, Generator
from typing import Any, NamedTuple, cast

from quart import Request, after_this_request, current_app, request

from profilesvc.api import cors
from profilesvc.contract.errors import PAYLOAD_TOO_LARGE, REQUEST_TIMEOUT, UNSUPPORTED_MEDIA_TYPE, ErrorKind
from profilesvc.contract.oauth2 import COMPRESSED
from profilesvc.domain.errors import ServiceError
from profilesvc.domain.request import current_request
from profilesvc.server.scope import ARRIVED, Message, Receive, Scope
from profilesvc.services import access, origins
from profilesvc.services.context import Caller, Services

KB = 1024
GRACE_SECONDS = 5
MAX_SECONDS = 10
MIN_BYTES_PER_SECOND = KB
UPLOAD_SECONDS = 400
UPLOAD_BYTES_PER_SECOND = 16 * KB  # a phone in a bad network has three times as much
SLOT = "profilesvc.slot"  # the name in the ASGI scope under which the guard stores the slot of a request
_HEADERS = "profilesvc.headers"
_BEARER = re.compile(r"bearer ([^ ]+)\Z", re.IGNORECASE)
_CODINGS = frozenset({"", "identity"})


class HttpError(ServiceError):
    """An error with HTTP headers of its own."""

    def __init__(self, kind: ErrorKind, message: str | None = None, **headers: str) -> None:
        super().__init__(kind, message)
        self.headers = {name.replace("_", "-"): value for name, value in headers.items()}


class BodyRule(NamedTuple):
    """The rule for a body: at most `limit` bytes, and a media type that `require_type` accepts."""

    limit: int
    require_type: Callable[[str | None], None]


class Upload(NamedTuple):
    """The rule for a form with a file, in bytes: how many may arrive, and how many of a file are kept.

    If a form with a larger file were rejected before it is read, the user would lose what was typed in its fields.
    """

    largest: int
    file: int


Admit = Callable[[bool], Awaitable[Caller]]  # its argument: whether to count the request


def current_services() -> Services:
    return cast(Services, current_app.extensions["profilesvc"])


def quart_request() -> Request:
    """Return the request itself, because each access through Quart's proxy is slow."""
    return cast(Any, request)._get_current_object()  # type: ignore[no-any-return]


def headers_of(scope: Scope) -> dict[bytes, list[bytes]]:
    """Return the values of all headers by lower-case name, collected once for a request."""
    headers: dict[bytes, list[bytes]] | None = scope.get(_HEADERS)
    if headers is None:
        headers = scope[_HEADERS] = {}
        for name, value in scope["headers"]:
            headers.setdefault(name, []).append(value)
    return headers


def header_values(incoming: Request, name: bytes) -> list[str]:
    """Return the values of a header by its lower-case name."""
    return [value.decode("latin1") for value in headers_of(cast(Scope, incoming.scope)).get(name, ())]


def bearer_token(headers: list[str]) -> str:
    """Return the token of exactly one `Authorization: Bearer …` header.

    Raises:
        ServiceError: AUTH_INVALID_TOKEN.
    """
    if not headers or not any(headers):
        raise access.invalid_token("missing")
    match = _BEARER.match(headers[0]) if len(headers) == 1 else None
    if match is None:
        raise access.invalid_token("malformed")
    return match.group(1)


def begin(incoming: Request) -> None:
    """Store the route and the rights of the origin, before the endpoint runs."""
    info = current_request()
    if (rule := incoming.url_rule) is not None:
        info.route = rule.rule
    if info.origin_header is not None:
        origins.read_header(current_services().settings, info)
        after_this_request(cors.allow)


async def receive(
    services: Services, incoming: Request, rule: BodyRule | None, admit: Admit | None
) -> tuple[Caller | None, bytes]:
    """Count the request, check the size and type of its body, admit the caller, read the body.

    Without `admit` the endpoint is public, and the request is counted by its address before any work.

    Raises:
        ServiceError: RATE_LIMITED, PAYLOAD_TOO_LARGE, UNSUPPORTED_MEDIA_TYPE, what `admit` raises, REQUEST_TIMEOUT.
    """
    if admit is None:
        await services.limiter.by_address()
    body = cast(AwaitedBody, incoming.body)
    if rule is not None:
        body.require_size(rule.limit)
        if body.has_content():
            _require_type(incoming, rule)
    caller = None if admit is None else await admit(True)
    if rule is None:
        return caller, b""
    has_content = body.has_content()
    raw = await body.read(rule.limit)
    if raw and has_content is None:  # only reading shows that there is a body, which needs a media type
        _require_type(incoming, rule)
    if admit is not None and body.was_late:  # the token may have been revoked meanwhile
        caller = await admit(False)
    return caller, raw


def _require_type(incoming: Request, rule: BodyRule) -> None:
    codings = [
        coding.strip().lower() for value in header_values(incoming, b"content-encoding") for coding in value.split(",")
    ]
    if not _CODINGS.issuperset(codings):
        raise HttpError(UNSUPPORTED_MEDIA_TYPE, COMPRESSED.message, Accept_Encoding="identity")
    rule.require_type(incoming.headers.get("Content-Type"))


def _too_large(limit: int) -> ServiceError:
    return ServiceError(PAYLOAD_TOO_LARGE, f"The body must not exceed {limit // KB} KB.")


class AwaitedBody:
    """A body that the server keeps until it is awaited; Quart's `Body` is collected in a task at once.

    It must arrive within 5 s, plus 1 s for each KB that has arrived, and within 10 s in any case; a form with a file at
    another rate. `was_late` is set if the endpoint had to wait for it.
    """

    def __init__(self, announced: int | None, limit: int, scope: Scope, receive: Receive) -> None:
        self._announced, self._limit = announced, limit
        self._scope, self._receive = scope, receive
        self._whole: bytes | None = None
        self.was_late = False

    def has_content(self) -> bool | None:
        """Return whether the body is not empty, or None if only reading it can show that."""
        if self._announced is not None:
            return self._announced > 0
        size, has_more = self._arrived()
        return None if has_more and not size else size > 0

    def require_size(self, limit: int) -> None:
        """Reject a body if its announced size or the part that has arrived is too large.

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
            if self._begin(limit):
                self._whole = await self._collect(limit)
            else:
                self._whole = (await self._receive()).get("body", b"")
        if len(self._whole) > limit:
            raise _too_large(limit)
        return self._whole

    async def feed(self, upload: Upload, fields: int, take: Callable[[bytes], None]) -> None:
        """Pass a form with a file to `take` in pieces, as they arrive; `fields` is the size of its other fields.

        Raises:
            ServiceError: PAYLOAD_TOO_LARGE, REQUEST_TIMEOUT, SERVICE_UNAVAILABLE; what `take` raises.
        """
        self._begin(upload.largest)
        memory = upload.largest if self._announced is None else self._announced
        with self._scope[SLOT].waiting_for(min(memory, upload.file + fields)):
            async for piece in self._arriving(upload.largest, UPLOAD_BYTES_PER_SECOND, UPLOAD_SECONDS):
                take(piece)

    def _begin(self, limit: int) -> bool:
        """Note that the endpoint reads the body. Return whether a part of it has yet to arrive."""
        self.require_size(limit)
        self._scope[SLOT].reads = True
        has_more = self._arrived()[1]
        self.was_late = has_more and ARRIVED in self._scope
        return has_more

    def __await__(self) -> Generator[Any, None, bytes]:
        """Return the whole body, because Quart awaits it to read forms."""
        return self.read(self._limit).__await__()

    async def _pieces(self) -> AsyncIterator[bytes]:
        yield await self.read(self._limit)

    def __aiter__(self) -> AsyncIterator[bytes]:
        """Yield the whole body as its only piece."""
        return self._pieces()

    def _arrived(self) -> tuple[int, bool]:
        """Return how many bytes have arrived, and whether more will arrive."""
        arrived: tuple[int, bool] = self._scope.get(ARRIVED, _unknown)()
        return arrived

    async def _collect(self, limit: int) -> bytes:
        body = bytearray()
        with self._scope[SLOT].waiting_for(limit if self._announced is None else self._announced):
            async for piece in self._arriving(limit, MIN_BYTES_PER_SECOND, MAX_SECONDS):
                body += piece
        return bytes(body)

    async def _arriving(self, limit: int, rate: int, most: int) -> AsyncIterator[bytes]:
        """Yield the body in pieces, which must arrive at a `rate` in bytes per second, within `most` seconds."""
        size, started_at = 0, asyncio.get_running_loop().time()
        has_more = True
        while has_more:
            message = await self._next(started_at + min(GRACE_SECONDS + size / rate, most))
            piece = message.get("body", b"")
            size += len(piece)
            has_more = message.get("more_body", False)
            if size > limit:
                raise _too_large(limit)
            yield piece

    async def _next(self, deadline: float) -> Message:
        try:
            async with asyncio.timeout_at(deadline):
                message = await self._receive()
        except TimeoutError:
            raise HttpError(REQUEST_TIMEOUT, Connection="close") from None
        if message["type"] != "http.request":  # the client has left
            raise ServiceError(REQUEST_TIMEOUT)
        return message


def _unknown() -> tuple[int, bool]:
    return 0, True
