"""Migrations: applied at start on SQLite, by `profilesvc db upgrade` on PostgreSQL, while others serve.

Revisions are numbers. A migration takes nothing away that the two versions before it read or write, so that processes
of three versions serve the same database (docs/operations.md).
"""

import asyncio
import functools
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sqlalchemy import Connection, inspect, text
from sqlalchemy.exc import DBAPIError
from sqlalchemy.ext.asyncio import AsyncEngine

if TYPE_CHECKING:  # a tenth of a start: imported by what migrates
    from alembic.config import Config

MIGRATIONS = Path(__file__).parents[1] / "storage" / "migrations"
LEAD = 2  # how many migrations more than this code knows a database may have
_TRIES, _PAUSE_SECONDS = 60, 1.0
_TURN = 0x6D696772  # names this work among PostgreSQL's advisory locks
_LOCK_NOT_AVAILABLE = "55P03"
_LOCK_MS = 500  # less than the second after which PostgreSQL looks for deadlocks


def _config(connection: Connection) -> "Config":
    from alembic.config import Config

    config = Config()
    config.set_main_option("script_location", str(MIGRATIONS).replace("%", "%%"))
    config.attributes["connection"] = connection
    return config


@functools.cache
def head() -> str:
    """The newest revision that this code knows; looked up once, as the files may be replaced under a process."""
    return max(path.name.partition("_")[0] for path in (MIGRATIONS / "versions").glob("[0-9]*.py"))


async def current(engine: AsyncEngine) -> str | None:
    """The revision of the database, None when it is empty."""
    async with engine.connect() as connection:
        if not await connection.run_sync(lambda sync: inspect(sync).has_table("alembic_version")):
            return None
        return (await connection.execute(text("SELECT version_num FROM alembic_version"))).scalar_one_or_none()


def ahead(revision: str | None) -> int:
    """How many migrations a database has more than this code knows; -1 for one that is behind, or none of ours."""
    lead = int(revision) - int(head()) if revision is not None and revision.isdecimal() else -1
    return max(lead, -1)


def fits(revision: str | None) -> bool:
    """Whether this code serves a database at that revision."""
    return 0 <= ahead(revision) <= LEAD


async def upgrade(engine: AsyncEngine) -> None:
    """Bring the database to the newest revision; harmless when it is there or further.

    On PostgreSQL half a second is waited for a table that is in use: whoever comes after the migration waits behind it.
    Then they are let by and it begins again, for a minute or so.
    """
    if ahead(await current(engine)) >= 0:
        return
    from alembic import command

    for left in reversed(range(_TRIES)):
        try:
            await _run(engine, lambda config: command.upgrade(config, "head"))
        except DBAPIError as error:
            if not left or getattr(error.orig, "sqlstate", None) != _LOCK_NOT_AVAILABLE:
                raise
            await asyncio.sleep(_PAUSE_SECONDS)
        else:
            return


async def check(engine: AsyncEngine) -> None:
    """Raise alembic's CommandError when tables and migrations differ."""
    from alembic import command

    await _run(engine, command.check)


async def _run(engine: AsyncEngine, action: Any) -> None:
    """One after the other, as two may be started at once.

    On PostgreSQL each migration is a transaction of its own: none holds a table while the next one waits for another.
    """

    def act(connection: Connection) -> None:
        action(_config(connection))

    if engine.dialect.name == "sqlite":
        async with engine.execution_options(sqlite_begin="IMMEDIATE").begin() as connection:
            await connection.run_sync(act)
        return
    async with engine.connect() as connection:
        await connection.exec_driver_sql(f"SET lock_timeout = {_LOCK_MS}")
        try:
            await connection.exec_driver_sql(f"SELECT pg_advisory_lock({_TURN})")
            await connection.commit()
            await connection.run_sync(act)
        finally:
            await connection.invalidate()  # with what is set and locked in its session
