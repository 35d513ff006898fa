"""A load generator for machines without wrk, and for a steady rate: HTTP/1.1, one request at a time on a connection.

It costs more of its core than wrk does, so that fast servers look slower than they are; CPU per request is not touched.
With `every` (seconds) a connection asks at its own times, and latency counts from when it was to ask.
"""

import asyncio
import json
import sys
import time
from typing import Any


class Connection(asyncio.Protocol):
    """Sends the request, waits for the whole answer, sends again."""

    def __init__(self, request: bytes, every: float) -> None:
        self.took: list[float] = []
        self.bad = self.refused = 0
        self.done = asyncio.get_running_loop().create_future()
        self._request, self._every, self._read = request, every, b""

    def connection_made(self, transport: Any) -> None:
        self._transport = transport

    def begin(self, at: float, until: float) -> None:
        """Send the first request at a time, and the last one before another."""
        self._begun, self._until = at - self._every, until
        self._next()

    def _next(self) -> None:
        now = time.perf_counter()
        self._begun = self._begun + self._every if self._every else now
        if self._begun > now:
            asyncio.get_running_loop().call_later(self._begun - now, self._send)
        else:
            self._send()

    def _send(self) -> None:
        self._read = b""
        if not self._transport.is_closing():
            self._transport.write(self._request)

    def data_received(self, data: bytes) -> None:
        self._read += data
        head, found, body = self._read.partition(b"\r\n\r\n")
        if not found or len(body) < int(head.lower().partition(b"content-length:")[2].partition(b"\r\n")[0]):
            return
        now = time.perf_counter()
        self.took.append(now - self._begun)
        self.bad += not head.startswith(b"HTTP/1.1 2")
        self.refused += head.startswith(b"HTTP/1.1 503") and b"\r\nretry-after: 1" in head.lower()
        if b"connection: close" in head.lower() or now >= self._until:
            self._transport.close()
        else:
            self._next()

    def connection_lost(self, _error: Exception | None) -> None:
        if time.perf_counter() < self._until and not self._transport.is_closing():
            self.bad += 1
        self.done.set_result(None)


async def main() -> None:
    """Read what to send from stdin, print what was counted."""
    asked = json.load(sys.stdin)
    body = asked["body"].encode()
    fields = {"Host": f"127.0.0.1:{asked['port']}", "Content-Length": str(len(body)), **asked["headers"]}
    lines = [f"{asked['method']} {asked['path']} HTTP/1.1", *(f"{name}: {value}" for name, value in fields.items())]
    request = "\r\n".join([*lines, "", ""]).encode() + body
    loop, made, every = asyncio.get_running_loop(), [], asked.get("every", 0.0)
    for _ in range(asked["connections"]):
        made.append((await loop.create_connection(lambda: Connection(request, every), "127.0.0.1", asked["port"]))[1])
    begun = time.perf_counter()
    for number, connection in enumerate(made):
        connection.begin(begun + every * number / len(made), begun + asked["seconds"])
    await asyncio.gather(*(connection.done for connection in made))
    took = sorted(seconds * 1000 for connection in made for seconds in connection.took)
    print(
        json.dumps(
            {
                "requests": len(took),
                "bad": sum(connection.bad for connection in made),
                "refused": sum(connection.refused for connection in made),
                "seconds": time.perf_counter() - begun,
                "p50": took[len(took) // 2],
                "p99": took[len(took) * 99 // 100],
            }
        )
    )


if __name__ == "__main__":
    asyncio.run(main())
