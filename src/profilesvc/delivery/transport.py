"""HTTP requests to addresses that owners choose: resolved once, checked, pinned, and limited in time and size.

The name stays in SNI, in the check of the certificate and in Host; the connection goes to the address that was checked.
Redirects are not followed, and no proxy of the environment is used, because httpcore has neither.
"""

import asyncio
import contextlib
import ssl
from collections.abc import AsyncIterable, Iterable, Iterator
from functools import cached_property
from typing import NamedTuple, cast

import httpcore

from profilesvc.domain.addresses import Target, is_public
from profilesvc.services.resolving import Resolver, resolve

SECONDS = 10.0
_CONNECT_SECONDS = 4.0  # to one of several addresses
_READ_BYTES = 64 * 1024
_KEPT_BYTES = 1024
_IDLE_SECONDS = 30.0
_CLOSE_SECONDS = 1.0
_TLS = "TLS failed: the certificate must be valid for the host name"
_IDLE = 200  # connections that are kept for the next delivery


class Unreachable(Exception):
    """There was no response. The message is for the owner."""


class Response(NamedTuple):
    """The status, Retry-After and the start of the body; no body if the address is private."""

    status: int
    retry_after: str | None
    text: str | None


class _Pinned(httpcore.AsyncNetworkBackend):
    """Connects to one of the addresses that a name has now, if all of them are allowed."""

    def __init__(self, resolver: Resolver, *, allow_private: bool) -> None:
        self._resolve, self._allow_private = resolver, allow_private
        self._network = httpcore.AnyIOBackend()

    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,  # noqa: ASYNC109  the interface of httpcore
        local_address: str | None = None,
        socket_options: Iterable[httpcore.SOCKET_OPTION] | None = None,
    ) -> httpcore.AsyncNetworkStream:
        """Resolve, check all addresses, and connect to the first that accepts."""
        try:
            addresses = await self._resolve(host, port)
        except OSError:
            addresses = []
        if not addresses:
            raise Unreachable("the host name has no address")
        if not self._allow_private and not all(map(is_public, addresses)):
            raise Unreachable("the host name leads to a private address")
        seconds = _CONNECT_SECONDS if len(addresses) > 1 else timeout
        for address in addresses[:-1]:
            try:
                return await self._network.connect_tcp(address, port, seconds)
            except (httpcore.ConnectError, httpcore.ConnectTimeout):
                continue
        return await self._network.connect_tcp(addresses[-1], port, seconds)


class Transport:
    """Sends requests, and keeps connections for the next ones."""

    def __init__(
        self, *, allow_private: bool = False, resolver: Resolver = resolve, ssl_context: ssl.SSLContext | None = None
    ) -> None:
        self._network = _Pinned(resolver, allow_private=allow_private)
        self._ssl_context = ssl_context
        self._idle: dict[tuple[str, str, int], list[httpcore.AsyncHTTPConnection]] = {}

    @cached_property
    def _tls(self) -> ssl.SSLContext:
        return self._ssl_context or ssl.create_default_context()

    async def post(self, target: Target, headers: dict[str, str], body: bytes) -> Response:
        """Send a request and return the response if its head arrives in time.

        Raises:
            Unreachable: There was no response.
        """
        connection = await self._connection(target)
        deadline, is_whole = asyncio.get_running_loop().time() + SECONDS, False
        try:
            with _explained():
                async with asyncio.timeout_at(deadline):
                    response = await connection.handle_async_request(_request(target, headers, body))
            content, is_whole = await _content(response, deadline)
            return self._response(response, content)
        finally:
            if is_whole and connection.is_idle():
                await self._keep(target, connection)
            else:
                await _close(connection)

    @staticmethod
    def _response(response: httpcore.Response, content: bytes) -> Response:
        by_name = {name.lower(): value for name, value in response.headers}
        retry_after = by_name.get(b"retry-after")
        stream = response.extensions.get("network_stream")
        address = None if stream is None else stream.get_extra_info("server_addr")
        text = None
        if address is not None and is_public(str(address[0])):
            text = content[:_KEPT_BYTES].decode("utf-8", "replace").replace("\x00", "\ufffd")
        return Response(response.status, None if retry_after is None else retry_after.decode("latin-1"), text)

    async def _connection(self, target: Target) -> httpcore.AsyncHTTPConnection:
        kept = self._idle.get(_origin_key(target), [])
        while kept:
            connection = kept.pop()
            if connection.is_idle() and not connection.has_expired():
                return connection
            await _close(connection)
        origin = httpcore.Origin(target.scheme.encode(), target.host.encode(), target.port)
        return httpcore.AsyncHTTPConnection(
            origin,
            ssl_context=self._tls if target.scheme == "https" else None,
            keepalive_expiry=_IDLE_SECONDS,
            network_backend=self._network,
        )

    async def _keep(self, target: Target, connection: httpcore.AsyncHTTPConnection) -> None:
        if sum(map(len, self._idle.values())) >= _IDLE:
            await self.aclose()
        self._idle.setdefault(_origin_key(target), []).append(connection)

    async def aclose(self) -> None:
        """Close the connections that are kept."""
        kept = [connection for connections in self._idle.values() for connection in connections]
        self._idle.clear()
        for connection in kept:
            await _close(connection)


def _origin_key(target: Target) -> tuple[str, str, int]:
    return target.scheme, target.host, target.port


def _request(target: Target, headers: dict[str, str], body: bytes) -> httpcore.Request:
    sent: list[tuple[bytes | str, bytes | str]] = [
        ("Host", target.netloc),
        ("Content-Length", str(len(body))),
        ("Accept", "*/*"),
        *headers.items(),
    ]
    url = httpcore.URL(
        scheme=target.scheme.encode(), host=target.host.encode(), port=target.port, target=target.path.encode()
    )
    return httpcore.Request("POST", url, headers=sent, content=body)


async def _content(response: httpcore.Response, deadline: float) -> tuple[bytes, bool]:
    """Return the body as far as it is read, and whether that is all of it."""
    content = b""
    try:
        async with asyncio.timeout_at(deadline):
            async for chunk in cast(AsyncIterable[bytes], response.stream):
                content += chunk
                if len(content) > _READ_BYTES:
                    return content, False
            await response.aclose()
    except (TimeoutError, httpcore.ProtocolError, httpcore.NetworkError):  # the status has arrived and counts
        return content, False
    return content, True


async def _close(connection: httpcore.AsyncHTTPConnection) -> None:
    """Close a connection; a receiver that does not take part in closing TLS is not waited for."""
    with contextlib.suppress(Exception):
        async with asyncio.timeout(_CLOSE_SECONDS):
            await connection.aclose()


@contextlib.contextmanager
def _explained() -> Iterator[None]:
    """Raise Unreachable for what the network and the receiver do."""
    try:
        yield
    except (TimeoutError, httpcore.TimeoutException):
        raise Unreachable("no response within 10 seconds") from None
    except httpcore.ConnectError as error:
        is_tls = isinstance(error.__cause__ or error.__context__, ssl.SSLError) or "SSL" in str(error)
        raise Unreachable(_TLS if is_tls else "the connection was refused, or there is no route") from None
    except (httpcore.ProtocolError, httpcore.NetworkError):
        raise Unreachable("the response was not valid HTTP, or the connection broke") from None
    except ssl.SSLError:
        raise Unreachable(_TLS) from None
