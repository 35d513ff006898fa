"""Moving windows in Redis, Valkey or a cluster of these, that several processes share, by the library `limits`.

Each command uses one key, so that a cluster can have the keys on different servers.
"""

import asyncio
import logging
import re
import time
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar
from urllib.parse import parse_qs, unquote, urlsplit

from limits.aio.storage import RedisClusterStorage, RedisStorage
from redis.asyncio import ConnectionPool
from redis.asyncio.cluster import ClusterNode
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff
from redis.exceptions import ConnectionError as Disconnected
from redis.exceptions import RedisClusterException, RedisError

from profilesvc.domain.rates import Standing, Window, Windows
from profilesvc.domain.time import SECOND
from profilesvc.limits.counters import LibraryWindows

Result = TypeVar("Result")
TIMEOUT_SECONDS = 0.5  # generous, because a busy process reads late: overload must not stop the shared counting
PAUSE_SECONDS = 5.0  # without requests to a server that failed
_LOG_EVERY_SECONDS = 60.0
_FAILED = "limits: the shared counters failed (%s); each process counts on its own"
_CONNECTIONS = 16
_PROBE_SECONDS = 3
_PORT = 6379
_PARAMETERS = {
    *("db", "username", "password", "client_name", "protocol", "health_check_interval", "max_connections"),
    *("socket_keepalive", "socket_read_size", "socket_timeout", "socket_connect_timeout", "timeout", "virtual_host"),
}
_OF_TLS = {
    *("ssl_keyfile", "ssl_certfile", "ssl_password", "ssl_cert_reqs", "ssl_check_hostname", "ssl_min_version"),
    *("ssl_ca_certs", "ssl_ca_data", "ssl_ca_path", "ssl_ciphers"),
}
# AttributeError, because the client of a cluster that moves keys closes connections that its other callers open.
_FAILURES = (RedisError, RedisClusterException, OSError, AttributeError)
log = logging.getLogger("profilesvc")


def _open(url: str, timeout: float, retries: int) -> RedisStorage:
    """Return the storage of a URL. The clients read it: the library demands a port, and repeats passwords in errors."""
    url = re.sub(r"\Avalkey", "redis", url)  # the protocol is the same
    options: dict[str, Any] = {
        "socket_timeout": timeout,
        "socket_connect_timeout": timeout,
        "retry": Retry(NoBackoff(), retries, (Disconnected,)),
    }
    if not url.partition("://")[0].endswith("+cluster"):
        pool: Any = ConnectionPool.from_url(url, **options)
        _check_parameters(url, pool)
        storage = RedisStorage("redis://", implementation="redispy", key_prefix="profilesvc", connection_pool=pool)
        _client(storage).auto_close_connection_pool = True
        return storage
    options |= _cluster_of(url)
    return RedisClusterStorage("redis+cluster://", implementation="redispy", key_prefix="profilesvc", **options)


def _check_parameters(url: str, pool: Any) -> None:
    """Check the parameters of the URL, which the client reads when it connects, with an error for each request."""
    known = _PARAMETERS | _OF_TLS if url.startswith("rediss:") else _PARAMETERS
    if unknown := sorted(parse_qs(urlsplit(url).query).keys() - known):
        raise ValueError(f"must not have the parameter {unknown[0]!r}")
    try:
        pool.make_connection()
    except (AttributeError, TypeError, ValueError, RedisError) as error:
        raise ValueError(next(iter(str(error).splitlines()), type(error).__name__)) from None


def _cluster_of(url: str) -> dict[str, Any]:
    parts = urlsplit(url)
    credentials, _, hosts = parts.netloc.rpartition("@")
    if parts.query:
        raise ValueError("must have no parameters for a cluster")
    username, _, password = map(unquote, credentials.partition(":"))
    places = [urlsplit(f"//{host}") for host in hosts.split(",")]
    if not all(place.hostname for place in places):
        raise ValueError("must name at least one host: redis+cluster://HOST:PORT,HOST:PORT")
    return {
        "startup_nodes": [ClusterNode(str(place.hostname), place.port or _PORT) for place in places],
        "username": username or None,
        "password": password or None,
        "ssl": parts.scheme.startswith("rediss"),
    }


def _client(storage: RedisStorage) -> Any:
    bridge: Any = storage.bridge
    return bridge.get_connection()


async def _ending_if_cancelled(work: Awaitable[Result]) -> Result:
    """Return the result of the work, or end with the task that waits for it.

    In Python 3.11 the `asyncio.wait_for` of the client loses a cancellation that arrives with its result.
    """
    task = asyncio.current_task()
    before = task.cancelling() if task else 0
    try:
        return await work
    finally:
        if task and task.cancelling() > before:
            raise asyncio.CancelledError


class SharedWindows:
    """Windows that all processes share. While the server fails, this process counts on its own in `fallback`."""

    def __init__(
        self, url: str, fallback: Windows, pause: float = PAUSE_SECONDS, timeout: float = TIMEOUT_SECONDS
    ) -> None:
        storage = _open(url, timeout, retries=1)  # the server may have closed an idle connection
        self._client, self._fallback = _client(storage), fallback
        self._shared = LibraryWindows(storage, lambda: round(time.time() * SECOND))
        self._slots = asyncio.Semaphore(_CONNECTIONS)
        self._pause = pause
        self._paused_until = self._logged_at = float("-inf")
        self._has_failed = False

    async def take(self, bucket: str, window: Window) -> tuple[bool, Standing]:
        return await self._count(lambda windows: windows.take(bucket, window))

    async def standing(self, bucket: str, window: Window) -> Standing:
        return await self._count(lambda windows: windows.standing(bucket, window))

    async def strike(self, bucket: str, window: Window) -> int:
        return await self._count(lambda windows: windows.strike(bucket, window))

    async def close(self) -> None:
        await self._client.aclose()

    async def _count(self, count: Callable[[Windows], Awaitable[Result]]) -> Result:
        """Count in the shared windows, or in the fallback while the server fails."""
        async with self._slots:
            now, is_probe = asyncio.get_running_loop().time(), self._has_failed
            if now >= self._paused_until:
                if is_probe:  # one in some seconds; the others do not wait for its result
                    self._paused_until = now + self._pause
                try:
                    result = await _ending_if_cancelled(self._initialized(count))
                except _FAILURES as error:
                    now = asyncio.get_running_loop().time()
                    self._paused_until, self._has_failed = now + self._pause, True
                    if now >= self._logged_at + _LOG_EVERY_SECONDS:
                        self._logged_at = now
                        log.warning(_FAILED, type(error).__name__)
                else:
                    if is_probe:
                        self._paused_until, self._has_failed = now, False
                    return result
        return await count(self._fallback)

    async def _initialized(self, count: Callable[[Windows], Awaitable[Result]]) -> Result:
        await self._client.initialize()  # that of a cluster does not wait for itself in its commands
        return await count(self._shared)


async def problem_with(url: str) -> str | None:
    """Return why the server cannot count, or None. Write, because a replica or a full server still serves reads."""
    try:
        async with _client(_open(url, _PROBE_SECONDS, retries=0)) as server:
            await server.set("profilesvc:doctor", "1", ex=1)
    except (*_FAILURES, ValueError) as error:
        return next(iter(str(error).splitlines()), "") or type(error).__name__
    return None
