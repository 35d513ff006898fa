"""A load generator for a steady rate, and for machines without wrk: HTTP/1.1, one request at a time per connection.

It uses more CPU than wrk, so that fast servers have fewer requests/s; their CPU per request is not affected. With
`every` (seconds), a connection sends at fixed times, and latency counts from the scheduled time.
"""

import asyncio
import json
import sys
import time
from typing import Any


class Connection(asyncio.Protocol):
    """A connection that sends the request, waits for the whole response, and repeats."""

    def __init__(self, request: bytes, every: float) -> None:
        self.latencies: list[float] = []
        self.bad = self.refused = 0
        self.done = asyncio.get_running_loop().create_future()
        self._request, self._every, self._read = request, every, b""

    def connection_made(self, transport: Any) -> None:
        self._transport = transport

    def start(self, at: float, until: float) -> None:
        """Schedule the first request at `at`, and stop at `until`."""
        self._started, self._until = at - self._every, until
        self._next()

    def _next(self) -> None:
        now = time.perf_counter()
        self._started = self._started + self._every if self._every else now
        if self._started > now:
            asyncio.get_running_loop().call_later(self._started - now, self._send)
        else:
            self._send()

    def _send(self) -> None:
        self._read = b""
        if not self._transport.is_closing():
            self._transport.write(self._request)

    def data_received(self, data: bytes) -> None:
        self._read += data
        head, separator, body = self._read.partition(b"\r\n\r\n")
        if not separator or len(body) < int(head.lower().partition(b"content-length:")[2].partition(b"\r\n")[0]):
            return
        now = time.perf_counter()
        self.latencies.append(now - self._started)
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
    """Read the options from stdin, send the load, and print the results as JSON."""
    options = json.load(sys.stdin)
    body = options["body"].encode()
    fields = {"Host": f"127.0.0.1:{options['port']}", "Content-Length": str(len(body)), **options["headers"]}
    lines = [f"{options['method']} {options['path']} HTTP/1.1", *(f"{name}: {value}" for name, value in fields.items())]
    request = "\r\n".join([*lines, "", ""]).encode() + body
    loop, connections, every = asyncio.get_running_loop(), [], options.get("every", 0.0)
    for _ in range(options["connections"]):
        _, connection = await loop.create_connection(lambda: Connection(request, every), "127.0.0.1", options["port"])
        connections.append(connection)
    started = time.perf_counter()
    for number, connection in enumerate(connections):
        connection.start(started + every * number / len(connections), started + options["seconds"])
    await asyncio.gather(*(connection.done for connection in connections))
    latencies = sorted(seconds * 1000 for connection in connections for seconds in connection.latencies)
    print(
        json.dumps(
            {
                "requests": len(latencies),
                "bad": sum(connection.bad for connection in connections),
                "refused": sum(connection.refused for connection in connections),
                "seconds": time.perf_counter() - started,
                "p50": latencies[len(latencies) // 2],
                "p99": latencies[len(latencies) * 99 // 100],
            }
        )
    )


if __name__ == "__main__":
    asyncio.run(main())
