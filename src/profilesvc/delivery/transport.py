"""HTTP requests to addresses that owners choose: resolved once, checked, pinned, and limited in time and size.

The name stays in SNI, in the check of the certificate and in Host; the connection goes to the address that was checked.
Redirects are not followed, and no proxy of the environment is used, because the connection knows neither.
"""

import asyncio
import contextlib
import ssl
from functools import cached_property
from typing import NamedTuple

from profilesvc.delivery.connection import Broken, Connect, Connection, connect
from profilesvc.domain.addresses import Target, is_public
from profilesvc.services.context import Resolver
from profilesvc.services.notify.resolving import Lookups

SECONDS = 10.0  # until the head of the response
BODY_SECONDS = 5.0
_CONNECT_SECONDS = 4.0  # to one of several addresses
_KEPT_BYTES = 1024
_IDLE_SECONDS = 30.0
_TLS = "TLS failed: the certificate must be valid for the host name"
_IDLE = 200  # connections that are kept for the next delivery
_Key = tuple[str, str, int]


class Unreachable(Exception):
    """There was no response. The message is for the owner."""


class Response(NamedTuple):
    """The status, Retry-After and the start of the body; no body if the address is private.

    `drips` is True if the body did not end in time, although less than `MAX_READ` had arrived.
    """

    status: int
    retry_after: str | None
    text: str | None
    drips: bool = False


class Transport:
    """Sends requests, and keeps connections for the next ones."""

    def __init__(
        self,
        *,
        allow_private: bool = False,
        resolver: Resolver | None = None,
        ssl_context: ssl.SSLContext | None = None,
        connect: Connect = connect,
    ) -> None:
        self._resolve, self._allow_private = resolver or Lookups(), allow_private
        self._connect = connect
        self._ssl_context = ssl_context
        self._idle: dict[Connection, _Key] = {}  # the one that was used last is the last
        self._idle_of: dict[_Key, list[Connection]] = {}

    @cached_property
    def _tls(self) -> ssl.SSLContext:
        return self._ssl_context or ssl.create_default_context()

    async def post(self, owner_id: int, target: Target, headers: dict[str, str], body: bytes) -> Response:
        """Send a request, and return the response with as much of its body as arrives in time.

        Raises:
            Unreachable: There was no response.
        """
        connection = self._reusable(target)
        try:
            async with asyncio.timeout(SECONDS):
                connection = connection or await self._opened(owner_id, target)
                await connection.head(_request(target, headers, body))
        except TimeoutError:
            raise Unreachable("no response within 10 seconds") from None
        except Broken:
            raise Unreachable("the response was not valid HTTP, or the connection broke") from None
        else:
            drips, text = await _drips(connection), None
            if is_public(connection.address):
                text = connection.content[:_KEPT_BYTES].decode("utf-8", "replace").replace("\x00", "\ufffd")
            return Response(connection.status, connection.headers.get("retry-after"), text, drips)
        finally:
            if connection is not None:
                await self._keep_or_close(target, connection)

    def _reusable(self, target: Target) -> Connection | None:
        """Return a connection that was used a short time ago."""
        connections = self._idle_of.get(_key(target), [])
        oldest = asyncio.get_running_loop().time() - _IDLE_SECONDS
        while connections:
            connection = connections[-1]
            self._remove(connection, _key(target))
            if connection.used_at >= oldest and not connection.is_closed:
                return connection
            connection.abort()
        return None

    async def _opened(self, owner_id: int, target: Target) -> Connection:
        """Resolve the name, check all its addresses, and connect to the first that accepts."""
        addresses = await self._addresses(owner_id, target)
        tls = self._tls if target.scheme == "https" else None
        for address in addresses[:-1]:
            with contextlib.suppress(OSError):
                async with asyncio.timeout(_CONNECT_SECONDS):
                    return await self._connect(address, target.port, tls, target.host)
        try:
            return await self._connect(addresses[-1], target.port, tls, target.host)
        except ssl.SSLError:
            raise Unreachable(_TLS) from None
        except TimeoutError:
            raise
        except OSError:
            raise Unreachable("the connection was refused, or there is no route") from None

    async def _addresses(self, owner_id: int, target: Target) -> list[str]:
        try:
            addresses = await self._resolve(owner_id, target.host)
        except OSError:
            addresses = []
        if not addresses:
            raise Unreachable("the host name has no address")
        if not self._allow_private and not all(map(is_public, addresses)):
            raise Unreachable("the host name leads to a private address")
        return addresses

    async def _keep_or_close(self, target: Target, connection: Connection) -> None:
        if not connection.can_be_kept:
            await connection.close()
            return
        if len(self._idle) >= _IDLE:
            oldest, key = next(iter(self._idle.items()))
            self._remove(oldest, key)
            oldest.abort()
        connection.used_at = asyncio.get_running_loop().time()
        self._idle[connection] = _key(target)
        self._idle_of.setdefault(_key(target), []).append(connection)

    def _remove(self, connection: Connection, key: _Key) -> None:
        del self._idle[connection]
        self._idle_of[key].remove(connection)
        if not self._idle_of[key]:
            del self._idle_of[key]

    async def aclose(self) -> None:
        """Close the connections that are kept."""
        connections = list(self._idle)
        self._idle.clear()
        self._idle_of.clear()
        for connection in connections:
            await connection.close()


def _key(target: Target) -> _Key:
    return target.scheme, target.host, target.port


def _request(target: Target, headers: dict[str, str], body: bytes) -> bytes:
    fields = {"Host": target.netloc, "Content-Length": str(len(body)), "Accept": "*/*", **headers}
    lines = [f"POST {target.path} HTTP/1.1", *(f"{name}: {value}" for name, value in fields.items())]
    if any("\r" in line or "\n" in line for line in lines):
        raise ValueError("a header must be one line")
    return "\r\n".join([*lines, "", ""]).encode("ascii") + body


async def _drips(connection: Connection) -> bool:
    """Wait for the body, and return whether it did not end in time."""
    try:
        async with asyncio.timeout(BODY_SECONDS):
            await connection.body()
    except TimeoutError:
        return True
    return False
