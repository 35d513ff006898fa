"""How full the pools of connections are: looked up when somebody asks, at no cost for those who use them."""

from typing import Any, NamedTuple, cast

from sqlalchemy import QueuePool
from sqlalchemy.ext.asyncio import AsyncEngine


class Pool(NamedTuple):
    """How many connections there may be, how many are at work, and how many requests wait for one."""

    size: int
    in_use: int
    waiting: int


def of_engine(engine: AsyncEngine) -> Pool:
    """SQLAlchemy's pool."""
    pool = cast(QueuePool, engine.pool)
    return Pool(pool.size(), pool.checkedout(), _waiting(getattr(getattr(pool, "_pool", None), "_queue", None)))


def _waiting(queue: Any) -> int:
    """Who waits in an asyncio.Queue or for an asyncio.Lock: neither library tells it, and asyncio only in private."""
    return len(getattr(queue, "_getters", None) or getattr(queue, "_waiters", None) or ())


def of_turn(lock: Any) -> Pool:
    """The turn of the one writer."""
    return Pool(1, int(lock.locked()), _waiting(lock))
