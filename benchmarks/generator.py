"""A load generator for machines without wrk: HTTP/1.1 on kept connections, one request at a time on each.

It costs more of its core than wrk does, so that fast servers look slower than they are; CPU per request is not touched.
"""

import asyncio
import json
import sys
import time
from typing import Any


class Connection(asyncio.Protocol):
    """Sends the request, waits for the whole answer, sends again."""

    def __init__(self, request: bytes, until: float) -> None:
        self.took: list[float] = []
        self.bad = 0
        self.done = asyncio.get_running_loop().create_future()
        self._request, self._until, self._read = request, until, b""

    def connection_made(self, transport: Any) -> None:
        self._transport = transport
        self._send()

    def _send(self) -> None:
        self._read, self._begun = b"", time.perf_counter()
        self._transport.write(self._request)

    def data_received(self, data: bytes) -> None:
        self._read += data
        head, found, body = self._read.partition(b"\r\n\r\n")
        if not found or len(body) < int(head.lower().partition(b"content-length:")[2].partition(b"\r\n")[0]):
            return
        now = time.perf_counter()
        self.took.append(now - self._begun)
        self.bad += not head.startswith(b"HTTP/1.1 2")
        if now < self._until:
            self._send()
        else:
            self._transport.close()

    def connection_lost(self, _error: Exception | None) -> None:
        if time.perf_counter() < self._until:
            self.bad += 1
        self.done.set_result(None)


async def main() -> None:
    """Read what to send from stdin, print what was counted."""
    asked = json.load(sys.stdin)
    body = asked["body"].encode()
    fields = {"Host": f"127.0.0.1:{asked['port']}", "Content-Length": str(len(body)), **asked["headers"]}
    lines = [f"{asked['method']} {asked['path']} HTTP/1.1", *(f"{name}: {value}" for name, value in fields.items())]
    request = "\r\n".join([*lines, "", ""]).encode() + body
    begun = time.perf_counter()
    loop, made = asyncio.get_running_loop(), []
    for _ in range(asked["connections"]):
        _, connection = await loop.create_connection(
            lambda: Connection(request, begun + asked["seconds"]), "127.0.0.1", asked["port"]
        )
        made.append(connection)
    await asyncio.gather(*(connection.done for connection in made))
    took = sorted(seconds * 1000 for connection in made for seconds in connection.took)
    print(
        json.dumps(
            {
                "requests": len(took),
                "bad": sum(connection.bad for connection in made),
                "seconds": time.perf_counter() - begun,
                "p50": took[len(took) // 2],
                "p99": took[len(took) * 99 // 100],
            }
        )
    )


if __name__ == "__main__":
    asyncio.run(main())
