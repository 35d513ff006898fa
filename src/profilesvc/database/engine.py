"""The database: two units of work, `read()` and `write()`, and the same refusal whatever breaks underneath.

Reads are single statements, each at what is committed when it runs (`readers.py`); those of the hot paths are
prepared once (`prepared.py`).

SQLite (one process): WAL, synchronous=FULL, writers begin IMMEDIATE so that no update is lost (D-60), and queue
in the process rather than in the file lock. PostgreSQL: READ COMMITTED with conditional updates.
"""

import asyncio
import contextlib
import inspect
import math
import time
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any, Protocol

import asyncpg
from sqlalchemy import URL, Executable, Result, event, make_url, text
from sqlalchemy.exc import ArgumentError, DisconnectionError
from sqlalchemy.ext.asyncio import AsyncEngine, AsyncSession, create_async_engine

from profilesvc.database.advisory_locks import Alone, PostgresTurns, Turns
from profilesvc.database.drivers import Drivers
from profilesvc.database.outage import Outage
from profilesvc.database.pools import Pool, of_engine, of_turn
from profilesvc.database.postgres import BUSY_SECONDS, connect, connect_args
from profilesvc.database.private_files import make_private
from profilesvc.database.readers import FastReader, PostgresReaders, Readers, SqliteReader
from profilesvc.database.unavailable import READ_ONLY, refusal, sqlstate
from profilesvc.database.writers import Executions, PostgresWriter, SqliteWriter, Writer
from profilesvc.domain.errors import ServiceError
from profilesvc.domain.request import current

_BUSY_MS = int(BUSY_SECONDS * 1000)
LAST_SECONDS = 0.25
_RENEW_SECONDS = 1.0  # a server that stays read-only is not asked for new connections by every request
_OF_SQLALCHEMY = ("prepared_statement_cache_size", "prepared_statement_name_func")
# "on" in a standby, too; the privilege stands for those on all tables, and is NULL while there is no such table.
_IS_WRITABLE = text(
    "SELECT current_setting('transaction_read_only') = 'off' AND "
    "COALESCE(has_table_privilege(to_regclass('keys'), 'UPDATE'), true)"
)
_PRAGMAS = ("journal_mode=WAL", "synchronous=FULL", f"busy_timeout={_BUSY_MS}", "foreign_keys=ON")


def _connect_args(is_sqlite: bool, patient: bool = False) -> dict[str, Any]:
    if is_sqlite:
        return {"timeout": BUSY_SECONDS}
    return connect_args(patient=patient)


def _driver_args(engine: AsyncEngine) -> dict[str, Any]:
    """What SQLAlchemy passes to asyncpg.connect for this engine."""
    return {**engine.dialect.create_connect_args(engine.url)[1], **_connect_args(is_sqlite=False)}


def parsed_url(text: str) -> URL:
    """The URL of a database. ArgumentError, also for a parameter that asyncpg would refuse with a TypeError."""
    url = make_url(text)
    known = (*inspect.signature(asyncpg.connect).parameters, *_OF_SQLALCHEMY)
    for name in () if url.get_backend_name() == "sqlite" else url.query:
        if name not in known:
            hint = "; for TLS write ssl=require or ssl=verify-full" if name.startswith("ssl") else ""
            raise ArgumentError(f"{name} is not a parameter of the driver{hint}")
    return _with_a_primary(url)


def _with_a_primary(url: URL) -> URL:
    """Of several hosts connect to the one that takes writes, unless the URL asks for another."""
    hosts = url.query.get("host", ())
    if isinstance(hosts, str) or len(hosts) < 2 or "target_session_attrs" in url.query:
        return url
    return url.update_query_dict({"target_session_attrs": "read-write"})


def create_engine(url: str, pool_size: int, *, patient: bool = False) -> AsyncEngine:
    """The engine of either database; creates the folder of a SQLite file, and the file for its owner alone.

    `patient`: a statement may take as long as it takes, as a migration does.
    """
    parsed = parsed_url(url)
    is_sqlite = parsed.get_backend_name() == "sqlite"
    if is_sqlite and parsed.database:
        make_private(Path(parsed.database))  # signing keys are stored in it
    engine = create_async_engine(
        parsed,
        connect_args=_connect_args(is_sqlite, patient) | ({} if is_sqlite else {"async_creator_fn": connect}),
        hide_parameters=True,  # an error in the log must not tell what was stored
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
        options = connection.get_execution_options()
        wait = options.get("sqlite_wait_ms", _BUSY_MS)
        if connection.info.get("wait_ms", _BUSY_MS) != wait:
            connection.exec_driver_sql(f"PRAGMA busy_timeout={wait}")
            connection.info["wait_ms"] = wait
        connection.exec_driver_sql(f"BEGIN {options.get('sqlite_begin', 'DEFERRED')}")


class Executor(Protocol):
    """What a query needs of a unit of work: a session, a connection, or a reader."""

    async def execute(self, statement: Executable, parameters: Any = None, /) -> Result[Any]: ...


class Storage:
    """Units of work over one database. Never await the provider inside them.

    A unit takes 4.5 s at most, waiting included. What a slow one took is taken from those that follow it in the same
    request, down to a quarter of a second for tidying up, so that the request as a whole stays within 6 s (A104).
    """

    def __init__(self, url: str, pool_size: int = 10) -> None:
        self.engine = create_engine(url, pool_size)
        self.is_sqlite = self.engine.dialect.name == "sqlite"
        self.dialect = self.engine.dialect.name
        self.outage = Outage()
        self.turns: Turns
        self.readers: Readers
        self._writer: Writer
        if self.is_sqlite:
            path = self.engine.url.database or ""
            self.readers, self._writer = SqliteReader(path), SqliteWriter(path, _PRAGMAS)
            self.turns = Alone()
        else:
            arguments = _driver_args(self.engine)
            self._drivers = Drivers(arguments, pool_size)
            self.readers, self._writer = PostgresReaders(self.engine, self._drivers), PostgresWriter(self._drivers)
            self.turns = PostgresTurns(arguments)
            self._leave_older_connections()
        self._renewed_at = float("-inf")
        self._writers = self.engine.execution_options(sqlite_begin="IMMEDIATE")
        self._turn = asyncio.Lock()

    def read(self) -> "Reading":
        """Statements that look and change nothing, each at what is committed when it runs."""
        return Reading(self)

    @contextlib.asynccontextmanager
    async def write(self) -> AsyncIterator[AsyncSession]:
        """One transaction: committed on leaving, rolled back when anything is raised."""
        with self._in_time() as seconds:
            async with (
                self._my_turn(seconds) as left,
                AsyncSession(self._engine_for(left), expire_on_commit=False) as session,
                session.begin(),
            ):
                yield session

    async def commit(self, steps: list[Executions], within: float = math.inf) -> None:
        """One transaction of prepared statements; durable on return. Given up after `within` seconds at the latest."""
        with self._in_time() as seconds:
            async with self._my_turn(max(0.0, min(seconds, within))) as left:
                await self._writer.commit(steps, left)

    @contextlib.contextmanager
    def _in_time(self) -> Iterator[float]:
        """The seconds that a unit has."""
        request, begun = current(), time.monotonic()
        seconds = min(BUSY_SECONDS, request.database_seconds)
        try:
            with self.refusing():
                yield seconds
            self.outage.worked(wrote=True)
        finally:
            request.database_seconds = _left(seconds, begun)

    @contextlib.asynccontextmanager
    async def _my_turn(self, seconds: float) -> AsyncIterator[float]:
        """The seconds to write in. On SQLite the file's lock is waited for as long as the wait for the turn leaves."""
        if not self.is_sqlite:
            async with asyncio.timeout(seconds):
                yield seconds
            return
        begun = time.monotonic()
        async with asyncio.timeout(seconds):
            await self._turn.acquire()
        try:
            yield max(0.0, seconds - (time.monotonic() - begun))
        finally:
            self._turn.release()

    @contextlib.contextmanager
    def refusing(self) -> Iterator[None]:
        """Raise `refused` instead of what it is for."""
        begun = time.monotonic()
        try:
            yield
        except Exception as error:
            if (refused := self.refused(error, begun)) is not None:
                raise refused from error
            raise

    def refused(self, error: Exception, begun: float) -> ServiceError | None:
        """The refusal for what a unit that began at `begun` (monotonic) has raised; None for a defect."""
        if (refused := refusal(error)) is not None:
            self.outage.failed(error, begun)
            if sqlstate(error) == READ_ONLY:
                self._renew_connections()
        return refused

    async def is_writable(self) -> bool:
        """Whether the server takes writes; if it does not, the next connections may find another that does."""
        if self.is_sqlite:
            return True
        async with self.engine.connect() as connection:
            is_writable = bool((await connection.execute(_IS_WRITABLE)).scalar_one())
        if is_writable:
            self.outage.worked(wrote=True)
        else:
            self._renew_connections()
        return is_writable

    def _renew_connections(self) -> None:
        """Use no connection again: after a switch-over the address leads, or another host is, the new primary."""
        now = time.monotonic()
        if now >= self._renewed_at + _RENEW_SECONDS:
            self._renewed_at = now
            self._drivers.renew()
            self.turns.renew()

    def _leave_older_connections(self) -> None:
        """The same for the connections of SQLAlchemy's pool, when one is next asked for."""

        @event.listens_for(self.engine.sync_engine, "connect")
        def note(_connection: Any, record: Any) -> None:
            record.info["made_at"] = time.monotonic()

        @event.listens_for(self.engine.sync_engine, "checkout")
        def compare(_connection: Any, record: Any, _proxy: Any) -> None:
            if record.info["made_at"] < self._renewed_at:
                raise DisconnectionError

    def pools(self) -> dict[str, Pool]:
        """How full what units are made of is, by name."""
        writers = {"writing": of_turn(self._turn) if self.is_sqlite else of_engine(self.engine)}
        readers = self.readers.standing()
        return writers if readers is None else {**writers, "reading": readers}

    def _engine_for(self, seconds: float) -> AsyncEngine:
        is_short = self.is_sqlite and seconds < BUSY_SECONDS - LAST_SECONDS
        return self._writers.execution_options(sqlite_wait_ms=int(seconds * 1000)) if is_short else self._writers

    def renew(self) -> None:
        """Give the units that follow in this request their full time again."""
        current().database_seconds = BUSY_SECONDS

    async def close(self) -> None:
        """Give the connections back."""
        await self.turns.close()
        await self.readers.close()
        await self._writer.close()
        await self.engine.dispose()


def _left(seconds: float, begun: float) -> float:
    """What the next unit has after one that began with so much; a quick one shows that the database is well again."""
    took = time.monotonic() - begun
    return BUSY_SECONDS if took < LAST_SECONDS else max(LAST_SECONDS, seconds - took)


class Reading:
    """A unit of reading. A request has several: context managers made of generators would cost as much as a query."""

    def __init__(self, storage: Storage) -> None:
        self._storage = storage

    async def __aenter__(self) -> FastReader:
        self._begun, self._request = time.monotonic(), current()
        self._unit = self._storage.readers.open(min(BUSY_SECONDS, self._request.database_seconds))
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
        self._request.database_seconds = _left(min(BUSY_SECONDS, self._request.database_seconds), self._begun)
        if error is None:
            storage.outage.worked(wrote=False)
        elif isinstance(error, Exception) and (refused := storage.refused(error, self._begun)) is not None:
            raise refused from error
