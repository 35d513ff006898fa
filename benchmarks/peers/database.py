"""The peers' database: the same durability as the service's, the pool as SQLAlchemy makes it by default."""

import os
from typing import Any

from sqlalchemy import Engine, event

URL = os.environ["BENCH_DATABASE_URL"]


def sync_url() -> str:
    """The URL for a blocking driver."""
    return URL.replace("+aiosqlite", "").replace("+asyncpg", "+psycopg")


def durable(engine: Engine) -> None:
    """SQLite: WAL and FULL, so that an answered heartbeat survives a loss of power; foreign keys are kept."""
    if engine.dialect.name != "sqlite":
        return

    @event.listens_for(engine, "connect")
    def configure(connection: Any, _record: Any) -> None:
        for pragma in ("journal_mode=WAL", "synchronous=FULL", "busy_timeout=20000", "foreign_keys=ON"):
            connection.execute(f"PRAGMA {pragma}")
