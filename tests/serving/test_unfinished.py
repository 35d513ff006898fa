"""Requests whose bodies do not arrive: they are checked by their heads and do not block others."""

import asyncio
import contextlib
import socket
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import httpx
import psutil
import pytest

from profilesvc.settings import Settings
from support.api import assert_ok
from support.forks import Fork
from support.served_process import ServedProcess, forked, served_process
from support.waiting import until
from support.wire import KEYS, POSTS, Served, connect, exchange, seeded, serving, slow_call, user_token

PLACES = 10
FILES = 256
EXPECT = "Expect: 100-continue\r\n"
JSON = "Content-Type: application/json\r\n"
HEARTBEAT = "/api/v1/api-keys/heartbeat"
GRANT = "/api/v1/auth/token"


@pytest.fixture
def settings(sqlite_template: Path, tmp_path: Path) -> Settings:
    return seeded(sqlite_template, tmp_path, max_in_flight=PLACES)


@pytest.fixture
def served(settings: Settings) -> Iterator[Served]:
    with serving(settings) as running:
        yield running


def head(target: str, length: int = 100, more: str = JSON, token: str | None = None) -> bytes:
    """A request up to its body, which has that length; `target` is method and path."""
    auth = "" if token is None else f"Authorization: Bearer {token}\r\n"
    return f"{target} HTTP/1.1\r\nHost: x\r\n{auth}{more}Content-Length: {length}\r\n\r\n".encode()


def elsewhere(base_url: str, token: str) -> httpx.Client:
    """A caller with another address than everybody else in these tests."""
    headers, other = {"Authorization": f"Bearer {token}"}, httpx.HTTPTransport(local_address="127.0.0.2")
    return httpx.Client(base_url=base_url, headers=headers, timeout=20, transport=other)


@contextlib.contextmanager
def holding(port: int, requests: Sequence[bytes]) -> Iterator[list[socket.socket]]:
    """A connection for each of these beginnings of requests."""
    with contextlib.ExitStack() as stack:
        held = [stack.enter_context(connect(port)) for _ in requests]
        for connection, data in zip(held, requests, strict=True):
            connection.sendall(data)
        yield held


def test_unfinished_bodies_use_no_slot(served: Served) -> None:
    _, token = served.site()
    targets = ["POST /nowhere", f"POST {GRANT}", f"POST {HEARTBEAT}", f"POST {POSTS}", "POST /oauth2/token", "PUT /"]
    requests = [head(target, token=token) for target in targets] * PLACES
    requests += [head(f"POST {GRANT}"), head(f"PATCH {POSTS}")] * PLACES
    with holding(served.server.port, requests), elsewhere(served.server.base_url, served.user) as bob:
        for _ in range(2 * PLACES):
            assert_ok(bob.get("/api/v1/businesses"))
        with served.client() as alice:  # of the same address as the others
            assert_ok(alice.get("/api/v1/businesses"))
            assert "profilesvc_requests_in_flight 1.0\n" in alice.get("/metrics").text


def test_one_address_leaves_slots_for_others(served: Served) -> None:
    slow = [slow_call(served, 2) for _ in range(2 * PLACES)]
    until(lambda: sum(call.done() for call in slow) >= PLACES, "the refusals")
    with elsewhere(served.server.base_url, served.user) as bob:
        assert_ok(bob.get("/api/v1/businesses"))
    assert not all(call.done() for call in slow), "the places were free"
    refused = [call.result(20).status_code for call in slow].count(503)
    assert PLACES < refused < 2 * PLACES


@pytest.mark.parametrize("expect", ["", EXPECT])
@pytest.mark.parametrize(
    ("target", "length", "more", "status"),
    [
        ("POST /api/v1/nowhere", 9, JSON, 404),
        (f"PUT {GRANT}", 9, JSON, 405),
        (f"POST {HEARTBEAT}", 17_000_000, JSON, 413),
        (f"POST {GRANT}", 65_537, JSON, 413),
        (f"POST {GRANT}", 2**64 - 1, JSON, 413),
        ("POST /oauth2/token", 65_537, JSON, 413),
        (f"POST {HEARTBEAT}", 9, "Content-Type: text/plain\r\n", 415),
        (f"POST {HEARTBEAT}", 9, JSON + "Content-Encoding: gzip\r\n", 415),
        ("POST /oauth2/token", 9, "Content-Type: application/x-www-form-urlencoded\r\nContent-Encoding: br\r\n", 415),
        ("POST /oauth2/token", 9, JSON, 400),
        (f"POST {HEARTBEAT}", 9, JSON, 401),
        (f"POST {KEYS}", 9, JSON, 401),
    ],
)
async def test_a_head_is_checked_before_the_body_arrives(
    served: Served, target: str, length: int, more: str, status: int, expect: str
) -> None:
    seen = await exchange(served.server.port, head(target, length, more + expect))
    assert (seen.status, seen.continued) == (status, False)
    assert seen.closed is bool(expect)  # the client may go on with the body or without


async def test_permissions_are_checked_before_the_body_arrives(served: Served) -> None:
    _, token = served.site()
    seen = await exchange(served.server.port, head(f"POST {KEYS}", 9, JSON + EXPECT, token))
    assert (seen.status, seen.continued) == (403, False)


def test_limits_are_checked_before_the_body_arrives(sqlite_template: Path, tmp_path: Path) -> None:
    limits = {"enabled": True, "tokens_per_address": "1/hour", "writes_per_user": "1/hour"}
    with serving(seeded(sqlite_template, tmp_path, limits=limits)) as served:
        for target, token in ((f"POST {GRANT}", None), (f"POST {POSTS}", served.user)):
            for status in (400, 429):
                request = head(target, 2, JSON + EXPECT, token)
                seen = asyncio.run(exchange(served.server.port, request + b"{}" * (status == 400)))
                assert seen.status == status, target
            assert not seen.continued


async def test_a_key_that_is_revoked_while_its_body_is_awaited_is_rejected(served: Served) -> None:
    key, token = served.site()
    reader, writer = await asyncio.open_connection("127.0.0.1", served.server.port)
    writer.write(head(f"POST {HEARTBEAT}", 2, JSON + EXPECT, token))
    assert (await reader.readline()).startswith(b"HTTP/1.1 100 ")
    with served.client() as alice:
        assert alice.delete(f"{KEYS}/{key['client_id']}").is_success
    writer.write(b"{}")
    await reader.readline()
    assert (await reader.readline()).startswith(b"HTTP/1.1 401 ")
    writer.close()


def test_an_unread_body_does_not_use_memory(settings: Settings) -> None:
    """Each connection sends nearly 256 KB; without a token, and for a form that may have 64 KB."""
    requests = [head(f"POST {KEYS}", 262_144) + bytes(262_000), head(f"POST {GRANT}", 262_144) + bytes(262_000)] * 150
    with served_process(settings, start=forked) as process:
        held = serving_process(process)
        with holding(process.port, requests[:4]):  # what it needs for the first ones it needs once
            time.sleep(0.3)
        before = held.memory_info().rss
        with contextlib.ExitStack() as stack:
            connections = [stack.enter_context(connect(process.port)) for _ in requests]
            for connection, data in zip(connections, requests, strict=True):
                connection.sendall(data)
                assert connection.recv(12)[9:] in {b"401", b"413"}
            grown = held.memory_info().rss - before
    assert grown < sum(map(len, requests)) / 4, f"{grown} bytes more"


def few_files(program: str, arguments: Sequence[str], settings: Settings) -> Fork:
    """A process that may have few files open."""
    limit = f"import resource\nresource.setrlimit(resource.RLIMIT_NOFILE, ({FILES}, {FILES}))\n"
    return forked(limit + program, arguments, settings)


def test_waiting_connections_do_not_block_others(settings: Settings) -> None:
    user = asyncio.run(user_token(settings))
    whole = b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n"  # its connection is kept alive
    with served_process(settings, start=few_files) as process, contextlib.ExitStack() as stack:
        for beginning in (b"", whole, whole[:-10], head(f"POST {GRANT}")):
            for _ in range(FILES):
                connection = stack.enter_context(connect(process.port))
                connection.sendall(beginning)
                if beginning == whole:
                    assert connection.recv(1000)
            for _ in range(5):
                assert_ok(ask_once(process, user))
            assert serving_process(process).num_fds() <= FILES * 3 // 4 + 10, beginning


def serving_process(process: ServedProcess) -> psutil.Process:
    """The child of this process that listens on the port."""
    return next(
        each
        for each in psutil.Process().children(recursive=True)
        if process.port
        in {connection.laddr.port for connection in each.net_connections() if connection.status == "LISTEN"}
    )


def ask_once(process: ServedProcess, user: str) -> httpx.Response:
    with process.client(user) as http:
        return http.get("/api/v1/businesses")


def test_a_rejection_reaches_a_client_that_is_still_sending(served: Served) -> None:
    """Closing a connection with something unread resets it, and the response may be lost with it."""
    request = f"POST {GRANT} HTTP/1.1\r\nHost: x\r\nHost: y\r\nContent-Length: 400000\r\n\r\n".encode()
    for _ in range(5):
        with connect(served.server.port) as connection:
            connection.sendall(request)
            time.sleep(0.02)  # the response is under way now
            for _ in range(4):
                connection.sendall(bytes(100_000))
            received = b""
            while piece := connection.recv(65_536):
                received += piece
            assert received.startswith(b"HTTP/1.1 400 ")
            assert received.endswith(b"}}")
