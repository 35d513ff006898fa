"""Counters of moving windows in Redis or Valkey, for several processes: one script and one trip per request."""

import asyncio
import logging
import re
from typing import Any

from redis.asyncio import Redis
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff
from redis.exceptions import ConnectionError as Disconnected
from redis.exceptions import RedisError

from profilesvc.domain.rates import Window
from profilesvc.storage.windows import Standing, Windows

TIMEOUT_SECONDS = 0.5  # long for a counter, because a busy process is late itself: a flood must not end the counting
PAUSE_SECONDS = 5.0  # how long a server that failed is left alone
_LOG_EVERY_SECONDS = 60.0
_CONNECTIONS = 16
_PREFIX = "profilesvc:limits:"
log = logging.getLogger("profilesvc")

# The server's clock, so that all processes agree. A log is a list of instants, newest first; what lies more than a
# window behind or ahead (the clock was set back) does not count, as in MemoryWindows.
_LIVE = """
local clock = redis.call('TIME')
local now = clock[1] * 1000 + math.floor(clock[2] / 1000)
local function live(key, length)
  local oldest = redis.call('LINDEX', key, -1)
  while oldest and math.abs(now - oldest) >= length do
    redis.call('RPOP', key)
    oldest = redis.call('LINDEX', key, -1)
  end
  return redis.call('LLEN', key)
end
local function add(key, length)
  redis.call('LPUSH', key, now)
  redis.call('PEXPIRE', key, length)
end
"""
_TAKE = (
    _LIVE
    + """
local limit, length = tonumber(ARGV[1]), tonumber(ARGV[2])
local count, granted = live(KEYS[1], length), 0
if count < limit then
  add(KEYS[1], length)
  count, granted = count + 1, 1
end
local leaves = redis.call('LINDEX', KEYS[1], math.min(limit, count) - 1) or now
return {granted, math.max(limit - count, 0), leaves + length - now}
"""
)
_STRIKE = (
    _LIVE
    + """
local limit, length, penalty = tonumber(ARGV[1]), tonumber(ARGV[2]), KEYS[1] .. ':penalty'
local count = live(KEYS[1], length)
local strikes = tonumber(redis.call('HGET', penalty, 'strikes') or 0)
local until_ = tonumber(redis.call('HGET', penalty, 'until') or 0)
if math.abs(now - until_) > length then until_ = 0 end
local delay = 0
if until_ > 0 and until_ <= now then
  until_ = 0
elseif until_ == 0 and count < limit then
  add(KEYS[1], length)
else
  delay = math.min(1000 * 2 ^ math.min(strikes, 32), length)
  strikes, until_ = strikes + 1, now + delay
end
redis.call('HSET', penalty, 'strikes', strikes, 'until', until_)
redis.call('PEXPIRE', penalty, length)
return delay
"""
)


class SharedWindows:
    """The windows of all processes. While the server does not answer, this process counts for itself in `spare`."""

    def __init__(self, url: str, spare: Windows, pause: float = PAUSE_SECONDS) -> None:
        self._redis = Redis.from_url(
            re.sub(r"\Avalkey", "redis", url),
            socket_timeout=TIMEOUT_SECONDS,
            socket_connect_timeout=TIMEOUT_SECONDS,
            retry=Retry(NoBackoff(), 1, (Disconnected,)),  # the server closed a connection that nobody used
        )
        self._turns = asyncio.Semaphore(_CONNECTIONS)
        self._take = self._redis.register_script(_TAKE)
        self._strike = self._redis.register_script(_STRIKE)
        self._spare, self._pause = spare, pause
        self._rest_until = self._logged_at = float("-inf")

    async def take(self, bucket: str, window: Window) -> tuple[bool, Standing]:
        """See Windows."""
        answer = await self._run(self._take, bucket, window)
        if answer is None:
            return await self._spare.take(bucket, window)
        return answer[0] == 1, Standing(answer[1], answer[2])

    async def strike(self, bucket: str, window: Window) -> int:
        """See Windows."""
        delay = await self._run(self._strike, bucket, window)
        return await self._spare.strike(bucket, window) if delay is None else int(delay)

    async def close(self) -> None:
        """Close the connections."""
        await self._redis.aclose()

    async def _run(self, script: Any, bucket: str, window: Window) -> Any:
        """The script's answer, or None while the server is away or left alone."""
        async with self._turns:
            if asyncio.get_running_loop().time() < self._rest_until:
                return None
            try:
                return await script(keys=[_PREFIX + bucket], args=[window.limit, window.length])
            except (RedisError, OSError) as error:
                self._leave_alone(error)
                return None

    def _leave_alone(self, error: Exception) -> None:
        now = asyncio.get_running_loop().time()
        self._rest_until = now + self._pause
        if now >= self._logged_at + _LOG_EVERY_SECONDS:
            self._logged_at = now
            log.warning(
                "limits: the shared counters do not answer (%s); each process counts for itself", type(error).__name__
            )
