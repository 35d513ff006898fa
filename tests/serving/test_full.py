"""A server that is full refuses, says so in the envelope, and is well again at once; an access log without secrets."""

import concurrent.futures
import json
import socket
import time
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import httpx
import pytest

from profilesvc.server.scope import BEFORE
from profilesvc.server.serving import EmbeddedServer
from profilesvc.settings import Settings
from support.api import assert_error, assert_ok
from support.program import caller, command
from support.program import serving as running
from support.waiting import patience, until
from support.wire import REFRESH, Served, seeded, serving, slow_call


@pytest.fixture
def settings(sqlite_template: Path, tmp_path: Path) -> Settings:
    return seeded(sqlite_template, tmp_path, max_in_flight=3)


def refused(answer: httpx.Response) -> bool:
    if answer.status_code != 503:
        assert_ok(answer)
        return False
    assert_error(answer, 503, "SERVICE_UNAVAILABLE")
    assert answer.headers["retry-after"] == "1"
    assert answer.headers["x-request-id"]
    return True


def slow_ones(served: Served, count: int) -> list["concurrent.futures.Future[httpx.Response]"]:
    return [slow_call(served, 1.5) for _ in range(count)]


def test_requests_beyond_the_limit_are_rejected_at_once(settings: Settings) -> None:
    with serving(settings) as served, served.client() as http:
        slow = slow_ones(served, 6)
        answers = [call.result(20) for call in slow]
        assert 1 <= sum(map(refused, answers)) <= 3
        assert not refused(http.post(REFRESH))


def test_monitoring_gets_responses_from_a_full_server(settings: Settings) -> None:
    with serving(settings) as served, served.client() as http:
        slow = slow_ones(served, 6)
        watched = {path: http.get(path).status_code for path in ("/healthz", "/readyz", "/metrics")}
        assert watched == dict.fromkeys(watched, 200)
        assert not all(call.done() for call in slow), "it was not full"
        for call in slow:
            call.result(20)


def test_queued_requests_count_too() -> None:
    """Requests without a pause never run at the same time: they are queued before they start."""
    before: list[int] = []

    async def app(scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] == "lifespan":
            for kind in ("startup", "shutdown"):
                await receive()
                await send({"type": f"lifespan.{kind}.complete"})
            return
        before.append(scope[BEFORE])
        if scope["path"] == "/long":
            time.sleep(0.5)  # noqa: ASYNC251  blocks the loop, like a read of SQLite
        await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"0")]})
        await send({"type": "http.response.body"})

    with EmbeddedServer(app) as server, ExitStack() as stack:
        callers = [stack.enter_context(socket.create_connection(("127.0.0.1", server.port), 20)) for _ in range(6)]

        def ask(caller: socket.socket, path: str) -> None:
            caller.sendall(f"GET {path} HTTP/1.1\r\nhost: x\r\n\r\n".encode())

        def end(caller: socket.socket) -> None:
            said = b""
            while not said.endswith(b"\r\n\r\n"):
                said += caller.recv(1000)
            assert said.startswith(b"HTTP/1.1 200 ")

        for caller in callers:  # let in
            ask(caller, "/")
            end(caller)
        before.clear()
        ask(callers[0], "/long")
        until(lambda: before, "the start of the long request")
        for caller in callers[1:]:
            ask(caller, "/")
        for caller in callers:
            end(caller)
    assert max(before) >= 4


def test_a_line_for_each_request_names_it_and_no_secret(tmp_path: Path) -> None:
    with running(tmp_path, "serve", "--demo", "--port", "0", ACCESS_LOG="true") as server:
        token = command(tmp_path, "users", "token", "alice@example.com").stdout.strip()
        with caller(server, token) as alice:
            named = {"X-Request-Id": "from-the-proxy-1"}
            assert_ok(alice.get("/api/v1/posts", params={"locationId": "111", "secret": "hunter2"}, headers=named))
            assert alice.get("/%0Aforged").status_code == 404
        server.process.terminate()
        out, err = server.process.communicate(timeout=patience(40))
    lines = [json.loads(line) for line in err.splitlines()]
    assert [(line["request_id"], line["route"], line["status"]) for line in lines if line["status"] == 200] == [
        ("from-the-proxy-1", "/api/v1/posts", 200)
    ]
    assert lines[-1]["route"] == "unknown"
    assert "forged" not in err
    assert {line["logger"] for line in lines} == {"profilesvc.access"}
    assert all(line["seconds"] > 0 for line in lines)
    assert "hunter2" not in err
    assert token not in err
    assert out == ""
