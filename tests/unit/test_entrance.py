"""Connections that come at once are let in at once, and one that cannot be let in is let in later."""

import asyncio
import contextlib
import errno
import logging
import resource
import socket
import sys
from collections.abc import Iterator
from typing import Any

import pytest

from profilesvc.server import entrance
from profilesvc.server.entrance import AT_ONCE, PAUSE_SECONDS, Entrance, most_files


class Listener(socket.socket):
    """A listening socket of a process that may have no file left."""

    is_full = False

    def accept(self) -> tuple[socket.socket, Any]:
        if self.is_full:
            raise OSError(errno.EMFILE, "Too many open files")
        return super().accept()


class Guest(asyncio.Protocol):
    """Somebody who was let in."""

    def __init__(self, transports: list[asyncio.BaseTransport]) -> None:
        self._transports = transports

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transports.append(transport)


class Guests:
    """Who was let in."""

    def __init__(self) -> None:
        self.transports: list[asyncio.BaseTransport] = []
        self.waiting = 0

    def count(self) -> int:
        return len(self.transports)

    def close_one(self) -> bool:
        self.waiting -= 1
        return self.waiting >= 0

    def protocol(self) -> asyncio.Protocol:
        return Guest(self.transports)

    async def turns_until(self, count: int) -> int:
        """How many turns of the loop it takes until so many are in, up to 50."""
        for turns in range(50):
            if len(self.transports) >= count:
                return turns
            await asyncio.sleep(0)
        return 50

    async def until(self, count: int) -> int:
        """How many are in when so many are, or after a long while."""
        for _ in range(250):
            if len(self.transports) >= count:
                break
            await asyncio.sleep(PAUSE_SECONDS)
        return len(self.transports)


@pytest.fixture
def listener() -> Iterator[Listener]:
    with Listener() as made:
        made.bind(("127.0.0.1", 0))
        made.listen(256)
        made.setblocking(False)
        yield made


@pytest.fixture
def guests() -> Guests:
    return Guests()


@contextlib.contextmanager
def callers(listener: socket.socket, count: int) -> Iterator[list[socket.socket]]:
    """Connected as far as the system is concerned."""
    with contextlib.ExitStack() as stack:
        yield [stack.enter_context(socket.create_connection(listener.getsockname())) for _ in range(count)]


async def leave(guests: Guests) -> None:
    for transport in guests.transports:
        transport.close()
    await asyncio.sleep(0.01)


async def test_who_comes_at_once_is_let_in_within_a_few_turns(listener: Listener, guests: Guests) -> None:
    with callers(listener, 2 * AT_ONCE):
        entry = Entrance([listener], guests.protocol, guests)
        assert await guests.turns_until(2 * AT_ONCE) < AT_ONCE
        await entry.close()
        await leave(guests)


async def test_who_shares_the_door_takes_one_in_a_turn(listener: Listener, guests: Guests) -> None:
    """Else the process that wakes first has all callers, and the others none."""
    with callers(listener, 20):
        entry = Entrance([listener], guests.protocol, guests, shared=True)
        assert await guests.turns_until(20) >= 20
        await entry.close()
        await leave(guests)


async def test_who_waits_when_it_closes_is_let_in(listener: Listener, guests: Guests) -> None:
    with callers(listener, 100):
        entry = Entrance([listener], guests.protocol, guests)
        await entry.close()
        assert len(guests.transports) == 100
        assert listener.fileno() < 0
        await leave(guests)


async def test_without_a_file_for_it_a_caller_waits(
    listener: Listener, guests: Guests, caplog: pytest.LogCaptureFixture
) -> None:
    listener.is_full = True
    with callers(listener, 1), caplog.at_level(logging.ERROR):
        entry = Entrance([listener], guests.protocol, guests)
        await asyncio.sleep(10 * PAUSE_SECONDS)
        assert not guests.transports
        assert caplog.text.count("no connection can be let in") == 1
        listener.is_full = False
        await asyncio.sleep(10 * PAUSE_SECONDS)
        assert len(guests.transports) == 1
        await entry.close()
        await leave(guests)


async def test_it_closes_while_there_is_no_file(listener: Listener, guests: Guests) -> None:
    listener.is_full = True
    with callers(listener, 1):
        entry = Entrance([listener], guests.protocol, guests)
        await asyncio.sleep(PAUSE_SECONDS / 2)
        await entry.close()
        await asyncio.sleep(5 * PAUSE_SECONDS)  # it would have looked again
    assert not guests.transports


async def test_files_are_left_to_those_who_are_in(
    listener: Listener, guests: Guests, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(entrance, "most_files", lambda: 0)
    with callers(listener, 100):
        entry = Entrance([listener], guests.protocol, guests)
        assert await guests.turns_until(3) == 50
        await asyncio.sleep(5 * PAUSE_SECONDS)
        assert len(guests.transports) == 2
        entry._most = 100  # files have become free
        assert await guests.until(100) == 100
        await entry.close()
        await leave(guests)


async def test_beyond_the_room_one_that_waits_leaves_for_each_that_comes(
    listener: Listener, guests: Guests, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(entrance, "most_files", lambda: 0)
    guests.waiting = 60
    with callers(listener, 100):
        entry = Entrance([listener], guests.protocol, guests)
        assert await guests.until(62) == 62
        assert guests.waiting < 0
        await entry.close()
        assert len(guests.transports) == 100
        await leave(guests)


def test_no_limit_on_files_is_a_huge_one(monkeypatch: pytest.MonkeyPatch) -> None:
    assert most_files() > 0
    monkeypatch.setattr(resource, "getrlimit", lambda _of: (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    assert most_files() == sys.maxsize


async def test_who_has_left_again_harms_nobody(listener: Listener, guests: Guests) -> None:
    with callers(listener, 1) as (caller,):
        caller.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\x01\x00\x00\x00\x00\x00\x00\x00")  # a reset
    with callers(listener, 1):
        entry = Entrance([listener], guests.protocol, guests)
        await guests.turns_until(2)
        await entry.close()
        assert guests.transports
        await leave(guests)
