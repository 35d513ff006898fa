"""What every route does with a request first and last: note who asks, read the body, tell of limits."""

from collections.abc import Callable
from typing import Any, cast

from quart import Request, Response, request

from profilesvc.api.body import AwaitedBody
from profilesvc.api.concurrency import PLACE
from profilesvc.api.failures import REQUEST_ID
from profilesvc.api.quart_fast import fields
from profilesvc.contract.errors import UNSUPPORTED_MEDIA_TYPE
from profilesvc.contract.oauth2 import COMPRESSED
from profilesvc.domain.errors import ServiceError
from profilesvc.limits import limiter
from profilesvc.services import audit


def asked_now() -> Request:
    """The request itself: each look through Quart's stand-in for it costs more than what is looked at."""
    return cast(Any, request)._get_current_object()  # type: ignore[no-any-return]


def begin(asked: Request) -> None:
    """Note who is asking, as far as is known before the caller is: from where, and under which name in the log."""
    scope = cast(Any, asked.scope)
    address = scope[PLACE].address
    audit.trace.set(audit.Trace("client", address, scope[REQUEST_ID]))
    limiter.account.set(limiter.Account(address))


def body_of(asked: Request) -> AwaitedBody:
    """The body, which is not read yet."""
    return cast(AwaitedBody, asked.body)


def judge_body(asked: Request, limit: int, judge_media: Callable[[], None]) -> None:
    """Refuse a body by its head, before anything is read. PAYLOAD_TOO_LARGE, UNSUPPORTED_MEDIA_TYPE."""
    body = body_of(asked)
    body.require_size(limit)
    if body.has_content():
        _judge_coding(asked)
        judge_media()


async def read_body(asked: Request, limit: int, judge_media: Callable[[], None]) -> bytes:
    """The body as it came. An empty one has no media type (D-03), and only now it is known of each what it is."""
    body = body_of(asked)
    known = body.has_content()
    raw = await body.read(limit)
    if raw and known is None:
        _judge_coding(asked)
        judge_media()
    return raw


def _judge_coding(asked: Request) -> None:
    codings = [coding.strip().lower() for value in fields(asked, b"content-encoding") for coding in value.split(",")]
    if any(coding not in {"", "identity"} for coding in codings):
        raise ServiceError(UNSUPPORTED_MEDIA_TYPE, COMPRESSED.message, headers={"Accept-Encoding": "identity"})


async def tell_limits(response: Response) -> Response:
    """What the answer says of the bucket with the least left, whether the request went well or not."""
    account = limiter.account.get(None)
    if account is not None and (tightest := account.tightest) is not None:
        response.headers.update(tightest.headers)
    return response
