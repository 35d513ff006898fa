"""The consent page of the embedded emulator, served by the service, because a browser cannot reach the emulator."""

from collections.abc import Callable
from typing import Any, cast

import httpx
from quart import Blueprint, Quart, Response, request

from profilesvc.emulator.consent import AUTHORIZE

PATH = "/dev/provider"
_LARGEST = 16 * 1024  # bytes of the form, which the emulator parses in this process
_PASSED = ("Content-Type", "Location", "X-Frame-Options", "Cache-Control")


def blueprint(emulator_of: Callable[[], Quart]) -> Blueprint:
    """Build the route; `emulator_of` returns the emulator's app once the service runs."""
    routes = Blueprint("dev_provider", __name__, url_prefix=PATH)

    @routes.route(AUTHORIZE, methods=["GET", "POST"])
    async def consent() -> Response:
        transport = httpx.ASGITransport(app=cast(Any, emulator_of()))
        request_headers = {"Content-Type": request.headers.get("Content-Type", "")}
        query = request.query_string
        async with httpx.AsyncClient(transport=transport, base_url="http://emulator") as client:
            body = await request.get_data()
            if len(body) > _LARGEST:
                return Response(status=413)
            received = await client.request(
                request.method, f"{AUTHORIZE}?{query.decode()}", content=body, headers=request_headers
            )
        headers = {name: received.headers[name] for name in _PASSED if name in received.headers}
        return Response(received.content, received.status_code, headers)

    return routes
