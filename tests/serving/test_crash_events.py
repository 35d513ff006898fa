"""Processes that are killed while they sweep and deliver: each silent site has one event, one mail and one delivery."""

import asyncio
import itertools
import json
import random
import shutil
import signal
import time
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import asyncpg
import pytest
import time_machine
from standardwebhooks import Webhook

from conftest import Postgres
from profilesvc.domain.time import DAY, HOUR
from profilesvc.settings import Settings
from support.api import ALICE, BOB, CAROL, assert_ok
from support.crash.outbox import Arrived, outbox
from support.crash.steps import STEPS, choose, sweeping
from support.effort import effort
from support.served_process import ServedProcess
from support.waiting import until_async
from support.wire import user_token

pytestmark = [
    pytest.mark.thorough,
    pytest.mark.fuzz,
    pytest.mark.parametrize("database", [pytest.param("postgres", marks=pytest.mark.postgres)]),
]
KILLS = effort(12, 200)
GRACE = HOUR
OWNERS = {1: (ALICE, 10, "locations/111"), 2: (BOB, 20, "locations/211"), 3: (CAROL, 30, "locations/311")}
REPORT = Path(__file__).parents[2] / "build" / "crash.txt"
_FIRST_KEY = 10_000
_MOMENT, _PATIENCE, _SETTLED = 0.8, 20.0, 300.0
_KEY = """
INSERT INTO keys (owner_id, id, client_id, business_id, location_name, name, permissions, allowed_domains, created_at)
VALUES ($1::bigint, $2::bigint, 'svcid_' || $1 || '_' || $2, $3, $4, 'Crash', '', '[]', $5)
"""
_LAST = "INSERT INTO connections (owner_id, key_id, last_heartbeat_at) VALUES ($1, $2, $3)"
_WATCH = "INSERT INTO watches (owner_id, key_id, state, changed_at, grace_seconds) VALUES ($1, $2, 'idle', $3, $4)"


class Killing:
    """Processes on one database that are killed in turn while sites fall silent."""

    def __init__(self, postgres: Postgres, settings: list[Settings], arrived: Arrived, seed: int) -> None:
        self._postgres, self._settings, self._arrived = postgres, settings, arrived
        self.chance, self.places = random.Random(seed), Counter[str]()
        self.last: dict[str, int] = {}  # the last heartbeat of each key
        self.secrets: dict[int, str] = {}
        self._processes: list[ServedProcess] = []
        self._start = sweeping(
            {
                "PROFILESVC_DATABASE_URL": settings[0].database_url,
                "PROFILESVC_WEBHOOKS__ALLOW_PRIVATE": "true",
                "PROFILESVC_MAIL__URL": arrived.mail_url,
            }
        )

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Start the processes and subscribe the owners; end the processes after the block."""
        try:
            for settings in self._settings:
                self._processes.append(ServedProcess(settings, start=self._start))
            for owner_id in OWNERS:
                await self._subscribe(owner_id)
            yield
        finally:
            for process in self._processes:
                process.signal(signal.SIGKILL)
                process.end()

    async def _subscribe(self, owner_id: int) -> None:
        token = await user_token(self._settings[0], OWNERS[owner_id][0])
        with self._processes[0].client(token) as user:
            body = {"url": f"{self._arrived.webhook_url}/{owner_id}", "types": ["connection.offline"]}
            self.secrets[owner_id] = assert_ok(user.post("/api/v1/webhooks", json=body), 201)["secret"]
            assert_ok(user.post("/api/v1/alerts", json={"immediate": ["connection.offline"], "daily": []}), 201)

    async def fall_silent(self, connection: asyncpg.Connection, sites: int = 3) -> None:
        """Add sites of each owner whose 24 hours and grace end in a moment."""
        for owner_id, (_, business, location) in OWNERS.items():
            for _ in range(sites):
                number, now = _FIRST_KEY + len(self.last), round(time.time() * 1000)
                last = now - DAY - GRACE + self.chance.randrange(300)
                async with connection.transaction():
                    await connection.execute(_KEY, owner_id, number, business, location, now - 40 * DAY)
                    await connection.execute(_LAST, owner_id, number, last)
                    await connection.execute(_WATCH, owner_id, number, last, GRACE // 1000)
                self.last[f"svcid_{owner_id}_{number}"] = last

    async def kill(self, number: int, step: str | None) -> None:
        """Have sites fall silent; kill a process at a step, or at any moment of that work, and start another."""
        settings, process = self._settings[number], self._processes[number]
        choose(settings, step)
        patience = self.chance.random() * _MOMENT if step is None else _PATIENCE / len(self._processes)
        connection = await self._postgres.connect("work")
        await self.fall_silent(connection)
        await connection.close()
        has_ended = await asyncio.to_thread(process.ended, patience)
        self.places[step if has_ended and step is not None else "any moment"] += 1
        process.signal(signal.SIGKILL)
        process.end()
        choose(settings, None)
        assert process.returncode == -signal.SIGKILL
        self._processes[number] = ServedProcess(settings, start=self._start)

    async def settled(self) -> list[Any]:
        """Wait until all is delivered, and return the events."""
        connection = await self._postgres.connect("work")

        async def delivered() -> list[Any]:
            events = await connection.fetch("SELECT * FROM events WHERE type = 'connection.offline'")
            found = [each for each in events if json.loads(each["data"])["client_id"] in self.last]
            pending = await connection.fetchval("SELECT count(*) FROM deliveries WHERE state = 'pending'")
            return [] if pending or len(found) < len(self.last) else found

        found: list[Any] = await until_async(delivered, "the delivery of each event", _SETTLED, every=0.1)
        states = await connection.fetch("SELECT DISTINCT state FROM deliveries")
        await connection.close()
        assert {each["state"] for each in states} == {"delivered"}
        return found


def check_events(killing: Killing, events: list[Any]) -> dict[str, str]:
    """Each key has one event, and none before its time. Return the key of each event."""
    keys: dict[str, str] = {}
    for event in events:
        client_id = json.loads(event["data"])["client_id"]
        keys[f"evt_{event['owner_id']}_{event['id']}"] = client_id
        assert event["created_at"] >= killing.last[client_id] + DAY + GRACE
    assert Counter(keys.values()) == Counter(list(killing.last))
    return keys


def check_deliveries(killing: Killing, arrived: Arrived, keys: dict[str, str]) -> int:
    """Each event was delivered, signed, with one id. Return how many requests were repeats."""
    documents: dict[str, bytes] = {}
    for request in arrived.requests:
        owner_id = int(request.head.split()[1].strip("/"))
        with time_machine.travel(int(request.headers["webhook-timestamp"]), tick=False):  # the run takes many minutes
            document = Webhook(killing.secrets[owner_id]).verify(request.body, request.headers)
        number = request.headers["webhook-id"]
        assert document["id"] == number
        assert document["data"]["client_id"] == keys[number]
        assert documents.setdefault(number, request.body) == request.body
    assert documents.keys() == keys.keys()
    return len(arrived.requests) - len(documents)


def check_mails(arrived: Arrived, keys: dict[str, str]) -> int:
    """Each key had one mail; a repeat has the same Message-ID. Return how many were repeats."""
    named: dict[str, str] = {}
    for mail in arrived.mails:
        client_id = mail["References"].partition(".")[2].partition("@")[0]
        assert named.setdefault(mail["Message-ID"], client_id) == client_id
    assert Counter(named.values()) == Counter(keys.values())
    return len(arrived.mails) - len(named)


@pytest.fixture
def each_settings(settings: Settings, tmp_path: Path, workers: int) -> list[Settings]:
    """Settings of each process, with a folder of its own."""
    folders = [tmp_path / f"process-{number}" for number in range(workers)]
    for folder in folders:
        folder.mkdir()
        for file in tmp_path.glob("*.db*"):
            shutil.copy(file, folder)
    return [settings.model_copy(update={"data_dir": folder}) for folder in folders]


@pytest.mark.parametrize("workers", [1, 4])
async def test_a_kill_costs_a_repeat_and_never_an_event_a_mail_or_a_delivery(
    postgres: Postgres, each_settings: list[Settings], workers: int
) -> None:
    with outbox() as arrived:
        killing = Killing(postgres, each_settings, arrived, seed=workers)
        async with killing.running():
            for step in itertools.islice(itertools.cycle((*STEPS, None, None, None)), KILLS):
                await killing.kill(killing.chance.randrange(workers), step)
            events = await killing.settled()
        keys = check_events(killing, events)
        repeats = check_deliveries(killing, arrived, keys), check_mails(arrived, keys)
    if workers == 1:
        assert set(STEPS) <= set(killing.places), killing.places
    assert max(repeats) <= 4 * KILLS, "a killed process sends at most four requests to an endpoint"
    report = f"{workers} processes, {KILLS} kills, {len(keys)} silent sites, repeats of (webhooks, mails): {repeats}\n"
    REPORT.parent.mkdir(exist_ok=True)
    with REPORT.open("a", encoding="utf-8") as file:
        file.write(report + "".join(f"  {count:4} {place}\n" for place, count in sorted(killing.places.items())))


@pytest.mark.parametrize("workers", [1, 4])
async def test_without_a_kill_each_silent_site_has_exactly_one(
    postgres: Postgres, each_settings: list[Settings], workers: int
) -> None:
    with outbox() as arrived:
        killing = Killing(postgres, each_settings, arrived, seed=workers)
        async with killing.running():
            connection = await postgres.connect("work")
            await killing.fall_silent(connection, sites=effort(10, 300))
            await connection.close()
            keys = check_events(killing, await killing.settled())
        assert (check_deliveries(killing, arrived, keys), check_mails(arrived, keys)) == (0, 0)
