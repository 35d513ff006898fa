"""What every route does with a request first and last: note who asks, read the body, tell of limits."""

from typing import Any, cast

from quart import Request, Response, request

from profilesvc.api.failures import REQUEST_ID
from profilesvc.api.lean import WHOLE_BODY, fields
from profilesvc.contract.errors import PAYLOAD_TOO_LARGE
from profilesvc.domain.addresses import client_address
from profilesvc.domain.errors import ServiceError
from profilesvc.services import audit, limits
from profilesvc.services.context import Services

KB = 1024


def asked_now() -> Request:
    """The request itself: each look through Quart's stand-in for it costs more than what is looked at."""
    return cast(Any, request)._get_current_object()  # type: ignore[no-any-return]


def begin(running: Services, asked: Request) -> None:
    """Note who is asking, as far as is known before the caller is: from where, and under which name in the log."""
    scope = cast(Any, asked.scope)
    peer = scope.get("client")
    forwarded = fields(asked, b"x-forwarded-for")
    address = client_address(peer[0] if peer else None, forwarded, running.settings.trusted_hops)
    audit.trace.set(audit.Trace("client", address, scope[REQUEST_ID]))
    limits.account.set(limits.Account(address))


async def limited_body(asked: Request, limit: int) -> bytes:
    """The body as it came; PAYLOAD_TOO_LARGE beyond the limit, told before it is read when it says how long it is."""
    announced = asked.content_length or 0
    raw: bytes | None = cast(Any, asked.scope).get(WHOLE_BODY)
    if raw is None:
        raw = b""
        if announced <= limit:
            raw = await asked.get_data(cache=False, as_text=False, parse_form_data=False)
    if max(announced, len(raw)) > limit:
        raise ServiceError(PAYLOAD_TOO_LARGE, f"The body must not exceed {limit // KB} KB.")
    return raw


async def tell_limits(response: Response) -> Response:
    """What the answer says of the bucket with the least left, whether the request went well or not."""
    account = limits.account.get(None)
    if account is not None and (tightest := account.tightest) is not None:
        response.headers.update(tightest.headers)
    return response
