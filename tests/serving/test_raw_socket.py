"""Raw bytes on a real socket: nothing makes the service fail, hang, or leave the envelope (A083 to A096)."""

import asyncio
import base64
import contextlib
import socket
from collections.abc import Iterator
from pathlib import Path

import orjson
import pytest

from conftest import BASE_URL
from serving.raw_requests import CASES, CLOSED, SERVED, SILENT, Case, Route, message, routes
from support.api import assert_ok
from support.waiting import deadline, until_async
from support.wire import POSTS, Exchange, Served, connect, exchange, seeded, serving


@pytest.fixture(scope="module")
def served(sqlite_template: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with serving(seeded(sqlite_template, tmp_path_factory.mktemp("raw"))) as running:
        yield running


@pytest.fixture(scope="module")
def targets(served: Served) -> list[Route]:
    """Every POST and PATCH route."""
    key, token = served.site()
    with served.client() as http:
        post = assert_ok(http.post(POSTS, json={"summary": "Raw"}), 201)["name"].rpartition("/")[2]
    return list(routes(served.user, token, key, post))


async def settled(served: Served) -> None:
    """Wait until no request is left running."""
    await until_async(lambda: served.in_flight.count == 0, "the end of all requests", seconds=2)


def verdict(case: Case, route: Route, seen: Exchange) -> list[str]:
    """The problems with the outcome."""
    wrong = [problem for reply in seen.replies if (problem := reply.problem())]
    if seen.status not in case.allowed:
        wrong.append(f"{seen.status}, not in {sorted(case.allowed)}: {seen.replies[:1]}")
    if seen.status == CLOSED and not seen.closed:
        wrong.append("neither answered nor closed")
    if len(seen.replies) > case.answers:
        wrong.append(f"{len(seen.replies)} answers: {seen.replies}")
    return [f"{route.method} {route.path}: {problem}" for problem in wrong]


async def attack(served: Served, case: Case, targets: list[Route]) -> list[str]:
    """Send a case to every route it applies to, and a good request after each."""
    good = message(next(iter(targets)), line=b"GET /api/v1/businesses HTTP/1.1\r\n", framing=b"", media=b"", body=b"")

    async def one(route: Route) -> list[str]:
        seen = await exchange(served.server.port, case.make(route), answers=case.answers)
        after = await exchange(served.server.port, good, after=0)
        return verdict(case, route, seen) + ([] if after.status == 200 else [f"a good request answers {after.status}"])

    outcomes = await asyncio.gather(*(one(route) for route in targets if case.applies(route)))
    return [problem for outcome in outcomes for problem in outcome]


def test_the_corpus_is_large_and_has_no_case_twice() -> None:
    assert len(CASES) >= 120
    assert len({case.name for case in CASES}) == len(CASES)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
async def test_A083_to_A096_is_rejected_or_gets_the_envelope(served: Served, targets: list[Route], case: Case) -> None:
    assert await attack(served, case, targets) == []
    await settled(served)


async def test_A091_silence_is_ended_within_15_seconds(served: Served, targets: list[Route]) -> None:
    async with deadline(15, "the end of silent connections"):
        trickle = asyncio.create_task(trickled(served))
        outcomes = await asyncio.gather(*(attack(served, case, targets) for case in SILENT))
        await trickle
    assert [problem for outcome in outcomes for problem in outcome] == []
    await settled(served)


async def trickled(served: Served) -> None:
    """Send a head that never ends, a line at a time, until the server has enough of it."""
    reader, writer = await asyncio.open_connection("127.0.0.1", served.server.port)
    writer.write(b"POST /api/v1/auth/token HTTP/1.1\r\n")
    while not reader.at_eof():
        with contextlib.suppress(TimeoutError, ConnectionError):
            writer.write(b"X-A: b\r\n")
            await asyncio.wait_for(reader.read(), 0.3)
    writer.close()


async def test_an_endless_head_is_not_collected_forever(served: Served) -> None:
    endless = b"POST /api/v1/auth/token HTTP/1.1\r\nHost: x\r\n" + b"X-A: " + b"a" * 8_000_000
    seen = await exchange(served.server.port, endless, wait=5)
    assert seen.closed
    assert seen.status in {CLOSED, 400}


async def test_expect_is_answered_before_the_body(served: Served, targets: list[Route]) -> None:
    for route in (route for route in targets if route.body is not None):
        seen = await exchange(served.server.port, message(route, extra=b"Expect: 100-continue\r\n"))
        assert seen.continued, route.path


async def test_data_after_a_request_does_not_get_its_response(served: Served, targets: list[Route]) -> None:
    """The request was carried out, so that its caller must not read a 400."""
    for route in targets:
        seen = await exchange(served.server.port, message(route) + b"\x00\x01\r\n\r\n")
        assert seen.status in SERVED, route.path
        assert seen.closed


async def test_trailers_are_not_headers(served: Served, targets: list[Route]) -> None:
    """Even when they come after the head was read, or with it."""
    route = next(route for route in targets if route.path == "/api/v1/api-keys/heartbeat")
    tail = b"0\r\nAuthorization: Bearer %s\r\n\r\n" % (route.token or "").encode()
    body = b"%x\r\n%s\r\n" % (len(route.body or b""), route.body) + tail
    seen = await exchange(
        served.server.port, message(route, auth=b"", framing=b"Transfer-Encoding: chunked\r\n", body=body)
    )
    assert seen.status == 401


@pytest.mark.parametrize("upgrade", [b"websocket", b"h2c"])
async def test_an_upgrade_is_declined(served: Served, upgrade: bytes) -> None:
    head = b"GET /healthz HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: %s\r\n" % upgrade
    seen = await exchange(
        served.server.port, head + b"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"
    )
    assert (seen.status, seen.closed) == (200, True)


@pytest.mark.parametrize(
    ("host", "extra"),
    [
        (b"Host: evil.example\r\n", b""),
        (b"Host: profiles.test\r\n", b"X-Forwarded-Host: evil.example\r\nX-Forwarded-Proto: https\r\n"),
        (b"Host: profiles.test\r\n", b"Forwarded: host=evil.example;proto=https\r\n"),
    ],
)
async def test_issuer_and_audience_never_come_from_the_request(
    served: Served, targets: list[Route], host: bytes, extra: bytes
) -> None:
    route = next(route for route in targets if route.path == "/api/v1/auth/token")
    line = b"POST http://evil.example/api/v1/auth/token HTTP/1.1\r\n"
    seen = await exchange(served.server.port, message(route, line=line, host=host, extra=extra))
    payload = orjson.loads(seen.replies[0].body)["data"]["access_token"].split(".")[1]
    claims = orjson.loads(base64.urlsafe_b64decode(payload + "=="))
    assert claims["iss"] == BASE_URL
    assert "evil" not in orjson.dumps(claims).decode()


@pytest.mark.parametrize("reset", [False, True])
async def test_a_caller_that_leaves_in_the_middle_leaves_nothing_behind(
    served: Served, targets: list[Route], reset: bool
) -> None:
    for route in targets:
        for data in (message(route), message(route)[:-1], message(route, framing=b"Content-Length: 999\r\n")):
            connection = connect(served.server.port)
            if reset:
                connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\x01\0\0\0\0\0\0\0")
            connection.sendall(data)
            connection.close()
    await settled(served)
