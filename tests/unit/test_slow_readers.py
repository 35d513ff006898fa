"""Callers that do not take their answers: the server must not keep answers for them without end."""

import asyncio
import socket
from collections.abc import Callable
from typing import Any

import pytest
import uvicorn

from profilesvc.server.protocol import LEAST_TAKEN, LINGER_SECONDS, TAKE_SECONDS, Protocol, State

MB = 1024 * 1024


class Timer:
    """What the loop gives for a call that is to come."""

    def __init__(self, call: Callable[..., None], args: tuple[Any, ...]) -> None:
        self.call, self.args, self.cancelled = call, args, False

    def cancel(self) -> None:
        self.cancelled = True


class Loop:
    """A loop whose time is the test's: `pass_by` makes the calls that are due after that many seconds."""

    def __init__(self) -> None:
        self.timers: list[tuple[float, Timer]] = []

    def call_later(self, seconds: float, call: Callable[..., None], *args: Any) -> Timer:
        self.timers.append((seconds, timer := Timer(call, args)))
        return timer

    def pass_by(self, seconds: float) -> None:
        due = [timer for after, timer in self.timers if after <= seconds and not timer.cancelled]
        self.timers = [(after - seconds, timer) for after, timer in self.timers if after > seconds]
        for timer in due:
            timer.call(*timer.args)


class Transport:
    """A connection whose other side has `waiting` bytes to take."""

    def __init__(self) -> None:
        self.waiting, self.state = 0, "open"
        self.connection: socket.socket | None = None

    def get_write_buffer_size(self) -> int:
        return self.waiting

    def get_extra_info(self, name: str) -> socket.socket | None:
        return self.connection if name == "socket" else None

    def is_closing(self) -> bool:
        return self.state != "open"

    def abort(self) -> None:
        self.state = "aborted"

    def close(self) -> None:
        self.state = "closed"


@pytest.fixture
def loop() -> Loop:
    return Loop()


@pytest.fixture
def transport() -> Transport:
    return Transport()


@pytest.fixture
async def protocol(loop: Loop, transport: Transport) -> Protocol:
    given: Any = loop
    connection: Any = transport
    made = Protocol(uvicorn.Config(asyncio.sleep, log_config=None), State(), {}, given)
    made.connection_made(connection)
    made._stop_timer()  # the head of a request has a clock of its own
    return made


async def test_who_takes_nothing_is_cut_off(protocol: Protocol, loop: Loop, transport: Transport) -> None:
    transport.waiting = MB
    protocol.pause_writing()
    loop.pass_by(TAKE_SECONDS)
    assert transport.state == "aborted"


async def test_who_takes_a_byte_at_a_time_is_cut_off(protocol: Protocol, loop: Loop, transport: Transport) -> None:
    transport.waiting = MB
    protocol.pause_writing()
    transport.waiting -= LEAST_TAKEN
    loop.pass_by(TAKE_SECONDS)
    assert transport.state == "open"
    transport.waiting -= LEAST_TAKEN - 1
    loop.pass_by(TAKE_SECONDS)
    assert transport.state == "aborted"


async def test_who_has_taken_it_may_take_the_time(protocol: Protocol, loop: Loop, transport: Transport) -> None:
    transport.waiting = MB
    protocol.pause_writing()
    transport.waiting = 0
    protocol.resume_writing()
    loop.pass_by(10 * TAKE_SECONDS)
    assert transport.state == "open"


@pytest.mark.parametrize(("waiting", "state"), [(0, "closed"), (1, "aborted")])
async def test_an_idle_connection_does_not_wait_for_its_last_answer_to_be_taken(
    protocol: Protocol, transport: Transport, waiting: int, state: str
) -> None:
    transport.waiting = waiting
    protocol.timeout_keep_alive_handler()
    assert transport.state == state


async def test_requests_behind_an_answer_that_was_never_taken_end_with_it(protocol: Protocol) -> None:
    waiting: Any = object()
    protocol.pipeline.append(waiting)
    protocol.connection_lost(None)
    assert not protocol.pipeline


async def test_an_idle_connection_has_a_moment_before_the_process_closes_it(
    protocol: Protocol, loop: Loop, transport: Transport
) -> None:
    """Whoever is just sending a request on it would lose that."""
    protocol.shutdown()
    loop.pass_by(LINGER_SECONDS / 2)
    assert transport.state == "open"
    loop.pass_by(LINGER_SECONDS)
    assert transport.state == "closed"


async def test_a_request_that_came_while_the_process_was_busy_is_not_closed_upon(
    protocol: Protocol, loop: Loop, transport: Transport
) -> None:
    """It is with the system and not read yet: closing would reset the connection."""
    protocol.shutdown()
    ours, theirs = socket.socketpair()
    with ours, theirs:
        transport.connection = ours
        theirs.sendall(b"GET / HTTP/1.1")
        loop.pass_by(LINGER_SECONDS)
        assert transport.state == "open"
        ours.recv(100)
        loop.pass_by(0)
        assert transport.state == "closed"
