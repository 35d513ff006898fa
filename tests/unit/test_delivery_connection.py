"""Requests of deliveries on the event loop of the server and on that of Python: which responses are read, and how."""

import asyncio
from collections.abc import Callable

import pytest
import uvloop

from profilesvc.delivery.transport import Response, Transport, Unreachable
from profilesvc.domain.addresses import parse_target
from support.network.receivers import Respond, receiving, responding

LOOPS = pytest.mark.parametrize("loop", [uvloop.new_event_loop, asyncio.new_event_loop], ids=["uvloop", "asyncio"])
Loop = Callable[[], asyncio.AbstractEventLoop]


def raw(data: bytes, *, closes: bool = False) -> Respond:
    async def respond(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(data)
        await writer.drain()
        if closes:
            writer.close()

    return respond


def post(loop: Loop, respond: Respond, times: int = 1) -> list[Response]:
    """The responses to some requests over one transport."""

    async def run() -> list[Response]:
        made = Transport(allow_private=True)
        async with receiving(respond) as receiver:
            target = parse_target(receiver.url, allow_private=True)
            try:
                return [await made.post(1, target, {"X-A": "b"}, b"{}") for _ in range(times)]
            finally:
                await made.aclose()

    with asyncio.Runner(loop_factory=loop) as runner:
        return runner.run(run())


@LOOPS
def test_several_requests_get_their_responses(loop: Loop) -> None:
    assert [response.status for response in post(loop, responding(200), times=3)] == [200] * 3


@LOOPS
@pytest.mark.parametrize(
    ("data", "status"),
    [
        (b"HTTP/1.1 204 No Content\r\n\r\n", 204),
        (b"HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\nHTTP/1.1 201 Created\r\nContent-Length: 0\r\n\r\n", 201),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n", 200),
        (b"HTTP/1.0 500 No\r\n\r\nuntil the end", 500),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 99\r\n\r\nless", 200),
    ],
)
def test_a_response_is_read_by_its_status(loop: Loop, data: bytes, status: int) -> None:
    assert [response.status for response in post(loop, raw(data, closes=True))] == [status]


@LOOPS
@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"HTTP/1.1 200 OK\r\nA: ",
        b"SMTP ready\r\n",
        b"HTTP/1.1 200 OK\r\n" + b"A: " + b"x" * 100_000,
        b"HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: x\r\n\r\n",
    ],
    ids=["nothing", "half a head", "another protocol", "a long head", "an upgrade"],
)
def test_an_invalid_response_is_an_error(loop: Loop, data: bytes) -> None:
    with pytest.raises(Unreachable, match="not valid HTTP"):
        post(loop, raw(data, closes=True))
