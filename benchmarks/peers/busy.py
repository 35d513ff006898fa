"""An ASGI function that computes for BENCH_BUSY_SECONDS, to show how much the machine's pauses add to latencies."""

import os
import time
from typing import Any

_BODY = b'{"status":"ok"}'
_HEADERS = [(b"content-type", b"application/json"), (b"content-length", str(len(_BODY)).encode())]


def _compute(iterations: int) -> float:
    started = time.perf_counter()
    for _ in range(iterations):
        pass
    return time.perf_counter() - started


_SAMPLE = 10_000
_ITERATIONS = int(_SAMPLE * float(os.environ["BENCH_BUSY_SECONDS"]) / min(_compute(_SAMPLE) for _ in range(50)))


async def app(scope: Any, _receive: Any, send: Any) -> None:
    """Return a small JSON response to every request, after some work."""
    if scope["type"] != "http":
        return
    _compute(_ITERATIONS)
    await send({"type": "http.response.start", "status": 200, "headers": _HEADERS})
    await send({"type": "http.response.body", "body": _BODY})
