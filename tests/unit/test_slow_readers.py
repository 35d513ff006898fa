"""Slow clients: the server must not keep responses and connections for them forever."""

import asyncio
import socket
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest
import uvicorn

from profilesvc.server.protocol import HEAD_SECONDS, LINGER_SECONDS, MIN_READ_BYTES, READ_SECONDS, Protocol, State

MB = 1024 * 1024


class Loop:
    """A loop whose time is the test's: `advance` checks the connection every second and runs the calls that are due."""

    def __init__(self) -> None:
        self.now, self.calls, self.connections = 0.0, list[tuple[float, Callable[[], None]]](), list[Protocol]()

    def time(self) -> float:
        return self.now

    def call_later(self, seconds: float, call: Callable[[], None]) -> None:
        self.calls.append((self.now + seconds, call))

    def advance(self, seconds: float) -> None:
        end = self.now + seconds
        while self.now < end:
            self.now = min(self.now + 1, end)
            due = [call for at, call in self.calls if at <= self.now]
            self.calls = [(at, call) for at, call in self.calls if at > self.now]
            for call in due:
                call()
            for connection in self.connections:
                connection.check(self.now)


class Transport:
    """A connection whose client has not read `unread` bytes."""

    def __init__(self) -> None:
        self.unread, self.state = 0, "open"
        self.connection: socket.socket | None = None

    def get_write_buffer_size(self) -> int:
        return self.unread

    def get_extra_info(self, name: str) -> socket.socket | None:
        return self.connection if name == "socket" else None

    def is_closing(self) -> bool:
        return self.state != "open"

    def abort(self) -> None:
        self.state = "aborted"

    def close(self) -> None:
        self.state = "closed"

    def write(self, data: bytes) -> None:
        self.unread += len(data)


@pytest.fixture
def loop() -> Loop:
    return Loop()


@pytest.fixture
def transport() -> Transport:
    return Transport()


@pytest.fixture
async def protocol(loop: Loop, transport: Transport) -> Protocol:
    fake_loop: Any = loop
    connection: Any = transport
    made = Protocol(uvicorn.Config(asyncio.sleep, log_config=None), State(), {}, fake_loop)
    made.connection_made(connection)
    loop.connections.append(made)
    return made


def begin_response(protocol: Protocol, transport: Transport, unread: int) -> None:
    """Write so much of a response that the app has to pause."""
    cycle: Any = SimpleNamespace(response_complete=False)
    protocol.cycle, transport.unread = cycle, unread
    protocol.pause_writing()


async def test_a_client_that_reads_nothing_is_disconnected(
    protocol: Protocol, loop: Loop, transport: Transport
) -> None:
    begin_response(protocol, transport, MB)
    loop.advance(READ_SECONDS)
    assert transport.state == "open"
    loop.advance(1)  # the time counts from the first check
    assert transport.state == "aborted"


async def test_a_client_that_reads_a_byte_at_a_time_is_disconnected(
    protocol: Protocol, loop: Loop, transport: Transport
) -> None:
    begin_response(protocol, transport, MB)
    loop.advance(1)
    transport.unread -= MIN_READ_BYTES
    loop.advance(READ_SECONDS)
    assert transport.state == "open"
    transport.unread -= MIN_READ_BYTES - 1
    loop.advance(READ_SECONDS)
    assert transport.state == "aborted"


async def test_a_client_that_has_read_the_response_may_wait(
    protocol: Protocol, loop: Loop, transport: Transport
) -> None:
    begin_response(protocol, transport, MB)
    loop.advance(READ_SECONDS)
    transport.unread = 0
    protocol.resume_writing()
    loop.advance(10 * READ_SECONDS)
    assert transport.state == "open"


async def test_a_client_that_reads_one_response_after_the_other_is_not_disconnected(
    protocol: Protocol, loop: Loop, transport: Transport
) -> None:
    """Each check finds much that is unread, but not of the same response."""
    for _ in range(3 * READ_SECONDS):
        begin_response(protocol, transport, MB)
        loop.advance(1)
        protocol.resume_writing()
    assert transport.state == "open"


@pytest.mark.parametrize(("unread", "state"), [(0, "closed"), (1, "aborted")])
async def test_a_connection_that_closes_does_not_wait_forever_for_its_client_to_read(
    protocol: Protocol, loop: Loop, transport: Transport, unread: int, state: str
) -> None:
    transport.unread = unread
    protocol.timeout_keep_alive_handler()
    assert transport.state == "closed"
    loop.advance(2 * READ_SECONDS * bool(unread))
    assert transport.state == state


async def test_a_request_head_must_arrive_in_time(protocol: Protocol, loop: Loop, transport: Transport) -> None:
    loop.advance(HEAD_SECONDS - 1)
    assert transport.state == "open"
    loop.advance(1)
    assert transport.state == "closed"


async def test_queued_requests_are_dropped_with_the_connection(protocol: Protocol) -> None:
    queued: Any = object()
    protocol.pipeline.append(queued)
    protocol.connection_lost(None)
    assert not protocol.pipeline


async def test_beyond_the_limit_the_connection_that_has_waited_longest_is_closed(loop: Loop) -> None:
    state, fake_loop = State(), loop
    state.max_connections = 2
    transports: list[Any] = [Transport() for _ in range(4)]
    protocols: list[Any] = []
    for transport in transports:
        protocols.append(Protocol(uvicorn.Config(asyncio.sleep, log_config=None), state, {}, fake_loop))  # type: ignore[arg-type]
        protocols[-1].connection_made(transport)
        if transport is transports[0]:  # it is being answered
            state.waiting.pop(protocols[0])
    assert [transport.state for transport in transports] == ["open", "aborted", "aborted", "open"]


async def test_an_idle_connection_stays_open_for_a_moment_when_the_process_stops(
    protocol: Protocol, loop: Loop, transport: Transport
) -> None:
    """Its client may be sending a request, which would be lost."""
    protocol.shutdown()
    loop.advance(LINGER_SECONDS / 2)
    assert transport.state == "open"
    loop.advance(LINGER_SECONDS)
    assert transport.state == "closed"


async def test_a_connection_with_a_request_that_has_not_been_read_stays_open(
    protocol: Protocol, loop: Loop, transport: Transport
) -> None:
    """It arrived while the process was busy: closing would reset the connection."""
    protocol.shutdown()
    ours, theirs = socket.socketpair()
    with ours, theirs:
        transport.connection = ours
        theirs.sendall(b"GET / HTTP/1.1")
        loop.advance(LINGER_SECONDS)
        assert transport.state == "open"
        ours.recv(100)
        loop.advance(0.01)
        assert transport.state == "closed"
