"""An upgrade without a failed request: two servers behind one port, and a database that is migrated."""

import concurrent.futures
import itertools
import json
import shutil
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import httpx
import pytest

import profilesvc
from conftest import Postgres
from profilesvc.database import migrate
from profilesvc.fixtures import fixture_path
from profilesvc.storage.tables import metadata
from serving.balancer import Balancer
from support.program import Server, command, data
from support.wire import KEYS

pytestmark = [pytest.mark.thorough, pytest.mark.postgres]
SLOW_SECONDS = 6  # longer than any request may take
PAUSE_SECONDS = 0.04  # so that the callers leave time to the servers that start
MIGRATION = """
import sqlalchemy as sa
from alembic import op

revision, down_revision, branch_labels, depends_on = "{revision:04}", "{before:04}", None, None


def upgrade() -> None:
"""
ONE_TABLE = f"""
    op.execute("SELECT pg_sleep({SLOW_SECONDS})")
    op.create_table("things", sa.Column("id", sa.BigInteger(), primary_key=True))
    op.add_column("keys", sa.Column("since", sa.Text()))
    op.create_index("ix_keys_since", "keys", ["since"])
"""
ALL_TABLES = f"""
    with op.get_context().autocommit_block():  # each on its own, and again from the first if one had to wait
        for table in {sorted(metadata.tables)}:
            op.execute(f"ALTER TABLE {{table}} ADD COLUMN IF NOT EXISTS later INTEGER NOT NULL DEFAULT 0")
"""


def next_version(folder: Path) -> str:
    """This program with two more migrations, which add to every table, as its PYTHONPATH."""
    package = Path(profilesvc.__file__).parent
    shutil.copytree(package, folder / "next" / "profilesvc", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copytree(fixture_path("world.json").parent, folder / "next" / "profilesvc" / "fixtures")
    versions = folder / "next" / "profilesvc" / "storage" / "migrations" / "versions"
    newest = int(migrate.head())
    for revision, work in ((newest + 1, ONE_TABLE), (newest + 2, ALL_TABLES)):
        head = MIGRATION.format(revision=revision, before=revision - 1)
        (versions / f"{revision:04}_more.py").write_text(head + work)
    return str(folder / "next")


class Callers:
    """Clients of every kind, each with one request after the other until the end; what went wrong is kept."""

    def __init__(self, url: str, user: str) -> None:
        self._url, self._user, self._ended = url, user, threading.Event()
        self.lost: list[str] = []
        self.answered = 0
        with self._client(user) as alice:
            body = {"name": "Site", "business_id": 10, "assigned_location_id": "locations/111"}
            self._keys = [data(alice.post(KEYS, json=body)) for _ in range(3)]

    def _client(self, token: str) -> httpx.Client:
        return httpx.Client(base_url=self._url, headers={"Authorization": f"Bearer {token}"}, timeout=30)

    def __enter__(self) -> "Callers":
        self._pool = concurrent.futures.ThreadPoolExecutor(6)
        work: list[tuple[Callable[..., Iterator[httpx.Response]], str]] = [(self._as_user, "") for _ in range(3)]
        work += [(self._as_site, json.dumps(key)) for key in self._keys]
        self._running = [self._pool.submit(self._call, *each) for each in work]
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._pool.shutdown()
        for running in self._running:
            running.result()

    def _call(self, work: Callable[..., Iterator[httpx.Response]], key: str) -> None:
        try:
            for answer in work(key):
                self.answered += 1
                if not answer.is_success:
                    self.lost.append(f"{answer.request.url} {answer.status_code} {answer.text}")
                if self._ended.wait(PAUSE_SECONDS):
                    return
        except httpx.TransportError as error:
            self.lost.append(repr(error))

    def _as_user(self, _: str) -> Iterator[httpx.Response]:
        with self._client(self._user) as alice:
            while True:
                yield alice.get("/api/v1/external-business/locations")
                yield alice.get("/api/v1/developer/credentials")

    def _as_site(self, key: str) -> Iterator[httpx.Response]:
        named = json.loads(key)
        grant = {"grant_type": "client_credentials"} | {name: named[name] for name in ("client_id", "client_secret")}
        with self._client("") as site:
            for turn in itertools.count():
                if turn % 10 == 0:
                    granted = site.post("/api/v1/auth/token", json=grant, headers={"Authorization": ""})
                    site.headers["Authorization"] = f"Bearer {data(granted)['access_token']}"
                yield site.post("/api/v1/api-keys/heartbeat", json={})
                yield site.get("/api/v1/posts", params={"locationId": "111"})


def is_ready(server: Server) -> bool:
    return httpx.get(f"{server.url}/readyz").is_success


def test_the_database_and_all_processes_are_upgraded_under_load_and_no_request_fails(
    tmp_path: Path, postgres: Postgres, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> None:
    postgres.create("rolling")
    request.addfinalizer(lambda: postgres.drop("rolling"))
    newer, words = next_version(tmp_path), ("serve", "--demo", "--port", "0")
    with Balancer() as front:
        settings = {"DATABASE_URL": postgres.url("rolling"), "BASE_URL": front.url, "LIMITS__ENABLED": "false"}
        # A client must not wait longer than this to use an idle connection again: as long as a busy machine may take.
        settings["DRAIN_SECONDS"] = "4"

        def start() -> Server:
            server = Server(tmp_path, *words, **settings)
            request.addfinalizer(server.kill)
            front.ports.append(server.port)
            return server

        def stop(server: Server) -> None:
            assert server.stop() == 0
            front.ports.remove(server.port)

        assert command(tmp_path, "db", "upgrade", **settings).returncode == 0
        old, other_old = start(), start()
        user = command(tmp_path, "users", "token", "alice@example.com", **settings).stdout.strip()
        with Callers(front.url, user) as callers:
            stop(old)
            old = start()  # first, a rolling restart
            with monkeypatch.context() as patched:
                patched.setenv("PYTHONPATH", newer)
                upgraded = command(tmp_path, "db", "upgrade", "--json", **settings)
                assert upgraded.returncode == 0, upgraded.stderr
                assert json.loads(upgraded.stdout)["current"] == f"{int(migrate.head()) + 2:04}"
            assert is_ready(old)
            assert is_ready(other_old)
            stop(old)
            old = start()  # on the new database
            assert is_ready(old)
            with monkeypatch.context() as patched:
                patched.setenv("PYTHONPATH", newer)
                new, other_new = start(), start()
            stop(old)
            stop(other_old)
            assert is_ready(new)
        stop(new)
        stop(other_new)
    assert callers.lost == []
    assert callers.answered > 100
