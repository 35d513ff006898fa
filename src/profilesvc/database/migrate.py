"""Migrations: applied at start on SQLite, by `profilesvc db upgrade` on PostgreSQL while other processes serve.

Revisions are numbers. A migration removes nothing that the two versions before it read or write, so that processes of
three versions can serve the same database (docs/operations.md).
"""

import asyncio
import functools
import math
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from sqlalchemy import Connection, event, inspect, text
from sqlalchemy.exc import DBAPIError
from sqlalchemy.ext.asyncio import AsyncEngine

from profilesvc.database.leases import in_database

if TYPE_CHECKING:  # a tenth of the start-up time, so it is imported only by what migrates
    from alembic.config import Config

MIGRATIONS = Path(__file__).parents[1] / "storage" / "migrations"
LEAD = 2  # how many migrations a database may be ahead of this code
_TRIES, _PAUSE_SECONDS = 60, 1.0
_LOCK_NOT_AVAILABLE = "55P03"
_LOCK_MS = 500  # less than the second after which PostgreSQL checks for deadlocks
# For one transaction, because the session may be another client's next. The first is for Citus, which then applies the
# others on its nodes too; PostgreSQL ignores it.
LIMITS = (
    "SET LOCAL citus.propagate_set_commands = 'local'",
    "SET LOCAL statement_timeout = 0",
    "SET LOCAL idle_in_transaction_session_timeout = 0",
    f"SET LOCAL lock_timeout = {_LOCK_MS}",
)


def _config(connection: Connection) -> "Config":
    from alembic.config import Config

    config = Config()
    config.set_main_option("script_location", str(MIGRATIONS).replace("%", "%%"))
    config.attributes["connection"] = connection
    return config


@functools.cache
def head() -> str:
    """Return the newest revision of this code; read once, because files may be replaced while a process runs."""
    return max(path.name.partition("_")[0] for path in (MIGRATIONS / "versions").glob("[0-9]*.py"))


async def current(engine: AsyncEngine) -> str | None:
    """Return the revision of the database, or None if it is empty."""
    async with engine.connect() as connection:
        if not await connection.run_sync(lambda sync: inspect(sync).has_table("alembic_version")):
            return None
        return (await connection.execute(text("SELECT version_num FROM alembic_version"))).scalar_one_or_none()


def revisions_ahead(revision: str | None) -> int:
    """Return how many migrations a database is ahead of this code; -1 if it is behind, or not the service's."""
    lead = int(revision) - int(head()) if revision is not None and revision.isdecimal() else -1
    return max(lead, -1)


def is_supported(revision: str | None) -> bool:
    """Return whether this code can serve a database at that revision."""
    return 0 <= revisions_ahead(revision) <= LEAD


async def upgrade(engine: AsyncEngine) -> str:
    """Bring the database to the newest revision, unless it is there already or ahead; return its revision.

    On PostgreSQL a migration waits at most half a second for the lock of a table, because all later statements on the
    table wait behind it. Then it pauses and tries again, for about a minute.
    """
    revision = await current(engine)
    if revision is not None and revisions_ahead(revision) >= 0:
        return revision
    from alembic import command

    for tries_left in reversed(range(_TRIES)):
        try:
            await _run(engine, lambda config: command.upgrade(config, "head"))
        except DBAPIError as error:
            if not tries_left or getattr(error.orig, "sqlstate", None) != _LOCK_NOT_AVAILABLE:
                raise
            await asyncio.sleep(_PAUSE_SECONDS)
        else:
            break
    return head()


async def check(engine: AsyncEngine) -> None:
    """Compare tables and migrations.

    Raises:
        CommandError: they differ.
    """
    from alembic import command

    await _run(engine, command.check)


async def _run(engine: AsyncEngine, action: "Callable[[Config], None]") -> None:
    """Run under a lease, because two processes may be started at once."""

    def act(connection: Connection) -> None:
        action(_config(connection))

    if engine.dialect.name == "sqlite":
        async with engine.execution_options(sqlite_begin="IMMEDIATE").begin() as connection:
            await connection.run_sync(act)
        return
    async with in_database(engine) as leases, leases.hold("migration", math.inf), engine.connect() as connection:
        assert connection.sync_connection is not None, "open"
        # Each migration is one transaction, so that none locks a table while the next waits for another.
        event.listen(connection.sync_connection, "begin", _limit)
        await connection.run_sync(act)


def _limit(connection: Connection) -> None:
    for setting in LIMITS:
        connection.exec_driver_sql(setting)
