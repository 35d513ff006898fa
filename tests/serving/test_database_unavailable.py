"""An unavailable database: 503 within six seconds, nothing half written, and no restart once it is back (A104)."""

import concurrent.futures
import functools
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import httpx
import pytest
from sqlalchemy import event

from conftest import Postgres
from profilesvc.emulator.faults import Fault
from profilesvc.settings import Settings
from support.api import assert_error, assert_ok
from support.database.outage import (
    HEARTBEAT,
    Database,
    assert_unavailable,
    locked_sqlite,
    provider_writes,
    together,
    writes,
)
from support.waiting import in_time, until
from support.wire import KEYS, POSTS, Served, serving

pytestmark = pytest.mark.thorough


@pytest.fixture
def served(settings: Settings) -> Iterator[Served]:
    with serving(settings) as running:
        yield running


@pytest.fixture
def plugin(served: Served) -> Iterator[httpx.Client]:
    """A site of locations/111."""
    with served.client(served.site()[1]) as http:
        assert_ok(http.post(HEARTBEAT, json={"wp_version": "1"}))
        yield http


@pytest.fixture
def user(served: Served) -> Iterator[httpx.Client]:
    with served.client() as http:
        yield http


def state(user: httpx.Client) -> list[Any]:
    """The data that the writes would have changed, through the API."""
    keys = assert_ok(user.get(KEYS))["credentials"]
    return [
        [(key["client_id"], key["status"]) for key in keys],
        assert_ok(user.get("/api/v1/external-business/locations/112")),
        assert_ok(user.get("/api/v1/sync/history/111"))["history"],
        assert_ok(user.get(POSTS))["localPosts"],
        [assert_ok(user.get(f"/api/v1/api-keys/{key['client_id']}/status"))["wp_version"] for key in keys],
    ]


@pytest.mark.parametrize("database", ["sqlite"])
class TestSqlite:
    def test_a_locked_database_is_unavailable_and_loses_nothing(
        self, served: Served, user: httpx.Client, plugin: httpx.Client
    ) -> None:
        before = state(user)
        with locked_sqlite(served.settings):
            assert_unavailable(together(writes(user, plugin), 6))
            assert provider_writes(served) == []
        assert state(user) == before
        for response in together(writes(user, plugin)):
            assert response.is_success, response.text

    def test_no_caller_waits_longer_when_many_wait_for_a_locked_database(
        self, served: Served, plugin: httpx.Client
    ) -> None:
        """They wait for one another, but none longer than a caller may."""

        def late() -> httpx.Response:
            time.sleep(3)
            return plugin.post(HEARTBEAT, json={})

        with locked_sqlite(served.settings):
            beats = [lambda n=n: plugin.post(HEARTBEAT, json={"wp_version": str(n)}) for n in range(40)]
            assert_unavailable(together([*beats, *[late] * 3], 3 + 6)[: len(beats)])
        assert_ok(plugin.post(HEARTBEAT, json={}))

    def test_a_lock_after_the_call_to_the_provider_is_one_wait(self, served: Served, plugin: httpx.Client) -> None:
        """The provider has been asked; what is then to be noted, given back and released is one wait and not three."""
        assert served.world.emulator is not None
        faults = served.world.emulator.extensions["emulator"].faults
        faults.add(Fault(kind="delay", seconds=1.5, times=4))
        calls: list[Callable[[], httpx.Response]] = [
            functools.partial(plugin.post, path, json=body, headers={"Idempotency-Key": "middle"})
            for path, body in (("/api/v1/sync/111", {"title": "Harbour"}), (POSTS, {"summary": "Outage"}))
        ]
        with concurrent.futures.ThreadPoolExecutor(1) as pool:
            running = pool.submit(together, calls, 2 * 1.5 + 6)
            until(lambda: faults.listing()[0]["times"] <= 2, "both requests at the provider")
            with locked_sqlite(served.settings):
                assert_unavailable(running.result())

    def test_reads_go_on_while_the_database_is_locked(
        self, served: Served, user: httpx.Client, plugin: httpx.Client
    ) -> None:
        before = state(user)
        with locked_sqlite(served.settings):
            writer = threading.Thread(target=lambda: plugin.post(HEARTBEAT, json={}))
            writer.start()
            with in_time(2, "the reads"):
                assert state(user) == before
            assert user.get("/readyz").is_success
            writer.join()

    def test_a_short_lock_is_waited_for(self, served: Served, user: httpx.Client, plugin: httpx.Client) -> None:
        with concurrent.futures.ThreadPoolExecutor(1) as pool:
            with locked_sqlite(served.settings):
                running = pool.submit(lambda: together(writes(user, plugin)))
                time.sleep(1)
            for response in running.result():
                assert response.is_success, response.text

    @pytest.mark.parametrize("failure", ["PRAGMA max_page_count=1", "PRAGMA query_only=ON"])
    def test_a_full_or_read_only_database_is_unavailable(
        self, served: Served, user: httpx.Client, plugin: httpx.Client, failure: str
    ) -> None:
        storage, sick = served.app.extensions["profilesvc"].storage, True
        before = state(user)

        def pragma() -> str:
            return failure if sick else failure.replace("=1", "=1000000").replace("=ON", "=OFF")

        @event.listens_for(storage.engine.sync_engine, "checkout")
        def checkout(connection: Any, _record: Any, _proxy: Any) -> None:
            connection.cursor().execute(pragma())

        def beats_too() -> None:
            """The connection of the heartbeats is open by now, and used on a thread of its own."""
            writer = storage._writer
            writer._thread.submit(lambda: writer._connection.execute(pragma())).result()

        beats_too()
        large = {"wp_version": "2", "detected_plugins": ["p" * 200] * 500}
        assert_unavailable(together([lambda: plugin.post(HEARTBEAT, json=large) for _ in range(4)], 6))
        assert state(user) == before
        sick = False
        beats_too()
        assert_ok(plugin.post(HEARTBEAT, json=large))
        assert all(response.is_success for response in together(writes(user, plugin)))


@pytest.fixture
def beside(postgres: Postgres, settings: Settings) -> Database:
    return Database(postgres, settings)


@pytest.mark.parametrize("database", [pytest.param("postgres", marks=pytest.mark.postgres)])
class TestPostgres:
    def test_connections_that_are_cut_in_the_middle_are_replaced(
        self, served: Served, user: httpx.Client, plugin: httpx.Client, beside: Database
    ) -> None:
        ended, answers = threading.Event(), list[httpx.Response]()

        def caller() -> None:
            while not ended.is_set():
                answers.extend([plugin.post(HEARTBEAT, json={}), user.get(KEYS)])

        with concurrent.futures.ThreadPoolExecutor(4) as pool:
            callers = [pool.submit(caller) for _ in range(4)]
            for _ in range(5):
                beside.cut_all()
                more = len(answers) + 40
                until(lambda: len(answers) > more, "40 more responses")  # noqa: B023
            ended.set()
            for running in callers:
                running.result()
        for response in answers:
            if not response.is_success:
                assert_error(response, 503, "SERVICE_UNAVAILABLE")
        assert sum(response.is_success for response in answers) > len(answers) / 2
        assert all(response.is_success for response in together(writes(user, plugin)))

    def test_idle_connections_that_were_cut_are_not_noticed(
        self, user: httpx.Client, plugin: httpx.Client, beside: Database
    ) -> None:
        together([lambda: user.get(KEYS) for _ in range(10)])
        beside.cut_all()
        assert all(response.is_success for response in together([lambda: user.get(KEYS) for _ in range(20)]))
        assert all(response.is_success for response in together(writes(user, plugin)))

    @pytest.mark.parametrize("callers", [1, 30])
    def test_a_row_that_stays_locked_is_unavailable(self, plugin: httpx.Client, beside: Database, callers: int) -> None:
        """Even if there are more callers than connections: the wait for a connection counts."""
        with beside.holding("SELECT * FROM connections FOR UPDATE"):
            assert_unavailable(together([lambda: plugin.post(HEARTBEAT, json={}) for _ in range(callers)], 6))
        assert_ok(plugin.post(HEARTBEAT, json={}))

    def test_a_table_that_stays_locked_is_unavailable(
        self, user: httpx.Client, plugin: httpx.Client, beside: Database
    ) -> None:
        """Reads wait too, and no longer than a caller may."""
        with beside.holding("LOCK TABLE users, keys, locations IN ACCESS EXCLUSIVE MODE"):
            assert_unavailable(together([lambda: user.get(KEYS), *writes(user, plugin)], 6))
        assert all(response.is_success for response in together(writes(user, plugin)))
