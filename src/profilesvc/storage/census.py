"""Counts over whole tables, for the operator's metrics."""

from sqlalchemy import func, select

from profilesvc.storage.engine import Executor
from profilesvc.storage.keys import live
from profilesvc.storage.tables import connections, holds, keys, post_usage


async def keys_by_state(session: Executor, now: int) -> dict[str, int]:
    """{active, deactivated, revoked}; expired keys count as revoked."""
    held = select(holds.c.key_id).where(holds.c.key_id == keys.c.id).exists()
    counts = (func.count(), func.count().filter(live(now)), func.count().filter(live(now), held))
    total, alive, deactivated = map(int, (await session.execute(select(*counts).select_from(keys))).one())
    return {"active": alive - deactivated, "deactivated": deactivated, "revoked": total - alive}


async def connections_by_state(session: Executor, now: int, online_from: int, offline_before: int) -> dict[str, int]:
    """{online, idle} of live keys."""
    heard = connections.c.last_heartbeat_at
    query = (
        select(func.count().filter(heard >= online_from), func.count().filter(heard < online_from))
        .select_from(connections.join(keys, keys.c.id == connections.c.key_id))
        .where(heard > offline_before, live(now))
    )
    online, idle = map(int, (await session.execute(query)).one())
    return {"online": online, "idle": idle}


async def posts_of_month(session: Executor, month: int) -> int:
    """Posts counted against the quota of a month, of all users."""
    query = select(func.coalesce(func.sum(post_usage.c.used), 0)).where(post_usage.c.month == month)
    return int((await session.execute(query)).scalar_one())
