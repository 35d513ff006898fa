"""The database: the units of work `read()`, `write()` and `commit()`, which raise SERVICE_UNAVAILABLE for any failure.

Each statement of a read sees what is committed when it runs (`statements.py`).

SQLite (one process): WAL, synchronous=FULL; writers use BEGIN IMMEDIATE, so that no update is lost, and queue in the
process, because the lock of the file is not fair. PostgreSQL: READ COMMITTED with conditional updates.
"""

import asyncio
import contextlib
import logging
import math
import os
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from pathlib import Path
from sqlite3 import OperationalError
from typing import Any

from sqlalchemy import Connection, event, text
from sqlalchemy.engine.interfaces import DBAPIConnection, DBAPICursor
from sqlalchemy.exc import DisconnectionError
from sqlalchemy.ext.asyncio import AsyncEngine, AsyncSession, create_async_engine
from sqlalchemy.pool import ConnectionPoolEntry

from profilesvc.database.disposal import dispose
from profilesvc.database.leases import Leases, PostgresLeases, SingleProcessLeases
from profilesvc.database.outage import Outage
from profilesvc.database.pool_usage import PoolUsage, engine_usage, lock_usage
from profilesvc.database.postgres import BUSY_SECONDS, connect, connect_args, parsed_url, standby_url
from profilesvc.database.postgres_pool import PostgresPool
from profilesvc.database.private_files import make_private
from profilesvc.database.replica import Replica
from profilesvc.database.statements import FastReader, PostgresReaders, Readers, SqliteReader
from profilesvc.database.unavailable import READ_ONLY, as_unavailable, sqlstate
from profilesvc.database.writers import Executions, PostgresWriter, Result, SqliteWriter, Work, Writer
from profilesvc.domain.errors import ServiceError
from profilesvc.domain.request import current_request

log = logging.getLogger("profilesvc")
LAST_SECONDS = 0.25
_CHECKPOINT_SECONDS = 1.0  # other writers wait meanwhile
_RENEW_SECONDS = 1.0  # not every request opens new connections while a server stays read-only
# "on" in a standby, too. One table is enough to check; the privilege is NULL while it does not exist.
_IS_WRITABLE = text(
    "SELECT current_setting('transaction_read_only') = 'off' AND "
    "COALESCE(has_table_privilege(to_regclass('keys'), 'UPDATE'), true)"
)
_HAS_STANDBY = text(
    "SELECT CASE WHEN current_setting('synchronous_standby_names') <> '' "
    "THEN EXISTS (SELECT FROM pg_stat_replication) END"
)
_AT_THE_END = "profilesvc.at_the_end"  # in `session.info`
_PRAGMAS = ("synchronous=FULL", "foreign_keys=ON", "secure_delete=ON")


def create_engine(url: str, pool_size: int, *, patient: bool = False) -> AsyncEngine:
    """Create the engine of either database, and for SQLite the file, readable only by its owner.

    `patient` sets no time limit on statements, for migrations.
    """
    parsed = parsed_url(url)
    is_sqlite, arguments = parsed.get_backend_name() == "sqlite", connect_args(patient=patient)
    if is_sqlite and parsed.database:
        make_private(Path(parsed.database))  # signing keys are stored in it
    engine = create_async_engine(
        parsed,
        connect_args={"timeout": BUSY_SECONDS} if is_sqlite else {**arguments, "async_creator_fn": connect},
        hide_parameters=True,  # an error in the log must not contain stored values
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
    def configure(connection: DBAPIConnection, _record: object) -> None:
        connection.isolation_level = None  # the driver must not start transactions itself
        cursor = connection.cursor()
        _use_wal(cursor)
        for pragma in _PRAGMAS:
            cursor.execute(f"PRAGMA {pragma}")
        cursor.close()

    @event.listens_for(engine.sync_engine, "begin")
    def begin(connection: Connection) -> None:
        options, usual = connection.get_execution_options(), int(BUSY_SECONDS * 1000)
        wait = options.get("sqlite_wait_ms", usual)
        if connection.info.get("wait_ms", usual) != wait:
            connection.exec_driver_sql(f"PRAGMA busy_timeout={wait}")
            connection.info["wait_ms"] = wait
        connection.exec_driver_sql(f"BEGIN {options.get('sqlite_begin', 'DEFERRED')}")


def _use_wal(cursor: DBAPICursor) -> None:
    """Switch a new file to WAL. SQLite does not wait for another connection that does the same at this moment."""
    until = time.monotonic() + BUSY_SECONDS
    while True:
        try:
            cursor.execute("PRAGMA journal_mode=WAL")
        except OperationalError:
            if time.monotonic() > until:
                raise
            time.sleep(0.005)
        else:
            return


def _number_of_file(path: str | None) -> int | None:
    """Return the inode of a file, or None."""
    try:
        return os.stat(path).st_ino if path else None
    except OSError:
        return None


def at_the_end(session: AsyncSession, work: Callable[[AsyncSession], Awaitable[None]]) -> None:
    """Run this at the end of a `write()`, before it commits: for a row that many transactions lock."""
    session.info.setdefault(_AT_THE_END, []).append(work)


class Storage:
    """Units of work over one database. Never await the provider inside them.

    A unit lasts 4.5 s at most, including waiting. The time of a slow unit is subtracted from the later units of the
    same request, down to a quarter of a second for cleaning up, so that the whole request stays within 6 s.
    """

    def __init__(self, url: str, pool_size: int = 10, replica_url: str = "") -> None:
        self._urls = url, replica_url
        self.engine = create_engine(url, pool_size)
        self.is_sqlite = self.engine.dialect.name == "sqlite"
        self.dialect = self.engine.dialect.name
        self.outage = Outage()
        self.leases: Leases
        self.readers: Readers
        self.replica: Replica | None = None
        self._writer: Writer
        if self.is_sqlite:
            path = self.engine.url.database or ""
            self.readers, self._writer = SqliteReader(path), SqliteWriter(path, _PRAGMAS)
            self.leases = SingleProcessLeases()
            self._file_number = _number_of_file(path)
        else:
            arguments = {**self.engine.dialect.create_connect_args(self.engine.url)[1], **connect_args()}
            self._pool = PostgresPool(arguments, pool_size)
            self.readers, self._writer = PostgresReaders(self.engine, self._pool), PostgresWriter(self._pool)
            self.leases = PostgresLeases(self._pool, self._in_time)
            if replica_url:
                self.replica = Replica(
                    create_engine(standby_url(replica_url), pool_size), pool_size, self._pool, self.readers
                )
            self._leave_older_connections()
        self._renewed_at = float("-inf")
        self._writers = self.engine.execution_options(sqlite_begin="IMMEDIATE")
        self._write_lock = asyncio.Lock()

    def read(self, *, may_be_old: bool = False) -> "Read":
        """Start a unit of statements that change nothing; each sees what is committed when it runs.

        With `may_be_old` they run on the replica, if there is one, and see what was committed some seconds ago.
        """
        return Read(self, self.replica if may_be_old else None)

    def for_another_loop(self) -> "Storage":
        """Return a storage with a connection of its own, for the event loop of another thread."""
        return Storage(self._urls[0], 1, self._urls[1])

    @contextlib.asynccontextmanager
    async def write(self) -> AsyncIterator[AsyncSession]:
        """Start a transaction; commit it at the end of the block, roll it back if anything is raised."""
        with self._in_time() as seconds:
            async with (
                self._may_write(seconds) as left,
                AsyncSession(self._engine_for(left), expire_on_commit=False) as session,
                session.begin(),
            ):
                yield session
                for work in session.info.pop(_AT_THE_END, []):
                    await work(session)

    async def commit(self, steps: list[Executions], within: float = math.inf) -> None:
        """Commit prepared statements in one transaction within `within` seconds; they are durable on return."""
        with self._in_time() as seconds:
            async with self._may_write(max(0.0, min(seconds, within))) as left:
                await self._writer.commit(steps, left)

    async def transact(self, work: Work[Result]) -> Result:
        """Call `work` in a transaction of prepared statements that it reads and changes by, for what must be cheap."""
        with self._in_time() as seconds:
            async with self._may_write(seconds) as left:
                return await self._writer.transact(work, left)

    async def empty_log(self) -> bool:
        """Remove what was deleted from SQLite's log, too; return False if a reader still needs the log."""
        if not isinstance(self._writer, SqliteWriter):
            return True
        with self._in_time() as seconds:
            async with self._may_write(seconds) as left:
                return await self._writer.empty_log(min(left, _CHECKPOINT_SECONDS))

    @contextlib.contextmanager
    def _in_time(self) -> Iterator[float]:
        """Yield the seconds that a unit may take."""
        request, started_at = current_request(), time.monotonic()
        seconds = min(BUSY_SECONDS, request.database_seconds)
        try:
            with self.raising_unavailable():
                yield seconds
            self.outage.worked(wrote=True)
        finally:
            request.database_seconds = _left(seconds, started_at)

    @contextlib.asynccontextmanager
    async def _may_write(self, seconds: float) -> AsyncIterator[float]:
        """Yield the seconds left to write in; on SQLite one writer at a time, because its file lock is not fair."""
        if not self.is_sqlite:
            async with asyncio.timeout(seconds):
                yield seconds
            return
        started_at = time.monotonic()
        async with asyncio.timeout(seconds):
            await self._write_lock.acquire()
        try:
            yield max(0.0, seconds - (time.monotonic() - started_at))
        finally:
            self._write_lock.release()

    @contextlib.contextmanager
    def raising_unavailable(self) -> Iterator[None]:
        """Raise the result of `as_unavailable` in place of the error."""
        started_at = time.monotonic()
        try:
            yield
        except Exception as error:
            if (unavailable := self.as_unavailable(error, started_at)) is not None:
                raise unavailable from error
            raise

    def as_unavailable(self, error: Exception, started_at: float) -> ServiceError | None:
        """Return what to raise for an error of a unit; None for a defect. `started_at` is monotonic time."""
        if (unavailable := as_unavailable(error)) is not None:
            self.outage.failed(error, started_at)
            if sqlstate(error) == READ_ONLY:
                self._renew_connections()
        return unavailable

    async def is_writable(self) -> bool:
        """Return whether the server accepts writes; if not, open new connections, which may reach another server."""
        # After a write that failed, such as on a full disk, it is a small write that decides.
        if self.outage.is_for_writing and not await self._has_written():
            return False
        if self.is_sqlite:
            return self._has_its_file()
        async with self.engine.connect() as connection:
            is_writable = bool((await connection.execute(_IS_WRITABLE)).scalar_one())
        if is_writable:
            self.outage.worked(wrote=True)
        else:
            self._renew_connections()
        return is_writable

    def _has_its_file(self) -> bool:
        """Return whether SQLite's file is still in its folder. Writes to a deleted one succeed and are lost."""
        if self._file_number in (None, _number_of_file(self.engine.url.database)):
            return True
        log.error("database lost: its file %s was deleted or replaced; restart the service", self.engine.url.database)
        return False

    async def _has_written(self) -> bool:
        """Store something without meaning. SQLite does not write what a row already has."""
        small = "UPDATE alembic_version SET version_num = version_num"
        if self.is_sqlite:
            small = f"PRAGMA user_version = {time.time_ns() & 0xFFFF}"
        try:
            async with self.write() as session:
                await session.execute(text(small))
        except ServiceError:
            return False
        return True

    async def has_standby(self) -> bool | None:
        """Return whether any standby is connected; None if the server confirms writes without one."""
        if self.is_sqlite:
            return None
        async with self.engine.connect() as connection:
            has_standby: bool | None = (await connection.execute(_HAS_STANDBY)).scalar_one()
        return has_standby

    def _renew_connections(self) -> None:
        """Replace all connections: after a failover, the same address or another host leads to the new primary."""
        now = time.monotonic()
        if now >= self._renewed_at + _RENEW_SECONDS:
            self._renewed_at = now
            self._pool.renew()

    def _leave_older_connections(self) -> None:
        """Replace connections of SQLAlchemy's pool that are older than the last renewal, at their next use."""

        @event.listens_for(self.engine.sync_engine, "connect")
        def note(_connection: object, record: ConnectionPoolEntry) -> None:
            record.info["made_at"] = time.monotonic()

        @event.listens_for(self.engine.sync_engine, "checkout")
        def compare(_connection: object, record: ConnectionPoolEntry, _proxy: object) -> None:
            if record.info["made_at"] < self._renewed_at:
                raise DisconnectionError

    def pools(self) -> dict[str, PoolUsage]:
        """Return how full the pools of connections are, by name."""
        writers = {"writing": lock_usage(self._write_lock) if self.is_sqlite else engine_usage(self.engine)}
        readers = self.readers.usage()
        if self.replica is not None:
            writers["replica"] = self.replica.usage()
        return writers if readers is None else {**writers, "reading": readers}

    def _engine_for(self, seconds: float) -> AsyncEngine:
        is_short = self.is_sqlite and seconds < BUSY_SECONDS - LAST_SECONDS
        return self._writers.execution_options(sqlite_wait_ms=int(seconds * 1000)) if is_short else self._writers

    def renew(self) -> None:
        """Give the following units of this request their full time again."""
        current_request().database_seconds = BUSY_SECONDS

    async def close(self) -> None:
        if self.replica is not None:
            await self.replica.close()
        await self.readers.close()
        await self._writer.close()
        await dispose(self.engine)


def _left(seconds: float, started_at: float) -> float:
    """Return the seconds of the next unit: the full time after a quick one, because the database works again."""
    took = time.monotonic() - started_at
    return BUSY_SECONDS if took < LAST_SECONDS else max(LAST_SECONDS, seconds - took)


class Read:
    """A unit of reads. It is a class because a context manager made of a generator costs as much as a query."""

    def __init__(self, storage: Storage, replica: Replica | None = None) -> None:
        self._storage, self._replica = storage, replica

    async def __aenter__(self) -> FastReader:
        self._started_at, self._request = time.monotonic(), current_request()
        self._unit = (self._replica or self._storage.readers).open(min(BUSY_SECONDS, self._request.database_seconds))
        try:
            return await self._unit.__aenter__()
        except Exception as error:
            self._end(error)
            raise

    async def __aexit__(self, *problem: Any) -> None:
        try:
            await self._unit.__aexit__(*problem)
        except Exception as error:
            self._end(error)
            raise
        self._end(problem[1])

    def _end(self, error: BaseException | None) -> None:
        storage = self._storage
        self._request.database_seconds = _left(min(BUSY_SECONDS, self._request.database_seconds), self._started_at)
        if error is None:
            if self._replica is None:
                storage.outage.worked(wrote=False)
        elif isinstance(error, Exception):
            unavailable = storage.as_unavailable(error, self._started_at)
            if unavailable is not None:
                raise unavailable from error
