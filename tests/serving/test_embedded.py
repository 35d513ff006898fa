"""The service on a thread: quick to start and stop, several in one process, never in the way of the process's end."""

import asyncio
import subprocess
import sys
import time
from pathlib import Path

import httpx
import pytest

from conftest import make_settings
from profilesvc.bootstrap import create_app
from profilesvc.server.serving import SHUTDOWN_SECONDS, EmbeddedServer
from profilesvc.settings import Settings
from support.api import assert_ok
from support.waiting import in_time, result_of
from support.wire import KEYS, connect, seeded, serving, slow_call


@pytest.fixture
def settings(sqlite_template: Path, tmp_path: Path) -> Settings:
    return seeded(sqlite_template, tmp_path)


def healthy(server: EmbeddedServer) -> bool:
    return httpx.get(f"{server.base_url}/healthz", trust_env=False).is_success


def test_starts_again_with_its_data(settings: Settings) -> None:
    with serving(settings) as first:
        key, _ = first.site()
        port = first.server.port
    with serving(settings) as again, again.client() as http:
        assert [entry["client_id"] for entry in assert_ok(http.get(KEYS))["credentials"]] == [key["client_id"]]
    with EmbeddedServer(create_app(settings), port) as same_port:
        assert same_port.port == port
        assert healthy(same_port)


def test_two_servers_are_independent(sqlite_template: Path, tmp_path: Path) -> None:
    with (
        serving(seeded(sqlite_template, tmp_path / "a")) as one,
        serving(seeded(sqlite_template, tmp_path / "b")) as two,
    ):
        one.site()
        with one.client() as http:
            assert len(assert_ok(http.get(KEYS))["credentials"]) == 1
        with two.client() as http:
            assert assert_ok(http.get(KEYS))["credentials"] == []


def test_runs_on_the_fast_loop_and_parser(settings: Settings) -> None:
    """uvloop and httptools are dependencies; a silent fall-back would halve the rate."""
    seen: list[str] = []

    async def app(scope: dict[str, object], receive: object, send: object) -> None:
        seen.append(type(asyncio.get_running_loop()).__module__)
        await create_app(settings).asgi_app(scope, receive, send)  # type: ignore[arg-type]

    with EmbeddedServer(app):
        pass
    assert seen == ["uvloop"]


def test_raises_the_reason_if_the_app_does_not_start(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    plans = tmp_path / "plans.toml"
    plans.write_text("[starter]\ndisplay_name = 5\n")
    server = EmbeddedServer(create_app(make_settings(tmp_path, plans_file=plans)))
    with pytest.raises(RuntimeError, match=r"did not start: PROFILESVC_PLANS_FILE: "):
        server.start()
    assert "PROFILESVC_PLANS_FILE" in caplog.text
    with pytest.raises(ConnectionRefusedError):
        connect(server.port)


def test_a_used_port_is_rejected_at_once(settings: Settings) -> None:
    with EmbeddedServer(create_app(settings)) as server, pytest.raises(OSError, match="in use"):
        EmbeddedServer(create_app(settings), server.port)


def test_stopping_twice_or_before_the_start_is_harmless(settings: Settings) -> None:
    EmbeddedServer(create_app(settings)).stop()
    server = EmbeddedServer(create_app(settings)).start()
    server.stop()
    server.stop()


def test_a_request_in_flight_is_finished(settings: Settings) -> None:
    with serving(settings) as served:
        running = slow_call(served, 1)
        with in_time(SHUTDOWN_SECONDS / 2, "the end of the server"):
            served.server.stop()
        assert_ok(result_of(running, "the response"))


def test_idle_connections_do_not_delay_the_stop(settings: Settings) -> None:
    with serving(settings) as served:
        used = [served.client() for _ in range(10)]
        assert all(http.get("/healthz").is_success for http in used)
        unused = [connect(served.server.port) for _ in range(10)]
        with in_time(SHUTDOWN_SECONDS / 4, "the end of the server"):
            served.server.stop()
        for client in used:
            client.close()
        for connection in unused:
            connection.close()


def test_an_upgraded_or_half_sent_request_does_not_delay_the_stop(settings: Settings) -> None:
    with serving(settings) as served:
        half = connect(served.server.port)
        half.sendall(b"POST /api/v1/auth/token HTTP/1.1\r\nHost: x\r\nX-A: ")
        time.sleep(0.05)
        with in_time(SHUTDOWN_SECONDS / 4, "the end of the server"):
            served.server.stop()
        half.close()


def test_the_client_address_is_that_of_the_connection(settings: Settings) -> None:
    """How many proxies to believe is the app's own setting; the server must not act on X-Forwarded-For."""
    seen: list[object] = []

    async def app(scope: dict[str, object], receive: object, send: object) -> None:
        if scope["type"] == "http":
            seen.append((scope["client"][0], scope["scheme"]))  # type: ignore[index]
        await inner(scope, receive, send)  # type: ignore[arg-type]

    inner = create_app(settings)
    with EmbeddedServer(app) as server:
        headers = {"X-Forwarded-For": "203.0.113.9", "X-Forwarded-Proto": "https"}
        httpx.get(f"{server.base_url}/healthz", headers=headers, trust_env=False)
    assert seen == [("127.0.0.1", "http")]


FORGETFUL = """
import sys
from pathlib import Path
import httpx
from profilesvc.bootstrap import create_app
from profilesvc.server.serving import EmbeddedServer
from profilesvc.settings import Settings

server = EmbeddedServer(create_app(Settings(_env_file=None, base_url="http://x", data_dir=Path(sys.argv[1])))).start()
assert httpx.get(server.base_url + "/readyz", trust_env=False).is_success
print("served")
"""


def test_a_server_that_is_not_stopped_does_not_keep_the_process_alive(settings: Settings) -> None:
    command = [sys.executable, "-W", "error", "-c", FORGETFUL, str(settings.data_dir)]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=20, check=False)
    assert (ended.returncode, ended.stdout) == (0, "served\n"), ended.stderr
    assert ended.stderr == ""
