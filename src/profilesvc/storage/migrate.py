"""Migrations: applied at start on SQLite, by `profilesvc db upgrade` on PostgreSQL."""

from pathlib import Path
from typing import Any

from alembic import command
from alembic.config import Config
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import Connection
from sqlalchemy.ext.asyncio import AsyncEngine

MIGRATIONS = Path(__file__).parent / "migrations"


def _config(connection: Connection | None = None) -> Config:
    config = Config()
    config.set_main_option("script_location", str(MIGRATIONS).replace("%", "%%"))
    config.attributes["connection"] = connection
    return config


def head() -> str:
    """The newest revision that this code knows."""
    revision = ScriptDirectory.from_config(_config()).get_current_head()
    assert revision is not None
    return revision


async def current(engine: AsyncEngine) -> str | None:
    """The revision of the database, None when it is empty."""
    async with engine.connect() as connection:
        return await connection.run_sync(lambda sync: MigrationContext.configure(sync).get_current_revision())


async def upgrade(engine: AsyncEngine) -> None:
    """Bring the database to the newest revision; harmless when it is there."""
    await _run(engine, lambda config: command.upgrade(config, "head"))


async def check(engine: AsyncEngine) -> None:
    """Raise alembic's CommandError when tables and migrations differ."""
    await _run(engine, command.check)


async def _run(engine: AsyncEngine, action: Any) -> None:
    async with engine.execution_options(sqlite_begin="IMMEDIATE").begin() as connection:
        await connection.run_sync(lambda sync: action(_config(sync)))
