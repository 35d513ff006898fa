"""Shared parts of both clients: options, requests and network errors."""

import contextlib
import re
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


_LOOPBACK = re.compile(r"(?:.+\.)?localhost\.?|127\.[0-9.]+|::1", re.ASCII)


def secure_url(base_url: str) -> str:
    """Return the address of the service, which is https:// or on this machine, because requests contain secrets.

    Raises:
        ValueError: It is http:// of another host, or no URL.
    """
    try:
        url = httpx.URL(base_url)
    except httpx.InvalidURL as error:
        raise ValueError(f"The address of the service is not a URL: {error}") from None
    if url.host and (url.scheme == "https" or (url.scheme == "http" and _LOOPBACK.fullmatch(url.host))):
        return base_url
    raise ValueError(
        "The address of the service must start with https://. Requests contain secrets, so http:// is "
        "accepted only for this machine."
    )


class Options(TypedDict, total=False):
    """Options of both clients: timeout per request, retry policy, and a clock in seconds."""

    timeout: float | httpx.Timeout
    retries: Retries
    clock: Callable[[], float]


def request_of(http: httpx.Client | httpx.AsyncClient, operation: Operation[T]) -> httpx.Request:
    """Build the request of an operation."""
    body = None if operation.body is None else dict(operation.body)
    return http.build_request(
        operation.method, operation.path, params=operation.params, json=body, headers=operation.headers
    )


@contextlib.contextmanager
def transport_errors(operation: Operation[T]) -> Iterator[None]:
    """Convert network errors of httpx.

    Raises:
        TransportFailed: There is no response. If the token request failed, the operation was not sent.
        ValueError: The request cannot be sent, for example because a header has a newline.
    """
    try:
        yield
    except (httpx.UnsupportedProtocol, httpx.LocalProtocolError) as error:
        raise ValueError(f"The request cannot be sent: {error}") from error
    except httpx.RequestError as error:
        is_token_request = operation.bearer and error.request.url.path.endswith(operations.TOKEN_PATH)
        sent = not (isinstance(error, _UNSENT) or is_token_request)
        raise TransportFailed(f"{type(error).__name__}: {error}", sent) from error
