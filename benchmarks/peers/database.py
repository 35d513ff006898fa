"""The peers' database: the same durability as the service's, and SQLAlchemy's default pool."""

import os
from typing import Any

from sqlalchemy import Engine, event

URL = os.environ["BENCH_DATABASE_URL"]


def sync_url() -> str:
    """Return the URL for a blocking driver."""
    return URL.replace("+aiosqlite", "").replace("+asyncpg", "+psycopg")


def durable(engine: Engine) -> None:
    """Set SQLite to WAL and FULL, so that a heartbeat survives a power failure, and enable foreign keys."""
    if engine.dialect.name != "sqlite":
        return

    @event.listens_for(engine, "connect")
    def configure(connection: Any, _record: Any) -> None:
        for pragma in ("journal_mode=WAL", "synchronous=FULL", "busy_timeout=20000", "foreign_keys=ON"):
            connection.execute(f"PRAGMA {pragma}")
