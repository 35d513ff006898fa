"""How long a batch may take: what was refused must not be written after all."""

import asyncio
import contextlib
import sqlite3
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from profilesvc.database import batches
from profilesvc.database.batches import Batches
from profilesvc.database.postgres import BUSY_SECONDS
from profilesvc.database.writers import Executions, SqliteWriter
from profilesvc.domain.errors import ServiceError


class Slow:
    """A database whose commits take so many seconds, and fail when they are given less."""

    dialect = "sqlite"

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self.given: list[tuple[list[Any], float]] = []

    async def commit(self, steps: list[Any], within: float) -> None:
        self.given.append((steps, within))
        seconds = self.seconds
        await asyncio.sleep(min(seconds, within))
        if seconds > within:
            raise TimeoutError


@pytest.fixture(autouse=True)
def _short(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(batches, "BUSY_SECONDS", 0.4)


def refusals(outcomes: Sequence[Any]) -> list[bool]:
    return [isinstance(outcome, ServiceError) for outcome in outcomes]


def made(storage: Slow) -> Batches[int]:
    given: Any = storage
    return Batches(given, lambda _dialect, items: list(items))


async def test_a_batch_has_the_time_of_its_oldest_item(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(batches, "BUSY_SECONDS", 4)
    storage = Slow(0.2)
    work = made(storage)
    first = asyncio.ensure_future(work.add(1))
    await asyncio.sleep(0.05)
    others = [asyncio.ensure_future(work.add(2)), asyncio.ensure_future(work.add(3))]
    assert refusals(await asyncio.gather(first, *others, return_exceptions=True)) == [False, False, False]
    assert [steps for steps, _ in storage.given] == [[1], [2, 3]]
    assert storage.given[0][1] <= 4
    assert storage.given[1][1] <= 4 - 0.1, "it has waited for the first"


async def test_the_rejection_comes_after_the_batch_has_ended() -> None:
    storage = Slow(9)
    outcomes = await asyncio.gather(made(storage).add(1), return_exceptions=True)
    assert refusals(outcomes) == [True]
    assert len(storage.given) == 1, "and nothing goes on behind it"


async def test_an_item_with_no_time_left_is_rejected_and_does_not_shorten_the_batch() -> None:
    storage = Slow(9)
    work = made(storage)
    first = asyncio.ensure_future(work.add(1))
    await asyncio.sleep(0.05)
    storage.seconds = 0.01  # of the next commit
    early = asyncio.ensure_future(work.add(2))  # waits for the first one as long as it may wait at all
    await asyncio.sleep(0.25)
    late = asyncio.ensure_future(work.add(3))
    assert refusals(await asyncio.gather(first, early, late, return_exceptions=True)) == [True, True, False]
    assert [steps for steps, _ in storage.given] == [[1], [3]]


async def test_nothing_is_written_if_the_lock_of_the_file_comes_too_late(tmp_path: Path) -> None:
    with contextlib.closing(sqlite3.connect(tmp_path / "late.db", isolation_level=None)) as other:
        other.execute("CREATE TABLE beats (n)")
        writer = SqliteWriter(str(tmp_path / "late.db"), [])
        beat = [Executions("INSERT INTO beats VALUES (?)", [[1]])]
        with pytest.raises(TimeoutError):
            await writer.commit(beat, -0.01)
        assert other.execute("SELECT * FROM beats").fetchall() == []
        await writer.commit(beat, 9)
        assert other.execute("SELECT * FROM beats").fetchall() == [(1,)]
        await writer.close()


def test_the_time_of_a_unit_is_that_of_the_contract() -> None:
    assert BUSY_SECONDS + batches._GRACE_SECONDS < 6, "A104"
