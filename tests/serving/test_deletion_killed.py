"""`users delete` that is killed in the middle; the next round deletes the rest."""

import asyncio
import os
import signal
import sqlite3
import subprocess
import sys
from pathlib import Path

from benchmarks import generate
from benchmarks.generate import Amounts

from profilesvc.bootstrap import Runtime, open_services
from profilesvc.domain.time import ShiftedClock
from profilesvc.services.accounts import deletion
from profilesvc.settings import Settings
from profilesvc.storage.accounts import deletions
from support.program import environment
from support.waiting import until

SITES = 2_000


async def _generated(settings: Settings) -> None:
    async with open_services(settings, Runtime(), provider=False) as services:
        await generate.load(services, Amounts(SITES, 20_000, 20_000, sites_per_user=SITES), seed=1)


async def _left(settings: Settings) -> tuple[int, int, bool]:
    """The rows that the killed command left, those after two rounds, and whether the deletion is finished."""
    async with open_services(settings, Runtime(clock := ShiftedClock()), provider=False) as services:
        async with services.storage.read() as session:
            before = sum((await deletions.rows_by_table(session, 1)).values())
        clock.advance(days=2)  # the last message waits for a day at most
        for _ in range(2):
            await deletion.run_once(services)
        async with services.storage.read() as session:
            after, done = sum((await deletions.rows_by_table(session, 1)).values()), await deletions.find(session, 1)
        return before, after, done is not None and done.finished_at is not None


def test_a_killed_deletion_goes_on(tmp_path: Path) -> None:
    settings = Settings(_env_file=None, data_dir=tmp_path, base_url="http://127.0.0.1:8000")
    asyncio.run(_generated(settings))
    with sqlite3.connect(tmp_path / "profilesvc.db") as database:
        (email,), (posts,) = (database.execute(sql).fetchone() for sql in ("SELECT email FROM users", _POSTS))
    command = [sys.executable, "-m", "profilesvc", "users", "delete", email, "--yes"]
    settings_of = environment() | {"PROFILESVC_DATA_DIR": str(tmp_path)}
    process = subprocess.Popen(command, env=settings_of, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    until(lambda: posts != _count(tmp_path, _POSTS), "the first posts to be deleted", every=0.005)
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    before, after, is_finished = asyncio.run(_left(settings))
    assert before > 0, "the command was faster than the kill"
    assert (after, is_finished) == (0, True)


_POSTS = "SELECT count(*) FROM posts"


def _count(folder: Path, sql: str) -> int:
    with sqlite3.connect(folder / "profilesvc.db") as database:
        return int(database.execute(sql).fetchone()[0])
