"""The usage of connection pools. It is read when the metrics are, at no cost for the units of work."""

import asyncio
from typing import NamedTuple, cast

from sqlalchemy import QueuePool
from sqlalchemy.ext.asyncio import AsyncEngine


class PoolUsage(NamedTuple):
    """The size of a pool, the number of its connections in use, and the number of requests that wait for one."""

    size: int
    in_use: int
    waiting: int


def engine_usage(engine: AsyncEngine) -> PoolUsage:
    """Return the usage of SQLAlchemy's pool."""
    pool = cast(QueuePool, engine.pool)
    return PoolUsage(pool.size(), pool.checkedout(), _waiting(getattr(getattr(pool, "_pool", None), "_queue", None)))


def lock_usage(lock: asyncio.Lock) -> PoolUsage:
    """Return the usage of the lock that admits one writer at a time."""
    return PoolUsage(1, int(lock.locked()), _waiting(lock))


def _waiting(queue: object) -> int:
    """Return how many tasks wait for an asyncio.Queue or asyncio.Lock; asyncio has no public name for it."""
    return len(getattr(queue, "_getters", None) or getattr(queue, "_waiters", None) or ())
