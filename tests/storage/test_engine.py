"""The units of work on both databases: nothing is lost, nothing is half done, an unavailable database is a 503."""

import asyncio
import gc
import sqlite3
import warnings
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, NamedTuple

import asyncpg
import pytest
import sqlalchemy.exc
from sqlalchemy import func, insert, select, text, update

from conftest import START
from profilesvc.contract.errors import SERVICE_UNAVAILABLE
from profilesvc.database.engine import Storage, create_engine
from profilesvc.database.statements import columns, record, records
from profilesvc.database.writers import Executions
from profilesvc.domain.errors import ServiceError
from profilesvc.emulator.embedded import EMULATOR_FILE
from profilesvc.emulator.store import Store
from profilesvc.settings import Settings
from profilesvc.storage.tables import businesses, users
from support.waiting import deadline


@pytest.fixture
async def storage(settings: Settings) -> AsyncIterator[Storage]:
    made = Storage(settings.effective_database_url, 10)
    yield made
    await made.close()


NAME = select(users.c.name).where(users.c.id == 1)


async def value(storage: Storage, statement: Any) -> Any:
    async with storage.read() as session:
        return (await session.execute(statement)).scalar_one()


class NamedUser(NamedTuple):
    name: str
    id: int


@pytest.mark.parametrize("order", [["name", "id"], ["id", "name"]])
async def test_a_record_has_each_column_in_the_field_of_its_name(storage: Storage, order: list[str]) -> None:
    query = select(*columns(users, order)).where(users.c.id == 1)
    async with storage.read() as session:
        found = await record(session, NamedUser, query)
        assert await records(session, NamedUser, query) == [found]
        assert found == NamedUser(await value(storage, NAME), 1)
        assert await record(session, NamedUser, query.where(users.c.id == 0)) is None


async def test_closing_waits_for_a_session_that_ends(settings: Settings) -> None:
    """A session that was cancelled may return its connection later, and then nothing would close it."""
    storage = Storage(settings.effective_database_url, 10)
    async with storage.write() as session:
        await session.execute(NAME)
        closing = asyncio.ensure_future(storage.close())
        await asyncio.sleep(0.05)
        assert not closing.done()
    await closing
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        del session, storage, closing
        gc.collect()
    assert [str(each.message) for each in found if each.category is ResourceWarning] == []


async def test_closing_does_not_wait_for_a_connection_that_is_never_returned(settings: Settings) -> None:
    storage = Storage(settings.effective_database_url, 10)
    async with storage.engine.connect() as connection:
        async with deadline(5, "the end of the storage"):
            await storage.close()
        await connection.invalidate()


async def test_a_commit_writes_everything_or_nothing(storage: Storage) -> None:
    place = "?" if storage.is_sqlite else "$1"
    rename = Executions(f"UPDATE users SET name = {place} WHERE id = 1", [["changed"]])
    broken = Executions(f"UPDATE users SET no_such_column = {place}", [["x"]])
    with pytest.raises((sqlite3.OperationalError, asyncpg.PostgresError)):
        await storage.commit([rename, broken])
    assert await value(storage, NAME) == "Alice Ito"
    await storage.commit([rename])
    assert await value(storage, NAME) == "changed"


async def test_a_commit_takes_turns_with_other_writers(storage: Storage) -> None:
    place = "?" if storage.is_sqlite else "$1"
    add = Executions(f"UPDATE users SET epoch = epoch + {place} WHERE id = 1", [[1], [1]])

    async def by_session() -> None:
        async with storage.write() as session:
            await session.execute(update(users).where(users.c.id == 1).values(epoch=users.c.epoch + 1))

    await asyncio.gather(*(each for _ in range(20) for each in (storage.commit([add]), by_session())))
    assert await value(storage, select(users.c.epoch).where(users.c.id == 1)) == 60


async def test_simultaneous_writes_lose_no_update(storage: Storage) -> None:
    """100 tasks read, add one and write: as statement and, on SQLite, as read-modify-write too (D-60)."""

    async def add_one() -> None:
        async with storage.write() as session:
            if storage.is_sqlite:  # BEGIN IMMEDIATE: what was read is still true when it is written
                epoch = (await session.execute(select(users.c.epoch).where(users.c.id == 1))).scalar_one()
                await session.execute(update(users).where(users.c.id == 1).values(epoch=epoch + 1))
            else:  # READ COMMITTED: conditional updates
                await session.execute(update(users).where(users.c.id == 1).values(epoch=users.c.epoch + 1))

    await asyncio.gather(*(add_one() for _ in range(100)))
    assert await value(storage, select(users.c.epoch).where(users.c.id == 1)) == 100


async def test_a_write_is_rolled_back_by_any_exception(storage: Storage) -> None:
    async def fail(error: BaseException) -> None:
        async with storage.write() as session:
            await session.execute(update(users).values(name="changed"))
            raise error

    for error in (ValueError("x"), ServiceError(SERVICE_UNAVAILABLE), asyncio.CancelledError()):
        with pytest.raises(type(error)):
            await fail(error)
    assert await value(storage, NAME) == "Alice Ito"


async def test_a_write_works_after_one_that_was_cancelled(storage: Storage) -> None:
    inside, forever = asyncio.Event(), asyncio.Event()

    async def hang() -> None:
        async with storage.write() as session:
            await session.execute(update(users).values(name="changed"))
            inside.set()
            await forever.wait()

    task = asyncio.create_task(hang())
    await inside.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    async with storage.write() as session:
        await session.execute(update(users).where(users.c.id == 2).values(name="Bob"))
    assert await value(storage, NAME) == "Alice Ito"
    assert await value(storage, select(users.c.name).where(users.c.id == 2)) == "Bob"


async def test_a_write_is_not_seen_before_its_end(storage: Storage) -> None:
    async with storage.write() as session:
        await session.execute(update(users).where(users.c.id == 1).values(name="changed"))
        assert await value(storage, NAME) == "Alice Ito"
    assert await value(storage, NAME) == "changed"


async def test_a_locked_or_busy_database_is_unavailable_within_six_seconds(
    storage: Storage, settings: Settings
) -> None:
    """Another process holds the lock; all connections are in use: 503, nothing written, no restart (A104)."""
    pooled = [] if storage.is_sqlite else [_refused_by_a_busy_pool(settings)]  # reads of SQLite need no pool
    async with deadline(6, "the refusals"):
        refusals = await asyncio.gather(_refused_by_a_lock(settings, storage), *pooled)
    for refusal in refusals:
        assert refusal.kind is SERVICE_UNAVAILABLE
        assert refusal.retry_after == 1
    assert await value(storage, NAME) == "Alice Ito"
    async with storage.write() as session:
        await session.execute(update(users).where(users.c.id == 1).values(name="changed"))
    assert await value(storage, NAME) == "changed"


async def test_a_database_that_cannot_be_opened_is_unavailable(tmp_path: Path, database: str) -> None:
    (tmp_path / "folder.db").mkdir()
    urls = {
        "sqlite": f"sqlite+aiosqlite:///{tmp_path}/folder.db",
        "postgres": "postgresql+asyncpg://postgres@127.0.0.1:1/nothing",
    }
    storage = Storage(urls[database])
    for unit in (storage.read, storage.write):
        with pytest.raises(ServiceError) as refusal:
            async with unit() as session:
                await session.execute(select(users.c.id))
        assert refusal.value.kind is SERVICE_UNAVAILABLE
    await storage.close()
    await asyncio.sleep(0.1)  # aiosqlite does not wait for the thread of a connection that could not be opened


async def test_a_connection_that_was_cut_is_replaced(storage: Storage, settings: Settings) -> None:
    if storage.is_sqlite:
        return  # a file has no connections to cut

    async def cut() -> None:
        async with storage.write() as session:
            pid = (await session.execute(text("SELECT pg_backend_pid()"))).scalar_one()
            other = Storage(settings.effective_database_url, 1)
            await value(other, text(f"SELECT pg_terminate_backend({pid})"))
            await other.close()
            await session.execute(update(users).values(name="changed"))

    with pytest.raises(ServiceError) as refusal:
        await cut()
    assert refusal.value.kind is SERVICE_UNAVAILABLE
    assert await value(storage, NAME) == "Alice Ito"


async def test_a_full_disk_is_unavailable(storage: Storage) -> None:
    if not storage.is_sqlite:
        return  # PostgreSQL says so with a code of class 53, which is the same branch as a lock's

    async def fill() -> None:
        async with storage.write() as session:
            pages = (await session.execute(text("PRAGMA page_count"))).scalar_one()
            await session.execute(text(f"PRAGMA max_page_count = {pages}"))
            await session.execute(insert(businesses).values(owner_id=1, name="x" * 10_000_000, created_at=START))

    with pytest.raises(ServiceError) as refusal:
        await fill()
    assert refusal.value.kind is SERVICE_UNAVAILABLE
    assert await value(storage, select(func.count()).select_from(businesses)) == 4


async def test_a_wrong_statement_stays_a_defect(storage: Storage) -> None:
    with pytest.raises(sqlalchemy.exc.DBAPIError, match="nonsense"):
        await value(storage, text("SELECT 1 FROM nonsense"))


async def _refused_by_a_lock(settings: Settings, storage: Storage) -> ServiceError:
    async with _lock(settings, storage):
        with pytest.raises(ServiceError) as refusal:
            async with storage.write() as session:
                await session.execute(update(users).where(users.c.id == 1).values(name="changed"))
    return refusal.value


async def _refused_by_a_busy_pool(settings: Settings) -> ServiceError:
    small = Storage(settings.effective_database_url, 1)
    async with small.engine.connect():  # not a unit, which would end by itself
        with pytest.raises(ServiceError) as refusal:
            await value(small, select(users.c.id).where(users.c.id == 1))
    assert await value(small, select(users.c.id).where(users.c.id == 1)) == 1
    await small.close()
    return refusal.value


@asynccontextmanager
async def _lock(settings: Settings, storage: Storage) -> AsyncIterator[None]:
    """A lock of another process: on the whole file, or on the row of user 1."""
    if storage.is_sqlite:
        file = sqlite3.connect(settings.data_dir / "profilesvc.db", isolation_level=None)
        file.execute("BEGIN IMMEDIATE")
        yield
        file.close()
        return
    other = Storage(settings.effective_database_url, 1)
    async with other.write() as session:
        await session.execute(select(users.c.id).where(users.c.id == 1).with_for_update())
        yield
    await other.close()


async def test_sqlite_runs_with_the_pragmas_that_durability_needs(storage: Storage) -> None:
    if not storage.is_sqlite:
        return
    for pragma, expected in [("journal_mode", "wal"), ("synchronous", 2), ("foreign_keys", 1), ("busy_timeout", 4500)]:
        async with storage.write() as session:
            assert (await session.execute(text(f"PRAGMA {pragma}"))).scalar_one() == expected


@pytest.mark.parametrize("name", ["a%20b", "50%2525", "really?", "a#b", "é b"])
async def test_sqlite_files_are_in_the_folder_that_is_set(tmp_path: Path, name: str) -> None:
    """Those of the service and of the emulator; a URL of a database has other meanings for some characters."""
    folder = tmp_path / name
    made = Storage(Settings(_env_file=None, base_url="http://x", data_dir=folder).effective_database_url)
    async with made.write() as session:
        await session.execute(text("CREATE TABLE things (name TEXT)"))
    await made.commit([Executions("INSERT INTO things VALUES (?)", [["one"]])])
    async with made.read() as reader:
        assert await reader.fetch("SELECT name FROM things", []) == [("one",)]
    await made.close()
    emulator = Store(folder / EMULATOR_FILE)
    await emulator.open(lambda _session: None)
    await emulator.close()
    assert _names(tmp_path) == {name}
    assert _names(folder) == {"profilesvc.db", EMULATOR_FILE}


def _names(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir()}


@pytest.mark.parametrize(
    ("query", "asked"),
    [
        ("host=a:1&host=b:2", "read-write"),
        ("host=a:1&host=b:2&target_session_attrs=any", "any"),
        ("host=a", None),
        ("", None),
    ],
)
async def test_of_several_hosts_the_one_that_accepts_writes_is_used(query: str, asked: str | None) -> None:
    engine = create_engine(f"postgresql+asyncpg://postgres@/work?{query}", 1)
    assert engine.dialect.create_connect_args(engine.url)[1].get("target_session_attrs") == asked
    await engine.dispose()
