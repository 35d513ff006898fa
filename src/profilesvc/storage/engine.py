"""The database: two units of work, `read()` and `write()`, and the same refusal whatever breaks underneath.

SQLite (one process): WAL, synchronous=FULL, writers begin IMMEDIATE so that no update is lost (D-60), and queue
in the process rather than in the file lock. PostgreSQL: READ COMMITTED with conditional updates.
"""

import asyncio
import contextlib
import sqlite3
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import sqlalchemy.exc
from sqlalchemy import event, make_url
from sqlalchemy.ext.asyncio import AsyncEngine, AsyncSession, create_async_engine

from profilesvc.contract.errors import SERVICE_UNAVAILABLE
from profilesvc.domain.errors import ServiceError

BUSY_SECONDS = 5
_PRAGMAS = ("journal_mode=WAL", "synchronous=FULL", f"busy_timeout={BUSY_SECONDS * 1000}", "foreign_keys=ON")


def _connect_args(is_sqlite: bool) -> dict[str, Any]:
    if is_sqlite:
        return {"timeout": BUSY_SECONDS}
    # 5 s leaves room for the answer inside the 6 s that a caller may wait for a database in trouble (A104).
    return {
        "timeout": BUSY_SECONDS,
        "command_timeout": BUSY_SECONDS,
        "server_settings": {"lock_timeout": "4500", "statement_timeout": "4500", "application_name": "profilesvc"},
    }


def create_engine(url: str, pool_size: int) -> AsyncEngine:
    """The engine of either database; creates the folder of a SQLite file."""
    parsed = make_url(url)
    is_sqlite = parsed.get_backend_name() == "sqlite"
    if is_sqlite and parsed.database:
        Path(parsed.database).parent.mkdir(parents=True, exist_ok=True)
    engine = create_async_engine(
        parsed,
        connect_args=_connect_args(is_sqlite),
        pool_size=pool_size,
        max_overflow=0,
        pool_timeout=BUSY_SECONDS,
        pool_pre_ping=not is_sqlite,
    )
    if is_sqlite:
        _prepare_sqlite(engine)
    return engine


def _prepare_sqlite(engine: AsyncEngine) -> None:
    @event.listens_for(engine.sync_engine, "connect")
    def configure(connection: Any, _record: Any) -> None:
        connection.isolation_level = None  # the driver must not begin transactions of its own
        cursor = connection.cursor()
        for pragma in _PRAGMAS:
            cursor.execute(f"PRAGMA {pragma}")
        cursor.close()

    @event.listens_for(engine.sync_engine, "begin")
    def begin(connection: Any) -> None:
        mode = connection.get_execution_options().get("sqlite_begin", "DEFERRED")
        connection.exec_driver_sql(f"BEGIN {mode}")


class Storage:
    """Sessions over one engine. Never await the provider inside `write()`."""

    def __init__(self, url: str, pool_size: int = 10) -> None:
        self.engine = create_engine(url, pool_size)
        self.is_sqlite = self.engine.dialect.name == "sqlite"
        self._writers = self.engine.execution_options(sqlite_begin="IMMEDIATE")
        self._turn = asyncio.Lock()

    @contextlib.asynccontextmanager
    async def read(self) -> AsyncIterator[AsyncSession]:
        """A consistent look; nothing it changes is kept."""
        with _unavailable_as_refusal():
            async with AsyncSession(self.engine, expire_on_commit=False) as session:
                yield session

    @contextlib.asynccontextmanager
    async def write(self) -> AsyncIterator[AsyncSession]:
        """One transaction: committed on leaving, rolled back when anything is raised."""
        with _unavailable_as_refusal():
            async with self._my_turn(), AsyncSession(self._writers, expire_on_commit=False) as session, session.begin():
                yield session

    @contextlib.asynccontextmanager
    async def _my_turn(self) -> AsyncIterator[None]:
        if not self.is_sqlite:
            yield
            return
        async with asyncio.timeout(BUSY_SECONDS):
            await self._turn.acquire()
        try:
            yield
        finally:
            self._turn.release()

    async def close(self) -> None:
        """Give the connections back."""
        await self.engine.dispose()


@contextlib.contextmanager
def _unavailable_as_refusal() -> Any:
    """A database that is down, locked, slow or full answers 503; a broken statement stays a defect."""
    try:
        yield
    except (
        sqlalchemy.exc.OperationalError,
        sqlalchemy.exc.InterfaceError,
        sqlalchemy.exc.TimeoutError,
        TimeoutError,
        OSError,
    ) as error:
        if _is_wrong_statement(error):
            raise
        raise ServiceError(SERVICE_UNAVAILABLE, retry_after=1) from error
    except sqlalchemy.exc.DBAPIError as error:
        if error.connection_invalidated or _is_timeout(error):
            raise ServiceError(SERVICE_UNAVAILABLE, retry_after=1) from error
        raise


def _is_wrong_statement(error: Exception) -> bool:
    """SQLite calls a table that is not there an operational error too (SQLITE_ERROR); waiting would not help."""
    return getattr(getattr(error, "orig", None), "sqlite_errorcode", None) == sqlite3.SQLITE_ERROR


def _is_timeout(error: sqlalchemy.exc.DBAPIError) -> bool:
    """PostgreSQL: lock not available, statement cancelled, out of resources, shutting down (classes 53, 55, 57)."""
    code = str(getattr(error.orig, "sqlstate", "") or "")
    return code[:2] in {"53", "55", "57", "08"}
