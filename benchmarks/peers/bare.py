"""A minimal ASGI function, which is the lower limit for every framework."""

from typing import Any

_BODY = b'{"status":"ok"}'
_HEADERS = [(b"content-type", b"application/json"), (b"content-length", str(len(_BODY)).encode())]


async def app(scope: Any, _receive: Any, send: Any) -> None:
    """Return a small JSON response to every request."""
    if scope["type"] != "http":
        return
    await send({"type": "http.response.start", "status": 200, "headers": _HEADERS})
    await send({"type": "http.response.body", "body": _BODY})
