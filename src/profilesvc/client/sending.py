"""What both clients share: their options, how a request is built, and network trouble told as TransportFailed."""

import contextlib
from collections.abc import Callable, Iterator
from typing import TypedDict, TypeVar

import httpx

from profilesvc.client import operations
from profilesvc.client.errors import TransportFailed
from profilesvc.client.operation import Operation
from profilesvc.client.retries import Retries

T = TypeVar("T")
TIMEOUT = httpx.Timeout(30.0, connect=5.0)
HEADERS = {"User-Agent": "profilesvc-client"}
_UNSENT = (httpx.ConnectError, httpx.ConnectTimeout, httpx.PoolTimeout)


class Options(TypedDict, total=False):
    """What a client may be given: time limits per request, when to retry, and a clock in seconds."""

    timeout: float | httpx.Timeout
    retries: Retries
    clock: Callable[[], float]


def request_of(http: httpx.Client | httpx.AsyncClient, operation: Operation[T]) -> httpx.Request:
    """The operation as a request of that client."""
    body = None if operation.body is None else dict(operation.body)
    return http.build_request(
        operation.method, operation.path, params=operation.params, json=body, headers=operation.headers
    )


@contextlib.contextmanager
def network_told(operation: Operation[T]) -> Iterator[None]:
    """Network trouble as TransportFailed; what cannot be sent at all, as to a URL without a scheme, as ValueError.

    A failure to get a token is reported as such: the operation itself was not sent.
    """
    try:
        yield
    except (httpx.UnsupportedProtocol, httpx.LocalProtocolError) as error:
        raise ValueError(f"the request cannot be sent: {error}") from error
    except httpx.RequestError as error:
        for_token = operation.bearer and error.request.url.path.endswith(operations.TOKEN_PATH)
        sent = not (isinstance(error, _UNSENT) or for_token)
        raise TransportFailed(f"{type(error).__name__}: {error}", sent) from error
