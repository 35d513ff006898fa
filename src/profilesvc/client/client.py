"""The clients: one table of operations, run by httpx.Client and by httpx.AsyncClient."""

import asyncio
import contextlib
import time
from collections.abc import Awaitable, Callable, Iterator
from typing import Self, TypedDict, TypeVar, Unpack

import httpx

from profilesvc.client import operations
from profilesvc.client.auth import BearerAuth, ServiceAuth
from profilesvc.client.errors import ProfileError, TransportFailed
from profilesvc.client.methods import async_call, async_each, call, each
from profilesvc.client.operation import Operation
from profilesvc.client.retries import Retries, Tries

T = TypeVar("T")
TIMEOUT = httpx.Timeout(30.0, connect=5.0)
_HEADERS = {"User-Agent": "profilesvc-client"}
_UNSENT = (httpx.ConnectError, httpx.ConnectTimeout, httpx.PoolTimeout)


class Options(TypedDict, total=False):
    """What a client may be given: time limits per request, when to retry, and a clock in seconds."""

    timeout: float | httpx.Timeout
    retries: Retries
    clock: Callable[[], float]


class SyncOptions(Options, total=False):
    """And how to reach the service (proxies, certificates, tests), and how to wait."""

    transport: httpx.BaseTransport
    sleep: Callable[[float], object]


class AsyncOptions(Options, total=False):
    """And how to reach the service (proxies, certificates, tests), and how to wait."""

    transport: httpx.AsyncBaseTransport
    sleep: Callable[[float], Awaitable[object]]


def _request(http: httpx.Client | httpx.AsyncClient, operation: Operation[T]) -> httpx.Request:
    body = None if operation.body is None else dict(operation.body)
    return http.build_request(
        operation.method, operation.path, params=operation.params, json=body, headers=operation.headers
    )


@contextlib.contextmanager
def _network_told() -> Iterator[None]:
    """Network trouble as TransportFailed; what cannot be sent at all, as to a URL without a scheme, as ValueError."""
    try:
        yield
    except (httpx.UnsupportedProtocol, httpx.LocalProtocolError) as error:
        raise ValueError(f"the request cannot be sent: {error}") from error
    except httpx.RequestError as error:
        sent = not (isinstance(error, _UNSENT) or error.request.url.path.endswith(operations.TOKEN_PATH))
        raise TransportFailed(f"{type(error).__name__}: {error}", sent) from error


class ProfileClient:
    """A caller of the service; safe to share between threads. Close it, or use it as a context manager."""

    def __init__(self, base_url: str, auth: httpx.Auth | None = None, **options: Unpack[SyncOptions]) -> None:
        self._http = httpx.Client(
            base_url=base_url,
            headers=_HEADERS,
            timeout=options.get("timeout", TIMEOUT),
            transport=options.get("transport"),
        )
        self._auth = auth
        self._retries = options.get("retries", Retries())
        self._clock = options.get("clock", time.monotonic)
        self._sleep = options.get("sleep", time.sleep)

    @classmethod
    def service(
        cls,
        base_url: str,
        client_id: str,
        client_secret: str,
        permissions: list[str] | None = None,
        **options: Unpack[SyncOptions],
    ) -> Self:
        """A site or integration with an API key; `permissions` asks for fewer than the key has."""
        clock = options.get("clock", time.monotonic)
        return cls(base_url, ServiceAuth(base_url, client_id, client_secret, permissions, clock), **options)

    @classmethod
    def user(cls, base_url: str, token: str, **options: Unpack[SyncOptions]) -> Self:
        """A dashboard user with a user token."""
        return cls(base_url, BearerAuth(token), **options)

    @classmethod
    def anonymous(cls, base_url: str, **options: Unpack[SyncOptions]) -> Self:
        """Nobody: good for validate_credentials only."""
        return cls(base_url, None, **options)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({str(self._http.base_url)!r}, {self._auth!r})"

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the connections."""
        self._http.close()

    def run(self, operation: Operation[T]) -> T:
        """One operation with its retries; the methods below are made of it."""
        tries = Tries(self._retries, operation, self._clock)
        while True:
            try:
                return operation.read(self._send(operation))
            except ProfileError as error:
                settled = tries.settled(error)
                if settled is not None:
                    return settled
                pause = tries.pause(error)
            self._sleep(pause)

    def _send(self, operation: Operation[T]) -> httpx.Response:
        with _network_told():
            return self._http.send(_request(self._http, operation), auth=self._auth if operation.bearer else None)

    create_key = call(operations.create_key)
    list_keys = call(operations.list_keys)
    revoke_key = call(operations.revoke_key)
    connection_status = call(operations.connection_status)
    businesses = call(operations.businesses)
    heartbeat = call(operations.heartbeat)
    validate_credentials = call(operations.validate_credentials)
    list_posts = call(operations.list_posts)
    iter_posts = each(operations.iter_posts)
    create_post = call(operations.create_post)
    update_post = call(operations.update_post)
    delete_post = call(operations.delete_post)
    list_locations = call(operations.list_locations)
    iter_locations = each(operations.iter_locations)
    location = call(operations.location)
    set_sync = call(operations.set_sync)
    refresh_verification = call(operations.refresh_verification)
    compare = call(operations.compare)
    sync = call(operations.sync)
    sync_history = call(operations.sync_history)
    iter_sync_history = each(operations.iter_sync_history)


class AsyncProfileClient:
    """A caller of the service, for the tasks of one asyncio loop. Close it, or use it with `async with`."""

    def __init__(self, base_url: str, auth: httpx.Auth | None = None, **options: Unpack[AsyncOptions]) -> None:
        self._http = httpx.AsyncClient(
            base_url=base_url,
            headers=_HEADERS,
            timeout=options.get("timeout", TIMEOUT),
            transport=options.get("transport"),
        )
        self._auth = auth
        self._retries = options.get("retries", Retries())
        self._clock = options.get("clock", time.monotonic)
        self._sleep = options.get("sleep", asyncio.sleep)

    @classmethod
    def service(
        cls,
        base_url: str,
        client_id: str,
        client_secret: str,
        permissions: list[str] | None = None,
        **options: Unpack[AsyncOptions],
    ) -> Self:
        """A site or integration with an API key; `permissions` asks for fewer than the key has."""
        clock = options.get("clock", time.monotonic)
        return cls(base_url, ServiceAuth(base_url, client_id, client_secret, permissions, clock), **options)

    @classmethod
    def user(cls, base_url: str, token: str, **options: Unpack[AsyncOptions]) -> Self:
        """A dashboard user with a user token."""
        return cls(base_url, BearerAuth(token), **options)

    @classmethod
    def anonymous(cls, base_url: str, **options: Unpack[AsyncOptions]) -> Self:
        """Nobody: good for validate_credentials only."""
        return cls(base_url, None, **options)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({str(self._http.base_url)!r}, {self._auth!r})"

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        """Close the connections."""
        await self._http.aclose()

    async def run(self, operation: Operation[T]) -> T:
        """One operation with its retries; the methods below are made of it."""
        tries = Tries(self._retries, operation, self._clock)
        while True:
            try:
                return operation.read(await self._send(operation))
            except ProfileError as error:
                settled = tries.settled(error)
                if settled is not None:
                    return settled
                pause = tries.pause(error)
            await self._sleep(pause)

    async def _send(self, operation: Operation[T]) -> httpx.Response:
        with _network_told():
            return await self._http.send(_request(self._http, operation), auth=self._auth if operation.bearer else None)

    create_key = async_call(operations.create_key)
    list_keys = async_call(operations.list_keys)
    revoke_key = async_call(operations.revoke_key)
    connection_status = async_call(operations.connection_status)
    businesses = async_call(operations.businesses)
    heartbeat = async_call(operations.heartbeat)
    validate_credentials = async_call(operations.validate_credentials)
    list_posts = async_call(operations.list_posts)
    iter_posts = async_each(operations.iter_posts)
    create_post = async_call(operations.create_post)
    update_post = async_call(operations.update_post)
    delete_post = async_call(operations.delete_post)
    list_locations = async_call(operations.list_locations)
    iter_locations = async_each(operations.iter_locations)
    location = async_call(operations.location)
    set_sync = async_call(operations.set_sync)
    refresh_verification = async_call(operations.refresh_verification)
    compare = async_call(operations.compare)
    sync = async_call(operations.sync)
    sync_history = async_call(operations.sync_history)
    iter_sync_history = async_each(operations.iter_sync_history)
