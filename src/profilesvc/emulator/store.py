"""The emulator's database file: units of work that survive a crash."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from sqlalchemy import Connection, event
from sqlalchemy.ext.asyncio import AsyncEngine, create_async_engine
from sqlmodel.ext.asyncio.session import AsyncSession

from profilesvc.database.private_files import make_private
from profilesvc.emulator.tables import EmulatorTable

VERSION = 1  # of the file; one of another version is filled from the world again


def dump(document: Any) -> str:
    """A document as it is stored."""
    return json.dumps(document, ensure_ascii=False, separators=(",", ":"))


class Store:
    """The file; `read()` and `write()` are its units of work, and write units are exclusive."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._engine: AsyncEngine | None = None
        self._turn = asyncio.Lock()

    async def open(self, fill: Callable[[AsyncSession], None]) -> None:
        """Create the tables and fill them, unless that was done before."""
        make_private(self._path)
        self._engine = create_async_engine(f"sqlite+aiosqlite:///{self._path}")
        event.listen(self._engine.sync_engine, "connect", _configure)
        event.listen(self._engine.sync_engine, "begin", _begin)
        async with self.write() as session:
            connection = await session.connection()
            if (await connection.exec_driver_sql("PRAGMA user_version")).scalar() != VERSION:
                await connection.run_sync(EmulatorTable.metadata.drop_all)
                await connection.run_sync(EmulatorTable.metadata.create_all)
                await connection.exec_driver_sql(f"PRAGMA user_version = {VERSION}")
                fill(session)

    async def close(self) -> None:
        """Release the file."""
        if self._engine is not None:
            await self._engine.dispose()

    @asynccontextmanager
    async def read(self) -> AsyncIterator[AsyncSession]:
        """For looking: no transaction, each statement sees what is there; a change is an error in the caller."""
        async with AsyncSession(self._bind(write=False), expire_on_commit=False) as session:
            yield session

    @asynccontextmanager
    async def write(self) -> AsyncIterator[AsyncSession]:
        """A transaction that holds the write lock from its start, so that read-change-write loses nothing.

        Writers of this process queue here: SQLite's own waiting is by sleeping, and unfair.
        """
        bind = self._bind(write=True)
        async with self._turn, AsyncSession(bind, expire_on_commit=False) as session, session.begin():
            yield session

    def _bind(self, *, write: bool) -> AsyncEngine:
        assert self._engine is not None, "the emulator's lifespan has not started"
        return self._engine.execution_options(emulator_write=write)


def _configure(connection: Any, _record: Any) -> None:
    connection.isolation_level = None  # BEGIN is ours, in _begin
    cursor = connection.cursor()
    for pragma in ("busy_timeout=5000", "journal_mode=WAL", "synchronous=NORMAL"):
        cursor.execute(f"PRAGMA {pragma}")
    cursor.close()


def _begin(connection: Connection) -> None:
    """Start a transaction for write units immediately. Reading needs none and is a fifth faster without one."""
    if connection.get_execution_options().get("emulator_write"):
        connection.exec_driver_sql("BEGIN IMMEDIATE")
