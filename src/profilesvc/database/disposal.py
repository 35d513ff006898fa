"""Close an engine so that none of its connections stays open."""

import asyncio

from sqlalchemy import QueuePool
from sqlalchemy.ext.asyncio import AsyncEngine

_PAUSE, _PAUSES = 0.005, 200  # seconds, and how many: a second together


async def dispose(engine: AsyncEngine) -> None:
    """Close all connections, after those in use were returned or a second has passed."""
    pool = engine.pool
    # One that is returned to a closed pool is not closed, and a session that was cancelled may still be closing.
    for _ in range(_PAUSES):
        if not isinstance(pool, QueuePool) or not pool.checkedout():
            break
        await asyncio.sleep(_PAUSE)
    await engine.dispose()
