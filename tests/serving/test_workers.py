"""`serve` on PostgreSQL: migrations first, several processes on one socket."""

import concurrent.futures
import contextlib
import json
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import httpx
import psutil
import pytest

from profilesvc.server.protocol import LINGER_SECONDS
from support.effort import effort
from support.network.ports import free_port
from support.program import Server, caller, command, data, serving
from support.waiting import patience, until

if TYPE_CHECKING:
    from conftest import Postgres

pytestmark = [pytest.mark.thorough, pytest.mark.postgres]


@pytest.fixture
def database_url(postgres: "Postgres") -> Iterator[str]:
    """An empty database."""
    postgres.create("commands")
    yield postgres.url("commands")
    postgres.drop("commands")


@pytest.fixture
def service(tmp_path: Path, database_url: str) -> Iterator[Server]:
    """Two workers with the demo data."""
    assert command(tmp_path, "db", "upgrade", DATABASE_URL=database_url).returncode == 0
    words = ("serve", "--demo", "--workers", "2", "--port", "0")
    with serving(tmp_path, *words, DATABASE_URL=database_url, LIMITS__ENABLED="false") as server:
        yield server


def test_two_processes_that_start_at_once_on_an_empty_database_agree_on_one_key(
    tmp_path: Path, database_url: str
) -> None:
    assert command(tmp_path, "db", "upgrade", DATABASE_URL=database_url).returncode == 0
    words = ("signing-keys", "list", "--json")
    folders = [str(tmp_path / name) for name in ("one", "two")]
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        listing = [pool.submit(command, tmp_path, *words, DATABASE_URL=database_url, DATA_DIR=f) for f in folders]
    one, two = (json.loads(done.result().stdout) for done in listing)
    assert one == two
    assert {(key["alg"], key["state"]) for key in one} == {("RS256", "active"), ("HS256", "active")}


def workers(server: Server) -> set[int]:
    """The processes that serve: the living children that spawn started."""
    found = set()
    for child in psutil.Process(server.process.pid).children():
        with contextlib.suppress(psutil.NoSuchProcess):  # it died since it was listed
            if "spawn_main" in " ".join(child.cmdline()):
                found.add(child.pid)
    return found


def until_two(server: Server, without: int) -> set[int]:
    def found() -> set[int]:
        two = workers(server)
        return two if len(two) == 2 and without not in two else set()

    return until(found, "two workers", every=0.1)


def test_sigterm_drains_every_worker(service: Server, tmp_path: Path, database_url: str) -> None:
    token = command(tmp_path, "users", "token", "alice@example.com", DATABASE_URL=database_url).stdout.strip()
    answered, refused = [], []

    def read() -> None:
        with caller(service, token) as alice:
            try:
                while True:
                    answered.append(alice.get("/api/v1/external-business/locations").status_code)
            except (httpx.ConnectError, httpx.RemoteProtocolError, httpx.ReadError) as error:
                refused.append(error)

    readers = [threading.Thread(target=read) for _ in range(4)]
    for reader in readers:
        reader.start()
    time.sleep(0.5)
    assert service.stop() == 0
    for reader in readers:
        reader.join()
    assert set(answered) == {200}
    assert len(refused) == 4


def test_the_requests_of_a_key_are_those_of_all_workers(service: Server, tmp_path: Path, database_url: str) -> None:
    token = command(tmp_path, "users", "token", "alice@example.com", DATABASE_URL=database_url).stdout.strip()
    keys = "/api/v1/developer/credentials"
    body = {"name": "Site", "business_id": 10, "assigned_location_id": "locations/111"}
    with caller(service, token) as alice:
        key = alice.post(keys, json=body).json()["data"]
        grant = {"grant_type": "client_credentials"} | {name: key[name] for name in ("client_id", "client_secret")}
        access = alice.post("/api/v1/auth/token", json=grant).json()["data"]["access_token"]
        for number in range(40):  # a connection each, so that both workers get some
            with caller(service, access) as site:
                path = "/api/v1/businesses" if number % 4 == 0 else "/api/v1/external-business/locations"
                assert site.get(path).status_code == (403 if number % 4 == 0 else 200)

        def are_complete() -> bool:
            found = alice.get(f"{keys}/{key['client_id']}/requests", params={"errors_only": "true"}).json()["data"]
            return (found["usage"][0]["requests"], len(found["requests"])) == (41, 10)

        until(are_complete, "41 requests in the log, 10 of them errors", every=0.2)


def hammer(service: Server, token: str, began: threading.Event, ended: threading.Event) -> list[str]:
    """Requests one after the other until the port is closed; what was lost.

    A server may close a connection on which no request arrives (RFC 9112, section 9.5), which is the fate of one whose
    caller gets no CPU for a while, before it connects or after that.
    """
    sent_at = 0.0

    def note(event: str, _info: object) -> None:
        nonlocal sent_at
        if event == "http11.send_request_headers.complete":
            sent_at = time.monotonic()

    with caller(service, token) as alice:
        responded_at = time.monotonic()
        while not ended.is_set():
            try:
                answer = alice.get("/api/v1/external-business/locations", extensions={"trace": note})
            except httpx.ConnectError:  # never sent
                return []
            except httpx.TransportError as error:
                return [] if sent_at - responded_at > LINGER_SECONDS / 2 else [repr(error)]
            responded_at = time.monotonic()
            if answer.status_code != 200:
                return [answer.text]
            began.set()
    return []


@pytest.mark.fuzz
@pytest.mark.parametrize("drain", ["0", "0.5"])
@pytest.mark.parametrize("count", [1, effort(2, 4)])
def test_no_request_in_flight_is_lost_in_any_of_many_stops_under_load(
    tmp_path: Path, database_url: str, drain: str, count: int
) -> None:
    """A request that was sent gets a response, even on a connection that was idle at the stop. One is on SQLite."""
    # One address for all ports, so that a token is valid at every start.
    settings = {"BASE_URL": "http://profiles.test", "LIMITS__ENABLED": "false", "DRAIN_SECONDS": drain}
    if count > 1:
        settings["DATABASE_URL"] = database_url
        assert command(tmp_path, "db", "upgrade", **settings).returncode == 0
    words = ("serve", "--demo", "--workers", str(count), "--port", "0")
    token = ""
    for _ in range(effort(1, 20)):
        ended, began = threading.Event(), [threading.Event() for _ in range(8)]
        with serving(tmp_path, *words, **settings) as service, concurrent.futures.ThreadPoolExecutor(8) as pool:
            token = token or command(tmp_path, "users", "token", "alice@example.com", **settings).stdout.strip()
            callers = [pool.submit(hammer, service, token, once, ended) for once in began]
            all_answered = all(once.wait(60) for once in began)
            assert service.stop() == 0
            ended.set()
            assert [lost for running in callers for lost in running.result()] == []
        assert all_answered


def test_readiness_changes_before_new_connections_are_refused(tmp_path: Path, database_url: str) -> None:
    """With DRAIN_SECONDS a proxy that asks `/readyz` learns of the stop while its requests are still taken."""
    assert command(tmp_path, "db", "upgrade", DATABASE_URL=database_url).returncode == 0
    words = ("serve", "--demo", "--workers", "2", "--port", "0")
    settings = {"DATABASE_URL": database_url, "DRAIN_SECONDS": "3"}
    with serving(tmp_path, *words, **settings) as service:
        with httpx.Client(base_url=service.url, headers={"Connection": "close"}, timeout=60) as http:
            assert http.get("/readyz").is_success
            service.process.terminate()
            asked: list[httpx.Response] = []
            while {answer.status_code for answer in asked} != {503}:  # the supervisor looks for signals every 0.5 s
                asked = [http.get("/readyz") for _ in range(5)]  # a new connection each time, so that both answer
            assert {answer.json()["checks"]["accepting"] for answer in asked} == {False}
            assert http.get("/healthz").is_success
        service.process.communicate(timeout=patience(30))
        assert service.process.returncode == 0


def until_size(server: Server, wanted: float) -> None:
    """Wait for the connections that all may have: each worker writes its own down every second."""
    line = f'profilesvc_database_pool_size{{pool="writing"}} {wanted}'
    until(
        lambda: line in httpx.get(f"{server.url}/metrics").text.splitlines(),
        f"connections of all workers: {wanted}",
        every=0.1,
    )


def test_metrics_include_all_running_workers(service: Server) -> None:
    requests = 40
    for _ in range(requests):  # a new connection each time, so that both answer
        assert httpx.get(f"{service.url}/api/v1/api-keys/heartbeat").status_code == 405
    text = httpx.get(f"{service.url}/metrics").text
    answered = [line for line in text.splitlines() if "request_seconds_count{" in line and 'status="405"' in line]
    assert [float(line.rpartition(" ")[2]) for line in answered] == [requests]
    until_size(service, 20.0)
    psutil.Process(min(workers(service))).kill()
    until_size(service, 10.0)  # another is started a second later
    until_size(service, 20.0)
    service.process.terminate()
    assert "ended with -9" in service.process.communicate()[1]


def test_metrics_on_a_port_of_their_own_are_only_there(tmp_path: Path, database_url: str) -> None:
    """Both workers serve it: of what many new connections asked for, all is in each answer."""
    assert command(tmp_path, "db", "upgrade", DATABASE_URL=database_url).returncode == 0
    port = free_port()
    settings = {"DATABASE_URL": database_url, "METRICS__PORT": str(port), "METRICS__TOKEN": "a" * 20}
    with serving(tmp_path, "serve", "--workers", "2", "--port", "0", LIMITS__ENABLED="false", **settings) as server:
        inside, counts = f"http://127.0.0.1:{port}", "profilesvc_request_seconds_count{"
        assert [httpx.get(f"{server.url}/{path}").status_code for path in ("healthz", "metrics")] == [200, 404]
        assert [httpx.get(f"{inside}/{path}").status_code for path in ("healthz", "metrics")] == [404, 401]
        for _ in range(20):
            assert httpx.get(f"{server.url}/api/v1/posts").status_code == 401
        text = httpx.get(f"{inside}/metrics", headers={"Authorization": f"Bearer {'a' * 20}"}).text
        (counted,) = [line for line in text.splitlines() if line.startswith(counts) and '/posts"' in line]
        assert float(counted.rpartition(" ")[2]) == 20
        assert text.count("profilesvc_build_info{") == 1
        assert server.stop() == 0


def test_a_dead_worker_is_replaced_and_all_end_with_their_parent(
    service: Server, tmp_path: Path, database_url: str
) -> None:
    before = workers(service)
    assert len(before) == 2
    psutil.Process(min(before)).kill()
    assert max(before) in until_two(service, without=min(before))
    token = command(tmp_path, "users", "token", "alice@example.com", DATABASE_URL=database_url).stdout.strip()
    for _ in range(10):  # a new connection each time, so that both answer
        with caller(service, token) as alice:
            assert data(alice.get("/api/v1/external-business/locations"))["pagination"]["totalCount"] == 5
    orphans = [psutil.Process(pid) for pid in workers(service)]
    service.process.kill()
    assert psutil.wait_procs(orphans, timeout=30)[1] == []
    assert f"worker {min(before)} ended with -9" in service.process.communicate()[1]
