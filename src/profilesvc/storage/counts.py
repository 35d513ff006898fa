"""Queries that count over whole tables for the operator's metrics, and the counts stored last."""

from sqlalchemy import and_, func, select
from sqlalchemy.ext.asyncio import AsyncSession

from profilesvc.database.statements import Executor, Prepared, fetch, insert_into
from profilesvc.storage.keys import live
from profilesvc.storage.tables import connections, holds, keys, post_usage
from profilesvc.storage.tables import counts as stored

Counts = dict[str, dict[str, int]]  # {name: {state: amount}}
_STORED = Prepared(select(stored.c.name, stored.c.state, stored.c.amount, stored.c.counted_at))


async def keys_by_state(session: Executor, now: int) -> dict[str, int]:
    """Return {active, deactivated, revoked}; expired keys count as revoked."""
    held = select(holds.c.key_id).where(holds.c.owner_id == keys.c.owner_id, holds.c.key_id == keys.c.id).exists()
    counts = (func.count(), func.count().filter(live(now)), func.count().filter(live(now), held))
    total, live_keys, deactivated = map(int, (await session.execute(select(*counts).select_from(keys))).one())
    return {"active": live_keys - deactivated, "deactivated": deactivated, "revoked": total - live_keys}


async def connections_by_state(session: Executor, now: int, online_from: int, offline_before: int) -> dict[str, int]:
    """Return {online, idle} of live keys."""
    last_at = connections.c.last_heartbeat_at
    is_connected = and_(keys.c.owner_id == connections.c.owner_id, keys.c.id == connections.c.key_id)
    query = (
        select(func.count().filter(last_at >= online_from), func.count().filter(last_at < online_from))
        .select_from(connections.join(keys, is_connected))
        .where(last_at > offline_before, live(now))
    )
    online, idle = map(int, (await session.execute(query)).one())
    return {"online": online, "idle": idle}


async def posts_of_month(session: Executor, month: int) -> int:
    """Return the posts counted against the quota of a month, of all users."""
    query = select(func.coalesce(func.sum(post_usage.c.used), 0)).where(post_usage.c.month == month)
    return int((await session.execute(query)).scalar_one())


async def store(session: AsyncSession, counts: Counts, now: int) -> None:
    """Replace the stored counts."""
    rows = [
        {"name": name, "state": state, "amount": amount, "counted_at": now}
        for name, states in counts.items()
        for state, amount in states.items()
    ]
    new = insert_into(session, stored)
    values = {name: new.excluded[name] for name in ("amount", "counted_at")}
    await session.execute(new.on_conflict_do_update(index_elements=["name", "state"], set_=values), rows)


async def latest(session: Executor) -> tuple[Counts, int | None]:
    """Return the stored counts and when they were counted, or nothing and None before the first count."""
    counts: Counts = {}
    rows = await fetch(session, _STORED)
    for name, state, amount, _ in rows:
        counts.setdefault(name, {})[state] = amount
    return counts, min((row[3] for row in rows), default=None)
