"""Databases that fail, and what callers get from the service meanwhile."""

import asyncio
import concurrent.futures
import contextlib
import sqlite3
from collections.abc import Callable, Iterator
from typing import Any

import asyncpg
import httpx

from conftest import Postgres
from profilesvc.settings import Settings
from support.api import assert_error
from support.waiting import in_time
from support.wire import KEYS, POSTS, Served

HEARTBEAT = "/api/v1/api-keys/heartbeat"
SWITCH = "/api/v1/external-business/locations/112/sync"
NEW_KEY = {"name": "New", "business_id": 10, "assigned_location_id": "locations/111"}
Call = Callable[[], httpx.Response]


def writes(user: httpx.Client, plugin: httpx.Client) -> list[Call]:
    """One of every kind of write that a location has."""
    return [
        lambda: plugin.post(HEARTBEAT, json={"wp_version": "2"}),
        lambda: user.post(KEYS, json=NEW_KEY),
        lambda: user.patch(SWITCH, json={"syncEnabled": False}),
        lambda: plugin.post("/api/v1/sync/111", json={"title": "Harbour"}),
        lambda: plugin.post("/api/v1/sync/111", json={"title": "Harbour"}, headers={"Idempotency-Key": "once"}),
        lambda: plugin.post(POSTS, json={"summary": "Outage"}),
        lambda: plugin.post(POSTS, json={"summary": "Outage"}, headers={"Idempotency-Key": "once"}),
    ]


def together(calls: list[Call], seconds: float = 60) -> list[httpx.Response]:
    """The responses to all at once, each within so many seconds."""

    def timed(call: Call) -> httpx.Response:
        with in_time(seconds, "a response"):
            return call()

    with concurrent.futures.ThreadPoolExecutor(len(calls)) as pool:
        return list(pool.map(timed, calls))


def assert_unavailable(responses: list[httpx.Response]) -> None:
    """503, and a hint when to come again."""
    for response in responses:
        assert_error(response, 503, "SERVICE_UNAVAILABLE")
        assert int(response.headers["retry-after"]) >= 1


def provider_writes(served: Served) -> list[Any]:
    """The calls that changed something at the provider."""
    assert served.world.emulator is not None
    calls = served.world.emulator.extensions["emulator"].calls
    return [call for call in calls if call["method"] != "GET" and call["path"] != "/token"]


@contextlib.contextmanager
def locked_sqlite(settings: Settings) -> Iterator[None]:
    """Another process writes and does not come to an end."""
    other = sqlite3.connect(settings.data_dir / "profilesvc.db", isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    try:
        yield
    finally:
        other.execute("ROLLBACK")
        other.close()


class Database:
    """Statements of the test on the service's PostgreSQL database."""

    def __init__(self, postgres: Postgres, settings: Settings) -> None:
        self._server, self._name = postgres, settings.database_url.partition("?")[0].rpartition("/")[2]

    @contextlib.contextmanager
    def holding(self, statement: str) -> Iterator[None]:
        """The locks that a statement takes, for as long as the block lasts."""
        with asyncio.Runner() as runner:
            connect = asyncpg.connect(user="postgres", database=self._name, host=self._server.host)
            other = runner.run(connect)
            runner.run(other.execute(f"BEGIN; {statement}"))
            try:
                yield
            finally:
                runner.run(other.execute("ROLLBACK"))
                runner.run(other.close())

    def cut_all(self) -> None:
        """Every connection to the database ends, whatever it is doing."""
        self._server.run(
            f"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = '{self._name}'"  # our own name
        )
