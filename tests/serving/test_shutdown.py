"""An orderly end: what is in flight is finished, the process says that it is draining, and exits with 0."""

import asyncio
import concurrent.futures
import contextlib
import signal
import time
from pathlib import Path

import httpx
import pytest

from profilesvc.server.serving import SHUTDOWN_SECONDS
from profilesvc.settings import Settings
from support.api import assert_ok
from support.served_process import ServedProcess, served_process
from support.waiting import in_time, result_of, until
from support.wire import REFRESH, connect, seeded, serving, slow_call, user_token


@pytest.fixture
def settings(sqlite_template: Path, tmp_path: Path) -> Settings:
    return seeded(sqlite_template, tmp_path)


@pytest.fixture
def user(settings: Settings) -> str:
    return asyncio.run(user_token(settings))


def under_way(
    pool: concurrent.futures.Executor, process: ServedProcess, user: str
) -> "concurrent.futures.Future[httpx.Response]":
    """A slow request that is in flight."""

    def call() -> httpx.Response:
        with process.client(user) as http:
            return http.post(REFRESH)

    future = pool.submit(call)
    time.sleep(0.6)  # long enough to arrive, short of the provider's delay
    assert not future.done()
    return future


def until_refused(port: int) -> None:
    """Connect until it is refused."""

    def is_refused() -> bool:
        with contextlib.suppress(ConnectionRefusedError):
            connect(port).close()
            return False
        return True

    until(is_refused, "the port to be closed", every=0.05)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_request_in_flight_gets_its_response_and_the_process_exits_with_0(
    settings: Settings, user: str, number: signal.Signals
) -> None:
    with served_process(settings, delay=3) as process, concurrent.futures.ThreadPoolExecutor(2) as pool:
        idle = connect(process.port)
        running = under_way(pool, process, user)
        process.signal(number)
        until_refused(process.port)
        assert not running.done()
        assert_ok(result_of(running, "the response"))
        out, errors = process.end()
        idle.close()
    assert (process.returncode, out, errors) == (0, "draining\n", "")


def test_an_idle_process_ends_at_once(settings: Settings, user: str) -> None:
    with served_process(settings) as process, process.client(user) as http:
        assert http.get("/readyz").is_success
        with in_time(SHUTDOWN_SECONDS / 4, "the end of an idle process"):
            process.signal(signal.SIGTERM)
            process.end()
        assert process.returncode == 0


def test_a_process_that_cannot_start_exits_with_1(settings: Settings) -> None:
    (settings.data_dir / "profilesvc.db").write_bytes(b"no database" * 1000)
    with pytest.raises(RuntimeError, match="not a database"):
        ServedProcess(settings)


def test_readiness_reports_the_drain(settings: Settings) -> None:
    """uvicorn closes its listeners, so that only a connection that is open can still see it."""
    with serving(settings) as served, served.client() as http:
        assert http.get("/readyz").json()["checks"]["accepting"] is True
        served.app.extensions["profilesvc.draining"].set()
        answer = http.get("/readyz")
        assert (answer.status_code, answer.json()["status"]) == (503, "unavailable")
        assert answer.json()["checks"] == {
            "database": True,
            "writable": True,
            "migrations": True,
            "signing_key": True,
            "pepper": True,
            "accepting": False,
        }
        assert http.get("/healthz").is_success


def test_the_requests_of_a_key_are_written_before_the_process_ends(settings: Settings, user: str) -> None:
    body = {"name": "Site", "business_id": 10, "assigned_location_id": "locations/111"}
    with served_process(settings) as process, process.client(user) as owner:
        key = assert_ok(owner.post("/api/v1/developer/credentials", json=body), 201)
        grant = {"grant_type": "client_credentials"} | {name: key[name] for name in ("client_id", "client_secret")}
        with process.client(assert_ok(owner.post("/api/v1/auth/token", json=grant))["access_token"]) as site:
            for _ in range(20):
                assert_ok(site.post("/api/v1/api-keys/heartbeat", json={}))
            assert site.get("/api/v1/businesses").status_code == 403
        process.signal(signal.SIGTERM)
        process.end()
        assert process.returncode == 0
    with serving(settings) as again, again.client() as http:
        found = assert_ok(http.get(f"/api/v1/developer/credentials/{key['client_id']}/requests?errors_only=true"))
    assert [found["usage"][0][name] for name in ("requests", "client_errors")] == [22, 1]
    assert [one["path"] for one in found["requests"]] == ["/api/v1/businesses"]


def test_background_work_ends_before_the_process(settings: Settings) -> None:
    with serving(settings) as served:
        key, token = served.site()
        running = slow_call(served, 0.5)
        with served.client(token) as http:
            assert_ok(http.get("/api/v1/posts?locationId=locations/111"))
        served.server.stop()
        assert_ok(result_of(running, "the response"))
    with serving(settings) as again, again.client() as http:
        listed = assert_ok(http.get("/api/v1/developer/credentials"))["credentials"]
        assert [entry["client_id"] for entry in listed if entry["last_used_at"]] == [key["client_id"]]
