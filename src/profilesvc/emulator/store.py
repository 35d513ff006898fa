"""The emulator's database file, whose writes survive a crash."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TypeVar

from sqlalchemy import URL, Connection, event
from sqlalchemy.engine.interfaces import DBAPIConnection
from sqlalchemy.ext.asyncio import AsyncEngine, create_async_engine
from sqlmodel.ext.asyncio.session import AsyncSession

from profilesvc.database.disposal import dispose
from profilesvc.database.private_files import make_private
from profilesvc.emulator.errors import not_found
from profilesvc.emulator.tables import EmulatorTable

Row = TypeVar("Row", bound=EmulatorTable)
VERSION = 3  # a file of another version is replaced by one with the demo data


async def find(session: AsyncSession, table: type[Row], name: str) -> Row:
    """Return a row by its name.

    Raises:
        ApiError: 404.
    """
    row = await session.get(table, name)
    if row is None:
        raise not_found()
    return row


def dump(document: object) -> str:
    return json.dumps(document, ensure_ascii=False, separators=(",", ":"))


class Store:
    """The file; `read()` and `write()` open sessions, and write sessions are exclusive."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._engine: AsyncEngine | None = None
        self._write_lock = asyncio.Lock()

    async def open(self, fill: Callable[[AsyncSession], None]) -> None:
        """Create the tables and fill them, unless they exist."""
        make_private(self._path)
        self._engine = create_async_engine(URL.create("sqlite+aiosqlite", database=str(self._path)))
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
        if self._engine is not None:
            await dispose(self._engine)

    @asynccontextmanager
    async def read(self) -> AsyncIterator[AsyncSession]:
        """Open a session without a transaction, so each statement sees the latest data. It must not change data."""
        async with AsyncSession(self._bind(write=False), expire_on_commit=False) as session:
            yield session

    @asynccontextmanager
    async def write(self) -> AsyncIterator[AsyncSession]:
        """Open a transaction that holds the write lock from its start, so that read-change-write loses no update.

        Writers of this process queue for a lock, because SQLite itself only sleeps and retries, in no fair order.
        """
        bind = self._bind(write=True)
        async with self._write_lock, AsyncSession(bind, expire_on_commit=False) as session, session.begin():
            yield session

    def _bind(self, *, write: bool) -> AsyncEngine:
        assert self._engine is not None, "the emulator's lifespan has not started"
        return self._engine.execution_options(emulator_write=write)


def _configure(connection: DBAPIConnection, _record: object) -> None:
    connection.isolation_level = None  # _begin sends BEGIN
    cursor = connection.cursor()
    for pragma in ("busy_timeout=5000", "journal_mode=WAL", "synchronous=NORMAL"):
        cursor.execute(f"PRAGMA {pragma}")
    cursor.close()


def _begin(connection: Connection) -> None:
    """Start a transaction for write sessions. Reads are a fifth faster without one."""
    if connection.get_execution_options().get("emulator_write"):
        connection.exec_driver_sql("BEGIN IMMEDIATE")
