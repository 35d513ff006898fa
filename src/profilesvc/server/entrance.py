"""Where connections come in."""

import asyncio
import logging
import math
import os
import socket
import sys
from collections.abc import Callable
from typing import Any, Protocol

BACKLOG = 2048
AT_ONCE = 32
PAUSE_SECONDS = 0.02
_TELL_SECONDS = 10
_log = logging.getLogger(__name__)


def most_files() -> int:
    """How many files the process may have open; a huge number where nobody limits them."""
    try:
        import resource
    except ImportError:  # Windows
        return sys.maxsize
    limit = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    return sys.maxsize if limit == resource.RLIM_INFINITY else limit


def listen(sockets: list[socket.socket]) -> None:
    """Have the system accept connections. OSError if another socket listens on the same port.

    Connections inherit the option: those that are left when a server ends must not keep the next one from its port.
    """
    for each in sockets:
        each.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        each.listen(BACKLOG)


class Guests(Protocol):
    """The open connections."""

    def count(self) -> int:
        """How many there are."""

    def close_one(self) -> bool:
        """Close one that waits for its client. False if there is none."""


class Entrance:
    """Accepts connections, several in a turn of the loop.

    uvloop accepts one: of a hundred that come at once, as when sites keep the same minute, the last would wait for a
    hundred turns, each with the requests of those before it. Of processes that share the listeners each accepts one,
    too: the one that wakes first would take them all, and keep them. A quarter of the files is left for the work of
    those who are in: beyond that, one that waits for its client is closed for each that comes.
    """

    def __init__(
        self,
        listeners: list[socket.socket],
        protocol: Callable[[], asyncio.Protocol],
        guests: Guests,
        *,
        shared: bool = False,
    ) -> None:
        self._listeners, self._protocol, self._at_once = listeners, protocol, 1 if shared else AT_ONCE
        self._guests, self._is_over = guests, False
        self._loop = asyncio.get_running_loop()
        self._arriving: set[asyncio.Task[Any]] = set()
        with open(os.devnull) as probe:  # the system gives the lowest free number
            self._most = max(most_files() * 3 // 4 - probe.fileno(), 1)
        self._told_at = -math.inf
        for listener in listeners:
            self._watch(listener)

    def _watch(self, listener: socket.socket) -> None:
        if listener.fileno() >= 0:
            self._loop.add_reader(listener, self._let_in, listener, self._at_once)

    def _has_room(self) -> bool:
        return self._guests.count() + len(self._arriving) <= self._most or self._guests.close_one()

    def _let_in(self, listener: socket.socket, most: int) -> None:
        if self._is_over and not self._has_room():
            self._pause(listener)
            return
        self._is_over = False
        for _ in range(most):
            try:
                connection, _ = listener.accept()
            except (BlockingIOError, InterruptedError, ConnectionAbortedError):
                return
            except OSError as error:  # no file or memory is left
                self._tell(error)
                self._pause(listener)
                return
            connection.setblocking(False)
            arrival = self._loop.create_task(self._arrive(connection))
            self._arriving.add(arrival)
            arrival.add_done_callback(self._arriving.discard)
            if not self._has_room():
                self._is_over = True
                self._pause(listener)
                return

    def _pause(self, listener: socket.socket) -> None:
        self._loop.remove_reader(listener)
        self._loop.call_later(PAUSE_SECONDS, self._watch, listener)

    def _tell(self, error: OSError) -> None:
        if self._loop.time() - self._told_at > _TELL_SECONDS:
            self._told_at = self._loop.time()
            _log.error("no connection can be let in: %s", error)

    async def _arrive(self, connection: socket.socket) -> None:
        try:
            await self._loop.connect_accepted_socket(self._protocol, connection)
        except OSError:  # it has left already
            connection.close()

    async def close(self) -> None:
        """Accept everything left in the backlog; closing the last listener would reset those connections."""
        self._most, self._is_over = sys.maxsize, False
        for listener in self._listeners:
            self._loop.remove_reader(listener)
            self._let_in(listener, 2 * BACKLOG)  # more than the system lets wait
            listener.close()
        await asyncio.gather(*self._arriving, return_exceptions=True)
