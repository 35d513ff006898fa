"""A disk on which nothing can be stored: writes get 503, the process is not ready, and the log names the disk."""

import contextlib
import logging
import resource
import sqlite3
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
from sqlalchemy import text

from profilesvc.database import outage
from profilesvc.database.engine import Storage
from profilesvc.database.unavailable import DISK_FULL, as_unavailable, is_for_writing, is_lost, reason
from profilesvc.domain.errors import ServiceError

ADD = text("INSERT INTO texts VALUES (:content)")
MUCH = {"content": "x" * 100_000}


@pytest.fixture
async def storage(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Storage]:
    monkeypatch.setattr(outage, "SETTLED_SECONDS", 0)
    made = Storage(f"sqlite+aiosqlite:///{tmp_path}/some.db")
    async with made.write() as session:
        for statement in ("CREATE TABLE alembic_version (version_num TEXT)", "CREATE TABLE texts (content TEXT)"):
            await session.execute(text(statement))
        await session.execute(text("INSERT INTO alembic_version VALUES ('0001')"))
    yield made
    await made.close()


@contextlib.contextmanager
def no_file_can_grow() -> Iterator[None]:
    """Make the system reject each write at the end of a file of this process, as it does on a broken disk."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


async def test_is_not_writable_until_a_write_succeeds(storage: Storage, caplog: pytest.LogCaptureFixture) -> None:
    assert await storage.is_writable()
    with no_file_can_grow(), caplog.at_level(logging.WARNING, "profilesvc"):
        with pytest.raises(ServiceError):
            async with storage.write() as session:
                await session.execute(ADD, MUCH)
        assert not await storage.is_writable()
        async with storage.read() as session:
            assert (await session.execute(text("SELECT count(*) FROM texts"))).scalar_one() == 0
        assert not await storage.is_writable()
    assert "database lost: disk I/O error" in caplog.messages
    assert not any("busy" in message for message in caplog.messages)
    assert await storage.is_writable()
    async with storage.write() as session:
        await session.execute(ADD, MUCH)


def test_a_full_disk_is_named() -> None:
    with sqlite3.connect(":memory:") as connection:
        connection.execute("CREATE TABLE texts (content TEXT)")
        connection.execute("PRAGMA max_page_count = 2")
        with pytest.raises(sqlite3.OperationalError) as full:
            connection.execute("INSERT INTO texts VALUES (?)", [MUCH["content"]])
    connection.close()
    error = full.value
    assert (reason(error), is_lost(error), is_for_writing(error)) == (DISK_FULL, True, True)
    assert as_unavailable(error) is not None


def test_a_locked_file_is_busy_and_not_lost(tmp_path: Path) -> None:
    first, second = (sqlite3.connect(tmp_path / "some.db", isolation_level=None, timeout=0) for _ in range(2))
    first.execute("BEGIN IMMEDIATE")
    with pytest.raises(sqlite3.OperationalError) as locked:
        second.execute("BEGIN IMMEDIATE")
    assert (is_lost(locked.value), is_for_writing(locked.value)) == (False, False)
    first.close()
    second.close()


async def test_a_deleted_or_replaced_file_is_not_writable(tmp_path: Path) -> None:
    file = tmp_path / "profilesvc.db"
    storage = Storage(f"sqlite+aiosqlite:///{file}")
    try:
        assert await storage.is_writable()
        file.rename(tmp_path / "moved")
        assert not await storage.is_writable()
        file.write_bytes(b"")
        assert not await storage.is_writable()
        (tmp_path / "moved").replace(file)
        assert await storage.is_writable()
    finally:
        await storage.close()
