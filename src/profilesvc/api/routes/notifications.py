"""The endpoint of the provider's change feed, which is not part of the API (docs/notifications.md)."""

from typing import cast

from quart import Blueprint, Response

from profilesvc.api.request import KB, AwaitedBody, current_services, header_values, quart_request
from profilesvc.contract.errors import PAYLOAD_TOO_LARGE
from profilesvc.domain.errors import ServiceError
from profilesvc.services.feed import feed

blueprint = Blueprint("notifications", __name__)
_LIMIT = 64 * KB  # a notification has less than 1 KB


@blueprint.post("/provider/notifications")
async def receive_notification() -> Response:
    """Receive a push of Pub/Sub. 204 acknowledges it; Pub/Sub repeats it after any other status."""
    services, incoming = current_services(), quart_request()
    header = header_values(incoming, b"authorization")
    is_bearer = len(header) == 1 and header[0][:7].lower() == "bearer "
    await feed.authenticate(services, header[0][7:].strip() if is_bearer else "")
    try:
        raw = await cast(AwaitedBody, incoming.body).read(_LIMIT)
    except ServiceError as error:
        if error.kind is not PAYLOAD_TOO_LARGE:
            raise
        raw = b""  # acknowledged as malformed, because it would be repeated for days
    await services.background.finish(feed.receive(services, raw))
    response = Response(status=204)
    del response.headers["Content-Type"]
    return response
