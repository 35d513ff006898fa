"""The allowance of `limits/allowance.py` for several processes, in Redis, Valkey or a cluster of these.

One script decides, so that two processes cannot use the same place, and the server's clock decides. It reads single
entries of sorted sets, at most two entries are kept for a use, and all keys expire.
"""

import secrets

from profilesvc.domain.time import DAY, SECOND
from profilesvc.limits.allowance import RECENT, REMEMBERED, MemoryAllowance, Refused
from profilesvc.limits.redis import PAUSE_SECONDS, TIMEOUT_SECONDS, Server

# KEYS: the uses of all owners, those of the owner, and the last owners who asked, each by the instant.
_TAKE = f"""
local time = redis.call("TIME")
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local owner, limit, id = ARGV[1], tonumber(ARGV[2]), ARGV[3]
for place = 1, 2 do redis.call("ZREMRANGEBYSCORE", KEYS[place], "-inf", now - {DAY}) end
redis.call("ZADD", KEYS[3], now, owner)
redis.call("ZREMRANGEBYSCORE", KEYS[3], "-inf", now - {RECENT})
redis.call("ZREMRANGEBYRANK", KEYS[3], 0, -{REMEMBERED + 1})
redis.call("PEXPIRE", KEYS[3], {RECENT})
local function wait(key, place)
  return math.max(redis.call("ZRANGE", key, place, place, "WITHSCORES")[2] + {DAY} - now, 1)
end
local left = limit - redis.call("ZCARD", KEYS[1])
if left <= 0 then return {{wait(KEYS[1], -left), 0}} end
local excess = redis.call("ZCARD", KEYS[2]) - left
if excess >= 0 and redis.call("ZCARD", KEYS[3]) > 1 then
  return {{math.min(wait(KEYS[1], excess), wait(KEYS[2], math.floor(excess / 2))), 1}}
end
for place = 1, 2 do
  redis.call("ZADD", KEYS[place], now, id)
  redis.call("PEXPIRE", KEYS[place], {DAY + SECOND})
end
return {{0, 0}}
"""
_NAME = "{profilesvc:allowance}"  # a hash tag, so that a cluster has all keys on one server


class SharedAllowance:
    """The uses of all processes. While the server fails, this process goes on with those that it counted itself."""

    def __init__(
        self, url: str, own: MemoryAllowance, pause: float = PAUSE_SECONDS, timeout: float = TIMEOUT_SECONDS
    ) -> None:
        self._server, self._own = Server(url, pause, timeout), own

    async def take(self, owner: int, limit: int) -> Refused | None:
        """Count a use if there is room for all processes."""

        async def shared() -> Refused | None:
            keys = f"{_NAME}:all", f"{_NAME}:of:{owner}", f"{_NAME}:asked"
            values = owner, limit, secrets.token_hex(8)
            wait, by_share = map(int, await self._server.client.eval(_TAKE, len(keys), *keys, *values))
            if wait:
                return Refused(wait, by_share=bool(by_share))
            self._own.note(owner)
            return None

        return await self._server.attempt(shared, lambda: self._own.take(owner, limit))

    async def close(self) -> None:
        await self._server.close()
