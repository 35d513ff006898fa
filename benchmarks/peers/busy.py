"""How steady the machine is: an ASGI function that only computes, for as long as it is told to."""

import os
import time
from typing import Any

_BODY = b'{"status":"ok"}'
_HEADERS = [(b"content-type", b"application/json"), (b"content-length", str(len(_BODY)).encode())]


def _compute(turns: int) -> float:
    begun = time.perf_counter()
    for _ in range(turns):
        pass
    return time.perf_counter() - begun


_SAMPLE = 10_000
_TURNS = int(_SAMPLE * float(os.environ["BENCH_BUSY_SECONDS"]) / min(_compute(_SAMPLE) for _ in range(50)))


async def app(scope: Any, _receive: Any, send: Any) -> None:
    """One answer to everything, after some work."""
    if scope["type"] != "http":
        return
    _compute(_TURNS)
    await send({"type": "http.response.start", "status": 200, "headers": _HEADERS})
    await send({"type": "http.response.body", "body": _BODY})
