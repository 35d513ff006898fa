"""Counters of moving windows in Redis or Valkey, for several processes, by the library's own storage and scripts."""

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
from profilesvc.domain.world import SECOND
from profilesvc.limits.counters import LibraryWindows

Answer = TypeVar("Answer")
TIMEOUT_SECONDS = 0.5  # long for a counter, because a busy process is late itself: a flood must not end the counting
PAUSE_SECONDS = 5.0  # how long a server that failed is left alone
_LOG_EVERY_SECONDS = 60.0
_CONNECTIONS = 16
_PROBE_SECONDS = 3
log = logging.getLogger("profilesvc")


def redis_url(url: str) -> str:
    """The URL as the library knows it: Valkey speaks Redis' protocol."""
    return re.sub(r"\Avalkey", "redis", url)


class SharedWindows:
    """The windows of all processes. While the server does not answer, this process counts for itself in `spare`."""

    def __init__(
        self, url: str, spare: Windows, pause: float = PAUSE_SECONDS, timeout: float = TIMEOUT_SECONDS
    ) -> None:
        url = redis_url(url)
        self._pool = ConnectionPool.from_url(
            url,
            socket_timeout=timeout,
            socket_connect_timeout=timeout,
            retry=Retry(NoBackoff(), 1, (Disconnected,)),  # the server closed a connection that nobody used
        )
        options: Any = {"connection_pool": self._pool}
        storage = RedisStorage(url, implementation="redispy", key_prefix="profilesvc", **options)
        self._shared = LibraryWindows(storage, lambda: round(time.time() * SECOND))
        self._turns = asyncio.Semaphore(_CONNECTIONS)
        self._spare, self._pause = spare, pause
        self._rest_until = self._logged_at = float("-inf")

    async def take(self, bucket: str, window: Window) -> tuple[bool, Standing]:
        """See Windows."""
        return await self._either(self._shared.take, self._spare.take, bucket, window)

    async def strike(self, bucket: str, window: Window) -> int:
        """See Windows."""
        return await self._either(self._shared.strike, self._spare.strike, bucket, window)

    async def close(self) -> None:
        """Close the connections."""
        await self._pool.aclose()

    async def _either(
        self,
        shared: Callable[[str, Window], Awaitable[Answer]],
        spare: Callable[[str, Window], Awaitable[Answer]],
        bucket: str,
        window: Window,
    ) -> Answer:
        async with self._turns:
            if asyncio.get_running_loop().time() >= self._rest_until:
                try:
                    return await shared(bucket, window)
                except (RedisError, OSError) as error:
                    self._leave_alone(error)
        return await spare(bucket, window)

    def _leave_alone(self, error: Exception) -> None:
        now = asyncio.get_running_loop().time()
        self._rest_until = now + self._pause
        if now >= self._logged_at + _LOG_EVERY_SECONDS:
            self._logged_at = now
            log.warning(
                "limits: the shared counters do not answer (%s); each process counts for itself", type(error).__name__
            )


async def problem_with(url: str) -> str | None:
    """Why nothing can be counted there, None if it can. A write, because a replica and a full server answer reads."""
    options: dict[str, Any] = {"socket_timeout": _PROBE_SECONDS, "socket_connect_timeout": _PROBE_SECONDS}
    try:
        async with Redis.from_url(redis_url(url), retry=Retry(NoBackoff(), 0), **options) as server:
            await server.set("profilesvc:doctor", "1", ex=1)
    except (RedisError, OSError, ValueError) as error:
        return next(iter(str(error).splitlines()), "") or type(error).__name__
    return None
