"""Clients that close their side after the last request: they still read, so they get what they are owed."""

import contextlib
import logging
import socket
from collections.abc import Iterator
from typing import Any

import pytest

from profilesvc.server.protocol import MAX_PIPELINED
from profilesvc.server.serving import EmbeddedServer
from support.waiting import until_async
from support.wire import Served, exchange, seeded, serving


async def echo(scope: Any, receive: Any, send: Any) -> None:
    """Respond with the path."""
    if scope["type"] == "lifespan":
        for kind in ("startup", "shutdown"):
            await receive()
            await send({"type": f"lifespan.{kind}.complete"})
        return
    while (await receive()).get("more_body", False):
        pass
    length = str(len(scope["path"])).encode()
    await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", length)]})
    await send({"type": "http.response.body", "body": scope["path"].encode()})


@pytest.fixture(scope="module", params=["uvloop", "asyncio"])
def port(request: pytest.FixtureRequest) -> Iterator[int]:
    server = EmbeddedServer(echo)
    server._server.config.loop = request.param
    with server:
        yield server.port


def half_closed(port: int, data: bytes) -> list[bytes]:
    """The bodies of the responses; the server must close after the last one."""
    with socket.create_connection(("127.0.0.1", port), 20) as connection:
        connection.sendall(data)
        connection.shutdown(socket.SHUT_WR)
        received = b""
        while piece := connection.recv(65_536):
            received += piece
    return [response.partition(b"\r\n\r\n")[2] for response in received.split(b"HTTP/1.1 200 OK\r\n")[1:]]


def post(path: str) -> bytes:
    return f"POST {path} HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\nhi".encode()


@pytest.mark.parametrize(
    ("data", "owed"),
    [
        (post("/1"), [b"/1"]),
        (post("/1") + post("/2") + post("/3"), [b"/1", b"/2", b"/3"]),
        (post("/1") + post("/2") + post("/3")[:-1], [b"/1", b"/2"]),
        (post("/1") + post("/2")[:-1], [b"/1"]),
        (post("/1") + b"POST /2", [b"/1"]),
        (post("/1") + b"\x00\x01\r\n\r\n", [b"/1"]),
        (post("/1") + post("/2").replace(b"Content-Length: 2", b"Transfer-Encoding: chunked"), [b"/1"]),
        (post("/1")[:-1], []),
        (b"POST /1", []),
        (b"", []),
    ],
)
def test_every_complete_request_has_its_response(
    port: int, data: bytes, owed: list[bytes], caplog: pytest.LogCaptureFixture
) -> None:
    for _ in range(5):
        assert half_closed(port, data) == owed
    assert caplog.records == []


def test_a_client_that_leaves_in_the_middle_of_its_pipeline_is_no_error(
    port: int, caplog: pytest.LogCaptureFixture
) -> None:
    for _ in range(20):
        with socket.create_connection(("127.0.0.1", port), 20) as connection:
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\x01\0\0\0\0\0\0\0")  # a reset
            connection.sendall(post("/1") * 5)
    assert half_closed(port, post("/1")) == [b"/1"]
    assert caplog.records == []


@pytest.fixture(scope="module")
def served(sqlite_template: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with serving(seeded(sqlite_template, tmp_path_factory.mktemp("half"))) as running:
        yield running


def test_every_executed_request_has_its_response(served: Served) -> None:
    _, token = served.site()
    body = b"POST /api/v1/api-keys/heartbeat HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
    request = body + f"Authorization: Bearer {token}\r\nContent-Length: 2\r\n\r\n{{}}".encode()
    for count in (1, 3):
        answers = half_closed(served.server.port, request * count)
        assert [b'"status":"ok"' in answer for answer in answers] == [True] * count


async def test_malformed_requests_are_counted_and_write_no_log(
    served: Served, caplog: pytest.LogCaptureFixture
) -> None:
    """A line for each would let anybody fill the disk with a few bytes."""
    caplog.set_level(logging.INFO)
    before = refused(served)
    for _ in range(50):
        assert (await exchange(served.server.port, b"\x00\r\n\r\n")).status in {0, 400}
    # The metrics are cached for a moment.
    await until_async(lambda: refused(served) == before + 50, "50 refusals in the metrics", every=0.1)
    upgrade = b"GET /healthz HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n"
    assert (await exchange(served.server.port, upgrade)).status == 200
    assert [record for record in caplog.records if record.name.startswith("uvicorn.error")] == []


def refused(served: Served) -> float:
    """How many requests were refused before the app saw what they ask for."""
    with served.client() as http:
        lines = http.get("/metrics").text.splitlines()
    wanted = 'profilesvc_request_seconds_count{method="other",outcome="VALIDATION_ERROR",route="unknown",status="400"}'
    return sum(float(line.rpartition(" ")[2]) for line in lines if line.startswith(wanted))


def test_pipelined_requests_beyond_a_number_are_not_carried_out(port: int) -> None:
    """Each that waits costs memory, and nothing else counts them: the first are answered, then the connection ends."""
    assert half_closed(port, b"".join(post(f"/{n}") for n in range(MAX_PIPELINED + 1))) == [
        f"/{n}".encode() for n in range(MAX_PIPELINED + 1)
    ]
    with socket.create_connection(("127.0.0.1", port), 20) as connection:
        connection.sendall(b"".join(post(f"/{n}") for n in range(2_000)))
        received = b""
        with contextlib.suppress(ConnectionResetError):
            while piece := connection.recv(65_536):
                received += piece
    assert 0 < received.count(b"HTTP/1.1 200 OK\r\n") <= 2 * MAX_PIPELINED


@pytest.mark.parametrize("head", ["POST /1 HTTP/1.0\r\nContent-Length: 2", "POST /1 HTTP/1.1\r\nContent-Length: 0"])
def test_a_client_that_does_not_wait_for_100_continue_does_not_get_it(port: int, head: str) -> None:
    with socket.create_connection(("127.0.0.1", port), 20) as connection:
        connection.sendall(f"{head}\r\nHost: x\r\nExpect: 100-continue\r\n\r\n".encode())
        if head.endswith("2"):
            connection.sendall(b"hi")
        assert connection.recv(65_536).startswith(b"HTTP/1.1 200 OK")
