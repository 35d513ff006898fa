"""Counts of a sample of the keys for the operator's metrics, and the counts stored last."""

import json
from typing import Any, NamedTuple

from sqlalchemy import Column, FromClause, ScalarSelect, Select, case, func, literal_column, select, text
from sqlalchemy.ext.asyncio import AsyncSession

from profilesvc.database.statements import Executor, FastReader, Prepared, fetch, insert_into
from profilesvc.storage.keys import live
from profilesvc.storage.tables import census as stored
from profilesvc.storage.tables import connections, holds, keys

Counts = dict[str, dict[str, int]]  # {name: {state: amount}}
_STORED = Prepared(select(stored.c.name, stored.c.state, stored.c.amount, stored.c.counted_at))

SAMPLE_PAGES = 500  # on PostgreSQL, of 8 KB: about 10,000 keys
SAMPLE_KEYS = 10_000  # on SQLite
_KEY_STATES, _SITE_STATES = ("active", "deactivated", "revoked"), ("online", "idle", "offline")
_SIZE = text(
    "SELECT reltuples, pg_relation_size(oid), current_setting('block_size')::int, "
    "EXISTS (SELECT FROM pg_extension WHERE extname = 'citus') FROM pg_class WHERE oid = 'keys'::regclass"
)
_SIZE_OF_SHARDS = text(
    "SELECT sum(CAST(split_part(result, ' ', 1) AS float8)), sum(CAST(split_part(result, ' ', 2) AS float8)) "
    "FROM run_command_on_shards('keys', 'SELECT concat(greatest(reltuples, 0), '' '', pg_relation_size(oid)) "
    "FROM pg_class WHERE oid = ''%s''::regclass') WHERE success"
)


async def by_state(session: FastReader, now: int, online_from: int, offline_before: int) -> Counts:
    """Return how many keys are active, deactivated or revoked, and how many sites of live keys online, idle or offline.

    Expired keys count as revoked. Above some thousands of keys these are estimates from a sample. It has the same keys
    each time, so that a figure changes only if keys do, except on Citus.
    """
    sample = await (_sqlite_sample(session) if session.dialect == "sqlite" else _postgres_sample(session))
    states = _states(sample.keys, now, online_from, offline_before).subquery()
    amount = func.count().label("amount")
    query = select(states.c.of_key, states.c.of_site, amount).group_by(states.c.of_key, states.c.of_site)
    rows = (await session.execute(query)).all()
    seen = sum(row.amount for row in rows)
    factor = sample.factor if sample.total is None else sample.total / max(seen, 1)
    of_keys, of_sites = dict.fromkeys(_KEY_STATES, 0.0), dict.fromkeys(_SITE_STATES, 0.0)
    for row in rows:
        of_keys[row.of_key] += row.amount * factor
        if row.of_key != "revoked":
            of_sites[row.of_site] += row.amount * factor
    return {"keys": _rounded(of_keys), "connections": _rounded(of_sites)}


class _Sample(NamedTuple):
    """Some keys: one is counted as `factor` keys, unless the database knows the total."""

    keys: FromClause
    factor: float
    total: float | None


async def _postgres_sample(session: Executor) -> _Sample:
    """Return the keys of some pages: all of a small table."""
    rows_of_all, size, page_size, is_citus = tuple((await session.execute(_SIZE)).one())
    is_distributed = is_citus and not size  # such a table is empty itself
    if is_distributed:
        rows_of_all, size = tuple((await session.execute(_SIZE_OF_SHARDS)).one())
    percent = 100 * min(1.0, SAMPLE_PAGES * page_size / max(size, 1))
    total = rows_of_all if percent < 100 and rows_of_all > 0 else None
    pages_of = func.system(literal_column(f"{percent:.6f}"))
    # With a seed, pages of the same numbers would be read in all shards, which are too few different ones.
    sample = keys.tablesample(pages_of, "sampled", seed=None if is_distributed else literal_column("0"))
    return _Sample(sample, 100 / percent, total)


async def _sqlite_sample(session: Executor) -> _Sample:
    """Return every n-th key by number: all of a small table."""
    last = (await session.execute(select(func.max(keys.c.id)))).scalar_one() or 0
    step = -(-last // SAMPLE_KEYS) or 1
    numbers = func.json_each(json.dumps(list(range(step, last + 1, step)))).table_valued("value")
    return _Sample(select(keys).where(keys.c.id.in_(select(numbers.c.value))).subquery("sampled"), step, None)


def _states(of: FromClause, now: int, online_from: int, offline_before: int) -> Select[str, str]:
    """Return the states of each key and of its site; scalar subqueries always use the index, unlike joins."""
    is_held = _first(holds.c.key_id, of).is_not(None)
    last_at = _first(connections.c.last_heartbeat_at, of)
    return select(
        case((~live(now, of), "revoked"), (is_held, "deactivated"), else_="active").label("of_key"),
        case((last_at >= online_from, "online"), (last_at > offline_before, "idle"), else_="offline").label("of_site"),
    )


def _first(column: Column[Any], of: FromClause) -> ScalarSelect[Any]:
    table = column.table
    return select(column).where(table.c.owner_id == of.c.owner_id, table.c.key_id == of.c.id).limit(1).scalar_subquery()


def _rounded(amounts: dict[str, float]) -> dict[str, int]:
    return {state: round(amount) for state, amount in amounts.items()}


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
    return counts, min((counted_at for _, _, _, counted_at in rows), default=None)
