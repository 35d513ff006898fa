"""Killed without warning: what was acknowledged is there, nothing is half done, and it is soon ready again (T6)."""

import asyncio
import concurrent.futures
import random
import signal
import sqlite3
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
import pytest
from served_process import ServedProcess, served_process
from wire import KEYS, POSTS, seeded, user_token

from effort import effort
from profilesvc.settings import Settings
from support import assert_ok

KILLS = effort(5, 20)
ROUNDS = effort(1, 50)
FREE = {1: "112", 2: "114"}  # a killed sync keeps its location's turn for a minute, so that each life takes another
NEW_KEY = {"name": "Crash", "business_id": 10, "assigned_location_id": "locations/112"}


@dataclass
class Acknowledged:
    """What callers were told is done, over all lives of the process."""

    keys: dict[str, str] = field(default_factory=dict)
    revoked: set[str] = field(default_factory=set)
    heartbeats: int = 0
    syncs: dict[str, tuple[str, str]] = field(default_factory=dict)
    posts: set[str] = field(default_factory=set)
    tokens: list[str] = field(default_factory=list)


@dataclass
class Callers:
    """Everyone who writes at the same time, until the process is gone."""

    user: str
    seen: Acknowledged
    site: dict[str, Any]
    token: str
    location: str | None = "111"

    def until_killed(self, process: ServedProcess, after: float) -> None:
        """Run all callers, kill the process a while after each was answered once, and wait for the callers."""
        work = [self._make_and_revoke_keys, self._send_heartbeats, self._post, self._get_tokens]
        if self.location is not None:
            work.append(self._sync)
        stopped, began = threading.Event(), [threading.Event() for _ in work]
        with concurrent.futures.ThreadPoolExecutor(len(work)) as pool:
            running = [
                pool.submit(self._repeat, process, step, stopped, once) for step, once in zip(work, began, strict=True)
            ]
            all_answered = all(once.wait(20) for once in began)
            time.sleep(after)
            process.signal(signal.SIGKILL)
            stopped.set()
        process.end()
        for caller in running:
            caller.result()
        assert all_answered

    def _repeat(
        self, process: ServedProcess, step: Callable[..., None], stopped: threading.Event, once: threading.Event
    ) -> None:
        with process.client(self.user) as user, process.client(self.token) as site:
            while not stopped.is_set():
                try:
                    step(user, site)
                except httpx.TransportError:
                    return  # killed: whether that request was carried out is anyone's guess
                once.set()

    def _make_and_revoke_keys(self, user: httpx.Client, _site: httpx.Client) -> None:
        key = assert_ok(user.post(KEYS, json=NEW_KEY), 201)
        self.seen.keys[key["client_id"]] = key["client_secret"]
        if len(self.seen.keys) - len(self.seen.revoked) > 8:
            oldest = next(client_id for client_id in self.seen.keys if client_id not in self.seen.revoked)
            if user.delete(f"{KEYS}/{oldest}").is_success:
                self.seen.revoked.add(oldest)

    def _send_heartbeats(self, _user: httpx.Client, site: httpx.Client) -> None:
        number = self.seen.heartbeats + 1
        assert_ok(site.post("/api/v1/api-keys/heartbeat", json={"wp_version": str(number)}))
        self.seen.heartbeats = number

    def _sync(self, user: httpx.Client, _site: httpx.Client) -> None:
        value = f"sync-{len(self.seen.syncs)}-{random.random()}"
        body, headers = {"title": value}, {"Idempotency-Key": value}
        response = user.post(f"/api/v1/sync/{self.location}", json=body, headers=headers)
        self.seen.syncs[value] = (self.location, assert_ok(response)["syncId"])

    def _post(self, user: httpx.Client, _site: httpx.Client) -> None:
        self.seen.posts.add(assert_ok(user.post(POSTS, json={"summary": "Crash"}), 201)["name"])

    def _get_tokens(self, user: httpx.Client, _site: httpx.Client) -> None:
        grant = {"grant_type": "client_credentials"} | {n: self.site[n] for n in ("client_id", "client_secret")}
        self.seen.tokens.append(assert_ok(user.post("/api/v1/auth/token", json=grant))["access_token"])


def all_posts(user: httpx.Client) -> set[str]:
    """The names of all posts, page by page."""
    names: set[str] = set()
    token = ""
    while True:
        page = assert_ok(user.get(f"{POSTS}&pageSize=100&pageToken={token}"))
        names |= {post["name"] for post in page["localPosts"]}
        token = page["nextPageToken"]
        if not token:
            return names


def all_syncs(user: httpx.Client, location: str) -> set[str]:
    """The ids of all syncs of a location, page by page."""
    found: set[str] = set()
    for page in range(1, 100):
        entries = assert_ok(user.get(f"/api/v1/sync/history/{location}?limit=100&page={page}"))["history"]
        if not entries:
            break
        found |= {entry["syncId"] for entry in entries}
    return found


def assert_kept(process: ServedProcess, callers: Callers) -> None:
    """Everything that was acknowledged is there, and works."""
    seen = callers.seen
    with process.client(callers.user) as user:
        listed = assert_ok(user.get(f"{KEYS}?include_revoked=true"))["credentials"]
        states = {key["client_id"]: key["status"] for key in listed}
        assert set(seen.keys) <= set(states)
        assert {states[client_id] for client_id in seen.revoked} <= {"revoked"}
        status = assert_ok(user.get(f"/api/v1/api-keys/{callers.site['client_id']}/status"))
        assert seen.heartbeats <= int(status["wp_version"] or 0) <= seen.heartbeats + 1
        assert seen.posts <= all_posts(user)
        for location in {location for location, _ in seen.syncs.values()}:
            assert {made for where, made in seen.syncs.values() if where == location} <= all_syncs(user, location)
        for value, (location, made) in list(seen.syncs.items())[-3:]:
            again = user.post(f"/api/v1/sync/{location}", json={"title": value}, headers={"Idempotency-Key": value})
            assert (assert_ok(again)["syncId"], again.headers["idempotency-replayed"]) == (made, "true")
        for client_id in list(seen.keys)[-5:]:
            grant = {"grant_type": "client_credentials", "client_id": client_id, "client_secret": seen.keys[client_id]}
            expected = {401} if states[client_id] == "revoked" else {200}
            assert user.post("/api/v1/auth/token", json=grant).status_code in expected
    for token in seen.tokens[-5:]:
        with process.client(token) as site:
            assert_ok(site.get(POSTS))


def assert_sound(settings: Settings) -> None:
    """Both files pass SQLite's own checks."""
    for name in ("profilesvc.db", "emulator.db"):
        connection = sqlite3.connect(settings.data_dir / name)
        assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        assert connection.execute("PRAGMA foreign_key_check").fetchall() == []
        connection.close()


@pytest.fixture
def settings(sqlite_template: Path, tmp_path: Path) -> Settings:
    return seeded(sqlite_template, tmp_path)


@pytest.mark.fuzz
@pytest.mark.parametrize("seed", range(ROUNDS))
def test_a_kill_loses_nothing_that_was_acknowledged(settings: Settings, seed: int) -> None:
    user, chance = asyncio.run(user_token(settings)), random.Random(seed)
    with served_process(settings) as process:
        with process.client(user) as http:
            site = assert_ok(http.post(KEYS, json={**NEW_KEY, "assigned_location_id": "locations/111"}), 201)
            grant = {"grant_type": "client_credentials"} | {n: site[n] for n in ("client_id", "client_secret")}
            token = assert_ok(http.post("/api/v1/auth/token", json=grant))["access_token"]
            assert_ok(http.patch("/api/v1/external-business/locations/112/sync", json={"syncEnabled": True}))
        callers = Callers(user, Acknowledged(), site, token)
        callers.until_killed(process, chance.random())
    for life in range(1, KILLS + 1):
        with served_process(settings) as process:
            with process.client(user) as http:
                assert http.get("/readyz").is_success
            assert_kept(process, callers)
            assert_sound(settings)
            if life < KILLS:
                callers.location = FREE.get(life)
                callers.until_killed(process, chance.random())
    seen = callers.seen
    counts = [len(seen.keys), seen.heartbeats, len(seen.syncs), len(seen.posts), len(seen.tokens)]
    assert min(counts) > 0, counts
