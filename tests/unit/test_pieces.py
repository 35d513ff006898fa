"""The bytes that the protocol writes for a response, and the requests that it counts as waiting."""

import asyncio
from typing import Any

import uvicorn

from profilesvc.server.protocol import Protocol, State
from profilesvc.server.scope import BEFORE
from support.waiting import turns

GET = b"GET / HTTP/1.1\r\nHost: a.test\r\n\r\n"
START = {"type": "http.response.start", "status": 200}
LENGTH = [(b"content-length", b"5")]
BODY = {"type": "http.response.body", "body": b"bread"}


class Transport:
    """A connection that notes what it is given."""

    def __init__(self) -> None:
        self.writes: list[bytes] = []
        self.is_closed = False

    def write(self, data: bytes) -> None:
        assert not self.is_closed
        self.writes.append(data)

    def get_extra_info(self, _name: str) -> None:
        return None

    def get_write_buffer_size(self) -> int:
        return 0

    def is_closing(self) -> bool:
        return self.is_closed

    def close(self) -> None:
        self.is_closed = True

    def pause_reading(self) -> None:
        """All has been read."""

    def resume_reading(self) -> None:
        """All has been read."""


async def ended(state: State) -> None:
    """No request is being answered any more."""
    await turns(100)
    assert not state.tasks


async def answered(app: Any, request: bytes) -> Transport:
    """The parts that an app sends."""
    transport: Any = Transport()
    state = State()
    protocol = Protocol(uvicorn.Config(app, log_config=None, date_header=False), state, {})
    protocol.connection_made(transport)
    protocol.data_received(request)
    await ended(state)
    protocol.connection_lost(None)
    return transport  # type: ignore[no-any-return]


def pieces(headers: list[tuple[bytes, bytes]], *bodies: bytes) -> Any:
    """An app that answers in so many pieces."""

    async def app(_scope: Any, _receive: Any, send: Any) -> None:
        await send({**START, "headers": headers})
        for number, body in enumerate(bodies, 1):
            await send({**BODY, "body": body, "more_body": number < len(bodies)})

    return app


async def test_the_head_of_an_interrupted_response_is_sent() -> None:
    """Nothing at all would look like a connection that was lost before the request: clients repeat it."""

    async def app(_scope: Any, _receive: Any, send: Any) -> None:
        await send({**START, "headers": LENGTH})
        raise RuntimeError("on purpose")

    transport = await answered(app, GET)
    assert transport.writes == [b"HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\n"]
    assert transport.is_closed


async def test_pipelined_requests_are_answered_one_after_the_other() -> None:
    transport = await answered(pieces(LENGTH, b"bread"), 3 * GET)
    assert b"".join(transport.writes) == 3 * b"HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nbread"


async def test_requests_that_are_answered_do_not_count_as_waiting() -> None:
    """They stay among the server's tasks for a turn: of a hundred at once each would take two places."""
    before: list[int] = []

    async def app(scope: Any, _receive: Any, send: Any) -> None:
        before.append(scope[BEFORE])
        await send({**START, "headers": LENGTH})
        await send(BODY)

    transport: Any = Transport()
    state = State()
    answered, waits = asyncio.ensure_future(asyncio.sleep(0)), asyncio.ensure_future(asyncio.sleep(60))
    await answered
    state.tasks |= {answered, waits}
    protocol = Protocol(uvicorn.Config(app, log_config=None, date_header=False), state, {})
    protocol.connection_made(transport)
    protocol.data_received(GET)
    await asyncio.sleep(0.01)
    waits.cancel()
    protocol.connection_lost(None)
    assert before == [1]
