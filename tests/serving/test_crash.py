"""Killed without warning: what was acknowledged is there, nothing is half done, and it is soon ready again."""

import asyncio
import concurrent.futures
import random
import signal
import sqlite3
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path

import httpx
import pytest

from profilesvc.bootstrap import Runtime, open_services
from profilesvc.operations import operator
from profilesvc.services import tokens
from profilesvc.settings import Settings
from support.api import ALICE, BOB, assert_ok
from support.crash.plans import Plans
from support.crash.stories import Heartbeats, Holds, Keys, Posts, Refreshes, Story, Syncs, new_key, tokens_of
from support.effort import effort
from support.served_process import ServedProcess, Start, forked, served_process, started
from support.wire import seeded

pytestmark = pytest.mark.thorough

KILLS = effort(5, 20)
ROUNDS = effort(1, 50)
REPORT = Path(__file__).parents[2] / "build" / "crash.txt"


class Killing:
    """A service that is killed again and again under its callers."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self._tokens = asyncio.run(self._prepared())

    async def _prepared(self) -> dict[str, str]:
        """Users with tokens, and a plan for Alice that has as many posts as all lives make."""
        async with open_services(self.settings, Runtime()) as services:
            await operator.assign_plan(services, ALICE, "agency")
            return {email: await tokens.user_token(services, email) for email in (ALICE, BOB)}

    def begin(self, process: ServedProcess) -> None:
        """Make what the callers need."""
        with process.client(self._tokens[ALICE]) as user, process.client(self._tokens[BOB]) as bob:
            key = new_key(user, assigned_location_id="locations/111")
            pair = assert_ok(tokens_of(user, key["client_id"], key["client_secret"]))
            held = [new_key(user, assigned_location_id="locations/111") for _ in range(4)]
            tokens = [assert_ok(tokens_of(user, it["client_id"], it["client_secret"]))["access_token"] for it in held]
            self.plans = Plans(self.settings, bob)
        self.stories: list[Story] = [
            Keys(),
            Heartbeats(key["client_id"], pair["access_token"]),
            Posts(),
            Refreshes(pair["refresh_token"]),
            Holds([it["client_id"] for it in held], tokens),
            Syncs(),
        ]

    def until_killed(self, process: ServedProcess, after: float) -> None:
        """Run all callers, kill everything a while after each was answered once, and wait for the callers."""
        stopped, began = threading.Event(), [threading.Event() for _ in self.stories]
        with concurrent.futures.ThreadPoolExecutor(len(began)) as pool:
            running = [
                pool.submit(self._repeat, process, story, stopped, once)
                for story, once in zip(self.stories, began, strict=True)
            ]
            try:
                self.plans.begin()
                all_answered = all(once.wait(120) for once in began)
                time.sleep(after)
            finally:
                process.signal(signal.SIGKILL)
                self.plans.kill()
                stopped.set()
        process.end()
        for caller in running:
            caller.result()
        assert all_answered

    def _repeat(self, process: ServedProcess, story: Story, stopped: threading.Event, once: threading.Event) -> None:
        with process.client(self._tokens[ALICE]) as user:
            while not stopped.is_set():
                try:
                    story.step(user)
                except httpx.TransportError:
                    return  # killed: whether that request was carried out is anyone's guess
                once.set()

    @contextmanager
    def life(self, start: Start) -> Iterator[ServedProcess]:
        """The service, started on what the last one left: ready at once, sound, and knowing all that it has said."""
        with ExitStack() as stack:
            process = stack.enter_context(served_process(self.settings, start=start))
            user, bob = (stack.enter_context(process.client(self._tokens[email])) for email in (ALICE, BOB))
            assert user.get("/readyz").is_success
            for story in self.stories:
                story.check(user)
            self.plans.check(bob)
            assert_sound(self.settings)
            end_turns(self.settings)
            yield process

    def report(self) -> str:
        """How many writes of each kind were acknowledged, and are there."""
        return f"{KILLS} kills, none lost of {dict(self.acknowledged)}"

    @property
    def acknowledged(self) -> Counter[str]:
        """How many writes of each kind were acknowledged, and are there."""
        return Counter({type(story).__name__: story.acknowledged for story in (*self.stories, self.plans)})


def assert_sound(settings: Settings) -> None:
    """Both files pass SQLite's own checks."""
    for name in ("profilesvc.db", "emulator.db"):
        connection = sqlite3.connect(settings.data_dir / name)
        assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        assert connection.execute("PRAGMA foreign_key_check").fetchall() == []
        connection.close()


def end_turns(settings: Settings) -> None:
    """Let the minute be over for which a killed sync keeps its location's turn (D-87)."""
    with closing(sqlite3.connect(settings.data_dir / "profilesvc.db")) as connection, connection:
        connection.execute("UPDATE locations SET sync_lease_until = 0 WHERE sync_lease IS NOT NULL")


@pytest.fixture
def settings(sqlite_template: Path, tmp_path: Path) -> Settings:
    return seeded(sqlite_template, tmp_path)


@pytest.mark.fuzz
@pytest.mark.parametrize("seed", range(ROUNDS))
def test_a_kill_loses_nothing_that_was_acknowledged(settings: Settings, seed: int) -> None:
    chance, killing = random.Random(seed), Killing(settings)
    with served_process(settings, start=forked) as process:
        killing.begin(process)
        killing.until_killed(process, chance.random() / 2)
    for life in range(1, KILLS + 1):
        with killing.life(started if life == 1 else forked) as process:
            if life < KILLS:
                killing.until_killed(process, chance.random() / 2)
    assert min(killing.acknowledged.values()) > 0, killing.acknowledged
    REPORT.parent.mkdir(exist_ok=True)
    with REPORT.open("a", encoding="utf-8") as report:
        report.write(f"{killing.report()}\n")
