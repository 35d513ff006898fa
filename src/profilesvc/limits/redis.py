"""Moving windows in Redis or Valkey that several processes share, on the storage of the library `limits`."""

import asyncio
import logging
import re
import time
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

from limits.aio.storage import RedisStorage
from redis.asyncio import ConnectionPool, Redis
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff
from redis.exceptions import ConnectionError as Disconnected
from redis.exceptions import RedisError

from profilesvc.domain.rates import Standing, Window, Windows
from profilesvc.domain.time import SECOND
from profilesvc.limits.counters import LibraryWindows

Result = TypeVar("Result")
TIMEOUT_SECONDS = 0.5  # generous, because a busy process reads late: overload must not stop the shared counting
PAUSE_SECONDS = 5.0  # without requests to a server that failed
_LOG_EVERY_SECONDS = 60.0
_CONNECTIONS = 16
_PROBE_SECONDS = 3
log = logging.getLogger("profilesvc")


def redis_url(url: str) -> str:
    """Return the URL for the library, which knows Valkey as Redis: the protocol is the same."""
    return re.sub(r"\Avalkey", "redis", url)


class SharedWindows:
    """Windows that all processes share. While the server fails, this process counts on its own in `fallback`."""

    def __init__(
        self, url: str, fallback: Windows, pause: float = PAUSE_SECONDS, timeout: float = TIMEOUT_SECONDS
    ) -> None:
        url = redis_url(url)
        self._pool = ConnectionPool.from_url(
            url,
            socket_timeout=timeout,
            socket_connect_timeout=timeout,
            retry=Retry(NoBackoff(), 1, (Disconnected,)),  # the server may have closed an idle connection
        )
        options: Any = {"connection_pool": self._pool}
        storage = RedisStorage(url, implementation="redispy", key_prefix="profilesvc", **options)
        self._shared = LibraryWindows(storage, lambda: round(time.time() * SECOND))
        self._slots = asyncio.Semaphore(_CONNECTIONS)
        self._fallback, self._pause = fallback, pause
        self._paused_until = self._logged_at = float("-inf")

    async def take(self, bucket: str, window: Window) -> tuple[bool, Standing]:
        return await self._with_fallback(self._shared.take, self._fallback.take, bucket, window)

    async def strike(self, bucket: str, window: Window) -> int:
        return await self._with_fallback(self._shared.strike, self._fallback.strike, bucket, window)

    async def close(self) -> None:
        await self._pool.aclose()

    async def _with_fallback(
        self,
        shared: Callable[[str, Window], Awaitable[Result]],
        fallback: Callable[[str, Window], Awaitable[Result]],
        bucket: str,
        window: Window,
    ) -> Result:
        async with self._slots:
            if asyncio.get_running_loop().time() >= self._paused_until:
                try:
                    return await shared(bucket, window)
                except (RedisError, OSError) as error:
                    self._pause_requests(error)
        return await fallback(bucket, window)

    def _pause_requests(self, error: Exception) -> None:
        now = asyncio.get_running_loop().time()
        self._paused_until = now + self._pause
        if now >= self._logged_at + _LOG_EVERY_SECONDS:
            self._logged_at = now
            log.warning("limits: the shared counters failed (%s); each process counts on its own", type(error).__name__)


async def problem_with(url: str) -> str | None:
    """Return why the server cannot count, or None. Write, because a replica or a full server still serves reads."""
    options: dict[str, Any] = {"socket_timeout": _PROBE_SECONDS, "socket_connect_timeout": _PROBE_SECONDS}
    try:
        async with Redis.from_url(redis_url(url), retry=Retry(NoBackoff(), 0), **options) as server:
            await server.set("profilesvc:doctor", "1", ex=1)
    except (RedisError, OSError, ValueError) as error:
        return next(iter(str(error).splitlines()), "") or type(error).__name__
    return None
