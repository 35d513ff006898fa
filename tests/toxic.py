"""A TCP proxy that makes a link go wrong, as toxiproxy does: latency, down, slicer, reset_peer, limit_data (T7)."""

import asyncio
import contextlib
import socket
import struct
from typing import Literal, Self

Toxic = Literal["", "latency", "down", "slicer", "reset_peer", "limit_data"]
_TOO_LATE_SECONDS, _SLICE_BYTES, _LIMIT_BYTES, _CHUNK_BYTES = 60, 7, 100, 65_536
_RESET_ON_CLOSE = struct.pack("ii", 1, 0)


class ToxicLink:
    """Listens on a free port and passes everything on to another one; what comes back, as its toxic lets it."""

    def __init__(self, upstream: int) -> None:
        self._upstream, self._port = upstream, 0
        self._toxic: Toxic = ""
        self._running: set[asyncio.Task[None]] = set()

    @property
    def origin(self) -> str:
        return f"http://127.0.0.1:{self._port}"

    async def __aenter__(self) -> Self:
        await self._listen()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._close()

    async def go_wrong(self, toxic: Toxic) -> None:
        """From now on in that way; "" heals. Open connections end."""
        await self._close()
        self._toxic = toxic
        if toxic != "down":
            await self._listen()

    async def _listen(self) -> None:
        self._server = await asyncio.start_server(self._connected, "127.0.0.1", self._port)
        self._port = self._server.sockets[0].getsockname()[1]

    async def _close(self) -> None:
        self._server.close()
        for task in self._running:
            task.cancel()
        await asyncio.gather(*self._running, return_exceptions=True)

    def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.create_task(self._serve(reader, writer))
        self._running.add(task)
        task.add_done_callback(self._running.discard)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        theirs, ours = await asyncio.open_connection("127.0.0.1", self._upstream)
        try:
            async with asyncio.TaskGroup() as both:
                questions = both.create_task(_pass_on(reader, ours))
                await self._answers(theirs, writer)
                questions.cancel()
        finally:
            ours.transport.abort()
            writer.transport.abort()

    async def _answers(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError):
            while data := await reader.read(_CHUNK_BYTES):
                if self._toxic == "latency":
                    await asyncio.sleep(_TOO_LATE_SECONDS)
                if self._toxic == "reset_peer":
                    peer = writer.get_extra_info("socket")
                    peer.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET_ON_CLOSE)
                    return
                size = _SLICE_BYTES if self._toxic == "slicer" else _CHUNK_BYTES
                for start in range(0, len(data), size):
                    writer.write(data[start : start + size][: _LIMIT_BYTES if self._toxic == "limit_data" else size])
                    await writer.drain()
                    await asyncio.sleep(0)
                if self._toxic == "limit_data":
                    return


async def _pass_on(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with contextlib.suppress(OSError):
        while data := await reader.read(_CHUNK_BYTES):
            writer.write(data)
            await writer.drain()
