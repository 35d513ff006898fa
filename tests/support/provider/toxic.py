"""A TCP proxy that makes a link go wrong in toxiproxy's eight ways."""

import asyncio
import contextlib
import socket
import struct
from pathlib import Path
from typing import Literal, Self

Toxic = Literal[
    "", "latency", "down", "bandwidth", "slow_close", "timeout", "reset_peer", "slicer", "limit_data"
]  # "" is none
_TOO_LATE_SECONDS, _LIMIT_BYTES, _CHUNK_BYTES = 60, 100, 65_536
_SLICES: dict[str, tuple[int, float]] = {"slicer": (7, 0), "bandwidth": (100, 0.1)}  # bytes, and a pause after them
_RESET_ON_CLOSE = struct.pack("ii", 1, 0)


class ToxicLink:
    """Listens on a free port and passes everything on, to a port or a Unix socket; answers, as its toxic lets them."""

    def __init__(self, upstream: int | Path) -> None:
        self._upstream, self.port = upstream, 0
        self._toxic: Toxic = ""
        self._well = 0  # so many answers are still let through
        self._running: set[asyncio.Task[None]] = set()

    @property
    def origin(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    async def __aenter__(self) -> Self:
        await self._listen()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._close()

    async def go_wrong(self, toxic: Toxic, *, cut: bool = True, after: int = 0) -> None:
        """In that way from now on, or `after` so many answers; "" heals.

        Open connections end, or with `cut=False` go on in the new way.
        """
        self._well = after
        is_open = self._toxic != "down"
        if cut or toxic == "down":
            await self._close()
            is_open = False
        self._toxic = toxic
        if toxic != "down" and not is_open:
            await self._listen()

    async def _listen(self) -> None:
        self._server = await asyncio.start_server(self._connected, "127.0.0.1", self.port)
        self.port = self._server.sockets[0].getsockname()[1]

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
        if isinstance(self._upstream, Path):
            theirs, ours = await asyncio.open_unix_connection(self._upstream)
        else:
            theirs, ours = await asyncio.open_connection("127.0.0.1", self._upstream)
        try:
            async with asyncio.TaskGroup() as both:
                questions = both.create_task(_pass_on(reader, ours))
                await self._answers(theirs, writer)
                if self._toxic == "slow_close":
                    await asyncio.sleep(_TOO_LATE_SECONDS)
                questions.cancel()
        finally:
            ours.transport.abort()
            writer.transport.abort()

    async def _answers(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError):
            while data := await reader.read(_CHUNK_BYTES):
                self._well -= 1
                toxic = self._toxic if self._well < 0 else ""
                if toxic in ("latency", "timeout"):
                    await asyncio.sleep(_TOO_LATE_SECONDS)
                if toxic == "timeout":  # what comes is lost, and in the end the connection
                    return
                if toxic == "reset_peer":
                    peer = writer.get_extra_info("socket")
                    peer.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET_ON_CLOSE)
                    return
                if toxic == "limit_data":
                    data = data[:_LIMIT_BYTES]
                await self._send(data, writer, toxic)
                if toxic == "limit_data":
                    return

    async def _send(self, data: bytes, writer: asyncio.StreamWriter, toxic: Toxic) -> None:
        size, pause = _SLICES.get(toxic, (_CHUNK_BYTES, 0.0))
        for start in range(0, len(data), size):
            writer.write(data[start : start + size])
            await writer.drain()
            await asyncio.sleep(pause)


async def _pass_on(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with contextlib.suppress(OSError):
        while data := await reader.read(_CHUNK_BYTES):
            writer.write(data)
            await writer.drain()
