"""Clients that read a response slowly, or leave."""

import asyncio
import contextlib
from typing import Any

from quart import Quart

from profilesvc.server.scope import LEFT
from support.waiting import until_async


class Reader:
    """A client that reads nothing after the first pieces, until it goes on or leaves."""

    def __init__(self, app: Quart, path: str, address: str, pieces: int = 1, cookie: str = "") -> None:
        self.status, self.headers, self.sizes = 0, dict[bytes, bytes](), list[int]()
        self.goes_on, self.has_left, self._pieces = asyncio.Event(), False, pieces
        scope = {
            "type": "http",
            "http_version": "1.1",
            "method": "GET",
            "scheme": "http",
            "path": path,
            "query_string": b"",
            "headers": [(b"host", b"profiles.test"), (b"cookie", cookie.encode())],
            "client": (address, 1),
            LEFT: lambda: self.has_left,
        }
        self.task = asyncio.create_task(app(scope, self._receive, self._send))  # type: ignore[arg-type]

    async def _receive(self) -> dict[str, Any]:
        return {"type": "http.request", "body": b"", "more_body": False}

    async def _send(self, message: Any) -> None:
        if message["type"] == "http.response.start":
            self.status, self.headers = message["status"], dict(message["headers"])
            return
        if len(self.sizes) >= self._pieces:
            await self.goes_on.wait()
        self.sizes.append(len(message["body"]))

    @property
    def waits(self) -> bool:
        return bool(self.sizes) or self.task.done()


@contextlib.asynccontextmanager
async def reading(*readers: Reader) -> Any:
    try:
        await until_async(lambda: all(reader.waits for reader in readers), "all readers", every=0.01)
        yield
    finally:
        for reader in readers:
            reader.goes_on.set()
        await asyncio.gather(*(reader.task for reader in readers))
