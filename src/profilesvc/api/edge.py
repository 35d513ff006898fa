"""What is settled before the framework sees a request, and what every answer carries: a plain ASGI wrapper.

Servers let through what an API must not act on: oversized headers, two Host headers, a length beside a transfer
coding (D-01, A081, A092, A093).
"""

import re
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

from profilesvc.api.failures import failure_body
from profilesvc.contract.errors import HEADERS_TOO_LARGE, VALIDATION_ERROR, ErrorKind
from profilesvc.domain.world import Entropy

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Any, Any, Any], Awaitable[None]]
MAX_HEADER_BYTES = 16 * 1024
_REQUEST_ID = re.compile(rb"[A-Za-z0-9._-]{8,64}\Z")


class Edge:
    """Wraps an ASGI app: refuses ambiguous requests, names each answer."""

    def __init__(self, app: App, entropy: Entropy) -> None:
        self._app = app
        self._entropy = entropy

    async def __call__(self, scope: Any, receive: Receive, send: Send) -> None:
        """One ASGI call; anything but HTTP passes untouched."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        request_id = self._request_id(scope["headers"])

        async def named(message: Message) -> None:
            if message["type"] == "http.response.start":
                extra = [(b"x-request-id", request_id), (b"vary", b"Origin")]
                message = {**message, "headers": [*message.get("headers", []), *extra]}
            await send(message)

        problem = _problem(scope["headers"], scope.get("http_version", "1.1"))
        if problem is not None:
            await _refuse(named, *problem)
        else:
            await self._app(scope, receive, named)

    def _request_id(self, headers: list[tuple[bytes, bytes]]) -> bytes:
        """The caller's id when it is a plain one, so that a proxy's trace goes on; otherwise a new one."""
        given = next((value for name, value in headers if name == b"x-request-id"), b"")
        return given if _REQUEST_ID.match(given) else self._entropy.token_bytes(8).hex().encode()


def _problem(headers: list[tuple[bytes, bytes]], version: str) -> tuple[ErrorKind, str] | None:
    if sum(len(name) + len(value) for name, value in headers) > MAX_HEADER_BYTES:
        return HEADERS_TOO_LARGE, HEADERS_TOO_LARGE.message
    names = [name for name, _ in headers]
    hosts = names.count(b"host")
    if hosts > 1 or (hosts == 0 and version == "1.1"):
        return VALIDATION_ERROR, "Send exactly one Host header."
    if names.count(b"content-length") > 1 or (b"content-length" in names and b"transfer-encoding" in names):
        return VALIDATION_ERROR, "Send one Content-Length, and not together with Transfer-Encoding."
    return None


async def _refuse(send: Send, kind: ErrorKind, message: str) -> None:
    body = failure_body(kind, message, {})
    headers = [
        (b"content-type", b"application/json"),
        (b"content-length", str(len(body)).encode()),
        (b"connection", b"close"),
    ]
    await send({"type": "http.response.start", "status": kind.status, "headers": headers})
    await send({"type": "http.response.body", "body": body})
