"""What no framework can beat: an ASGI function that answers a little JSON."""

from typing import Any

_BODY = b'{"status":"ok"}'
_HEADERS = [(b"content-type", b"application/json"), (b"content-length", str(len(_BODY)).encode())]


async def app(scope: Any, _receive: Any, send: Any) -> None:
    """One answer to everything."""
    if scope["type"] != "http":
        return
    await send({"type": "http.response.start", "status": 200, "headers": _HEADERS})
    await send({"type": "http.response.body", "body": _BODY})
