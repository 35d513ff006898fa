"""Receivers of webhooks that misbehave in one way each, on 127.0.0.1."""

import asyncio
import contextlib
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, field

Respond = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


@dataclass
class Received:
    """A request as it arrived."""

    head: str
    body: bytes
    headers: dict[str, str] = field(default_factory=dict)


@dataclass
class Receiver:
    """A running receiver and what it got."""

    port: int
    got: list[Received]

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/hook?x=1"


async def _request(reader: asyncio.StreamReader) -> Received:
    head = (await reader.readuntil(b"\r\n\r\n")).decode()
    lines = [line.split(": ", 1) for line in head.split("\r\n")[1:] if line]
    headers = {name.lower(): value for name, value in lines}
    return Received(head, await reader.readexactly(int(headers["content-length"])), headers)


def responding(status: int, *headers: str, body: bytes = b"thanks") -> Respond:
    """Respond with a status, and keep the connection."""

    async def respond(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = [f"HTTP/1.1 {status} X", f"Content-Length: {len(body)}", *headers]
        writer.write("\r\n".join(head).encode() + b"\r\n\r\n" + body)
        await writer.drain()

    return respond


async def hang(reader: asyncio.StreamReader, _writer: asyncio.StreamWriter) -> None:
    """Accept the request and never respond."""
    await reader.read()


async def drip(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Send the head of a response, one byte every 50 ms."""
    for byte in b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok":
        writer.write(bytes([byte]))
        await writer.drain()
        await asyncio.sleep(0.05)


def dripping(first: bytes, then: bytes) -> Respond:
    """Send the first bytes at once, and then others every 20 ms until the connection ends."""

    async def respond(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(first)
        while not writer.is_closing():
            writer.write(then)
            await writer.drain()
            await asyncio.sleep(0.02)

    return respond


async def garbage(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Respond in no protocol."""
    writer.write(b"SSH-2.0-OpenSSH\r\n\r\n")
    await writer.drain()
    writer.close()


async def close(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Close the connection in place of a response."""
    writer.close()


@contextlib.asynccontextmanager
async def receiving(respond: Respond, tls: ssl.SSLContext | None = None) -> AsyncIterator[Receiver]:
    """Run a receiver for the block."""
    got: list[Received] = []
    writers: set[asyncio.StreamWriter] = set()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writers.add(writer)
        with contextlib.suppress(OSError, EOFError):
            while not writer.is_closing():
                got.append(await _request(reader))
                await respond(reader, writer)
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0, ssl=tls)
    try:
        yield Receiver(server.sockets[0].getsockname()[1], got)
    finally:
        server.close()
        for writer in writers:
            writer.close()
        await asyncio.sleep(0)
