"""The budgets of `limits/budget.py` for several processes, in Redis, Valkey or a cluster of these.

One script decides, so that two processes cannot take the same place. The keys of a budget have one hash tag, so that a
cluster has them on one server, and the server's clock decides.
"""

import secrets
from collections.abc import Mapping
from typing import Any

from profilesvc.domain.time import MINUTE
from profilesvc.limits.budget import FLOOR, GRACE, PAUSE, RECOVERY, SPARE, Claim, MemoryBudget, Spent
from profilesvc.limits.redis import PAUSE_SECONDS, TIMEOUT_SECONDS, Server

# KEYS: the requests of the last minute (`owner:id` by the instant), the owners that want some (by
# the instant until when), and the reduction. Every script starts with this.
_OPEN = f"""
local time = redis.call("TIME")
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local full = tonumber(ARGV[1])
redis.call("ZREMRANGEBYSCORE", KEYS[1], "-inf", now - {MINUTE})
redis.call("ZREMRANGEBYSCORE", KEYS[2], "-inf", now)
local reduced = redis.call("HMGET", KEYS[3], "budget", "at")
local budget = full
if reduced[1] then
  budget = math.min(full, reduced[1] + math.floor((now - reduced[2]) * full / {RECOVERY * MINUTE}))
end
local used = redis.call("ZCARD", KEYS[1])
"""
_TAKE = (
    _OPEN
    + f"""
local owner, background, id = ARGV[2], ARGV[3] == "1", ARGV[4]
local room, wait = budget, 0
if background then room = math.max(budget - math.floor(budget / {SPARE}), 1) end
if used >= room then
  local oldest = redis.call("ZRANGE", KEYS[1], used - room, used - room, "WITHSCORES")
  wait = math.max(oldest[2] + {MINUTE} - now, 1)
else
  local others = redis.call("ZCARD", KEYS[2])
  if redis.call("ZSCORE", KEYS[2], owner) then others = others - 1 end
  if others > 0 then
    local own, all = {{}}, redis.call("ZRANGE", KEYS[1], 0, -1, "WITHSCORES")
    for place = 1, #all, 2 do
      if string.sub(all[place], 1, #owner + 1) == owner .. ":" then own[#own + 1] = all[place + 1] end
    end
    local excess = #own - math.floor((budget + 1) / 2)
    if excess >= 0 then wait = math.max(own[excess + 1] + {MINUTE} - now, 1) end
  end
end
if wait == 0 then
  redis.call("ZADD", KEYS[1], now, owner .. ":" .. id)
  redis.call("PEXPIRE", KEYS[1], {2 * MINUTE})
  redis.call("ZREM", KEYS[2], owner)
elseif not background then
  redis.call("ZADD", KEYS[2], now + wait + {GRACE}, owner)
  redis.call("PEXPIRE", KEYS[2], {2 * MINUTE})
end
return {{wait, budget}}
"""
)
_SHRINK = (
    _OPEN
    + f"""
if reduced[2] and now - reduced[2] < {PAUSE} then return 0 end
local smaller = math.max(math.floor(budget / 2), math.floor(full / {FLOOR}), 1)
redis.call("HSET", KEYS[3], "budget", smaller, "at", now)
redis.call("PEXPIRE", KEYS[3], {RECOVERY * MINUTE})
return 1
"""
)
_SPENT = _OPEN + "return {budget, used, redis.call('ZCARD', KEYS[2])}"


class SharedBudget:
    """The budgets of all processes. While the server fails, this process goes on with what it has sent itself."""

    def __init__(
        self, url: str, own: MemoryBudget, pause: float = PAUSE_SECONDS, timeout: float = TIMEOUT_SECONDS
    ) -> None:
        self._server, self._own = Server(url, pause, timeout), own
        self._known: dict[str, int] = {}

    async def take(self, claim: Claim) -> int:
        """Grant a request if there is room for all processes."""

        async def shared() -> int:
            values = claim.owner, int(claim.background), secrets.token_hex(8)
            wait, self._known[claim.name] = map(int, await self._run(_TAKE, claim.name, claim.full, *values))
            if not wait:
                self._own.note(claim)
            return wait

        return await self._server.attempt(shared, lambda: self._own.take(claim))

    def wait(self, claim: Claim) -> int:
        """Return the milliseconds until there can be room; other processes may make it longer."""
        return self._own.wait(claim)

    def used(self, name: str) -> Mapping[int, int]:
        """Return the requests of each owner that this process has sent in the last minute."""
        return self._own.used(name)

    def known(self, name: str, full: int) -> int:
        """Return the budget at the last request of this process."""
        return min(self._known.get(name, full), full)

    async def shrink(self, name: str, full: int) -> bool:
        """Halve a budget."""

        async def shared() -> bool:
            return bool(await self._run(_SHRINK, name, full))

        return await self._server.attempt(shared, lambda: self._own.shrink(name, full))

    async def spent(self, name: str, full: int) -> Spent:
        """Return the state of a budget."""

        async def shared() -> Spent:
            return Spent(*map(int, await self._run(_SPENT, name, full)))

        return await self._server.attempt(shared, lambda: self._own.spent(name, full))

    async def close(self) -> None:
        await self._server.close()

    async def _run(self, script: str, name: str, *values: object) -> Any:
        keys = [f"{{profilesvc:quota:{name}}}:{part}" for part in ("sent", "wanting", "reduced")]
        return await self._server.client.eval(script, len(keys), *keys, *values)
