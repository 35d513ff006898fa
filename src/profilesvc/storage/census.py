"""Counts over whole tables, for the operator's metrics."""

from typing import Any

from sqlalchemy import Select, and_, func, or_, select

from profilesvc.storage.engine import Executor
from profilesvc.storage.tables import connections, holds, keys, post_usage


async def keys_by_state(session: Executor, now: int) -> dict[str, int]:
    """{active, deactivated, revoked}; expired keys count as revoked."""
    live = and_(keys.c.revoked_at.is_(None), or_(keys.c.expires_at.is_(None), keys.c.expires_at > now))
    held = select(holds.c.key_id).where(holds.c.key_id == keys.c.id).exists()
    total = await _count(session, select(func.count()).select_from(keys))
    alive = await _count(session, select(func.count()).select_from(keys).where(live))
    deactivated = await _count(session, select(func.count()).select_from(keys).where(live, held))
    return {"active": alive - deactivated, "deactivated": deactivated, "revoked": total - alive}


async def connections_since(session: Executor, now: int, first: int, last: int) -> int:
    """Live keys whose last heartbeat lies between two instants, the first included."""
    query = (
        select(func.count())
        .select_from(connections.join(keys, keys.c.id == connections.c.key_id))
        .where(
            connections.c.last_heartbeat_at >= first,
            connections.c.last_heartbeat_at < last,
            keys.c.revoked_at.is_(None),
            or_(keys.c.expires_at.is_(None), keys.c.expires_at > now),
        )
    )
    return await _count(session, query)


async def connections_by_state(session: Executor, now: int, online_from: int, offline_before: int) -> dict[str, int]:
    """{online, idle} of live keys."""
    return {
        "online": await connections_since(session, now, online_from, now + 1),
        "idle": await connections_since(session, now, offline_before + 1, online_from),
    }


async def posts_of_month(session: Executor, month: int) -> int:
    """Posts counted against the quota of a month, of all users."""
    return await _count(
        session, select(func.coalesce(func.sum(post_usage.c.used), 0)).where(post_usage.c.month == month)
    )


async def _count(session: Executor, query: Select[Any]) -> int:
    return int((await session.execute(query)).scalar_one())
