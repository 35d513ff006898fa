"""A connection to a receiver: one request at a time by HTTP/1.1, with little CPU for each.

The head and the body are read by httptools, and no more of them than `MAX_READ`.
"""

import asyncio
import contextlib
import ssl
from collections.abc import Awaitable, Callable
from typing import cast

import httptools

MAX_READ = 64 * 1024  # bytes of the head and the body
_CLOSE_SECONDS = 1.0


class Broken(Exception):
    """The response is not valid HTTP, or the connection ended before its head."""


class Connection(asyncio.Protocol):
    """A connection with at most one request under way; `status`, `headers` and `content` are those of its response.

    It ends with the first response that is not wholly read.
    """

    def __init__(self) -> None:
        self.status, self.headers = 0, dict[str, str]()
        self.content = bytearray()
        self.address = ""  # of the receiver
        self.used_at = 0.0
        self._transport: asyncio.Transport | None = None
        self._parser: httptools.HttpResponseParser | None = None
        self._size = 0
        self._has_head = self._is_whole = self._keeps = False
        self._changed = asyncio.Event()
        self._lost = asyncio.Event()

    async def head(self, request: bytes) -> None:
        """Send a request and return when the head of its response has arrived.

        Raises:
            Broken: there is none.
        """
        if self._transport is None:
            raise Broken
        self.status, self.headers = 0, {}
        self.content = bytearray()
        self._size, self._has_head = 0, False
        self._is_whole, self._keeps = False, False
        self._parser = httptools.HttpResponseParser(self)
        self._transport.write(request)
        while not self._has_head:
            if self.is_closed:
                raise Broken
            await self._change()

    async def body(self) -> None:
        """Return when the body is in `content`, or as much of it as is read."""
        while not self._is_whole and not self.is_closed:
            await self._change()

    @property
    def is_closed(self) -> bool:
        """Return whether the connection is closed, so that no more can be sent or received."""
        return self._transport is None or self._transport.is_closing()

    @property
    def can_be_kept(self) -> bool:
        """Return whether another request can follow."""
        return self._is_whole and self._keeps and not self.is_closed

    def abort(self) -> None:
        """End the connection at once; a receiver that does not take part in closing TLS is not waited for."""
        if self._transport is not None:
            self._transport.abort()

    async def close(self) -> None:
        """End the connection, and return when it has ended."""
        if self._transport is not None:
            self._transport.abort()
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(_CLOSE_SECONDS):
                    await self._lost.wait()

    async def _change(self) -> None:
        self._changed.clear()
        await self._changed.wait()

    # Called by asyncio.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)  # those of uvloop are of no class of asyncio
        self.address = str(transport.get_extra_info("peername")[0])

    def data_received(self, data: bytes) -> None:
        self._size += len(data)
        try:
            if self._parser is None or self._is_whole:  # a response without a request
                raise Broken
            self._parser.feed_data(data)
        except (httptools.HttpParserError, httptools.HttpParserUpgrade, Broken):
            self.abort()
        if self._size > MAX_READ and not self._is_whole:
            self.abort()
        self._changed.set()

    def eof_received(self) -> None:
        """See asyncio.Protocol: the connection closes."""

    def connection_lost(self, _error: Exception | None) -> None:
        self._transport = None
        self._changed.set()
        self._lost.set()

    # Called by httptools.

    def on_message_begin(self) -> None:
        """Start a response."""
        if self._is_whole:  # a second one to the same request
            raise Broken
        self._has_head, self.headers = False, {}

    def on_header(self, name: bytes, value: bytes) -> None:
        self.headers[name.lower().decode("latin-1")] = value.decode("latin-1")

    def on_headers_complete(self) -> None:
        """Read the status; an informational response (1xx) precedes the response."""
        assert self._parser is not None
        self.status = self._parser.get_status_code()
        self._has_head = self.status >= 200
        self._keeps = self._parser.should_keep_alive()

    def on_body(self, data: bytes) -> None:
        self.content += data

    def on_message_complete(self) -> None:
        self._is_whole = self._has_head


Connect = Callable[[str, int, ssl.SSLContext | None, str], Awaitable[Connection]]


async def connect(address: str, port: int, tls: ssl.SSLContext | None, host: str) -> Connection:
    """Connect to an address; with TLS the certificate must be valid for the host.

    Raises:
        OSError: nothing accepts the connection, or TLS fails (ssl.SSLError).
    """
    loop = asyncio.get_running_loop()
    name = host if tls is not None else None
    _, connection = await loop.create_connection(Connection, address, port, ssl=tls, server_hostname=name)
    return connection
