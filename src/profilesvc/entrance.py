"""Where connections come in."""

import asyncio
import logging
import socket
from collections.abc import Callable
from typing import Any

BACKLOG = 2048
AT_ONCE = 32
FULL_SECONDS = 1
_log = logging.getLogger(__name__)


class Entrance:
    """Lets connections in, several in a turn of the loop.

    uvloop lets in one: of a hundred that come at once, as when sites keep the same minute, the last would wait for a
    hundred turns, each with the requests of those before it. Of processes that share the listeners each lets in one,
    too: whoever wakes first would take them all, and keep them.
    """

    def __init__(
        self, listeners: list[socket.socket], protocol: Callable[[], asyncio.Protocol], *, shared: bool = False
    ) -> None:
        self._listeners, self._protocol, self._at_once = listeners, protocol, 1 if shared else AT_ONCE
        self._loop = asyncio.get_running_loop()
        self._arriving: set[asyncio.Task[Any]] = set()
        for listener in listeners:
            self._watch(listener)

    def _watch(self, listener: socket.socket) -> None:
        if listener.fileno() >= 0:
            self._loop.add_reader(listener, self._let_in, listener, self._at_once)

    def _let_in(self, listener: socket.socket, most: int) -> None:
        for _ in range(most):
            try:
                connection, _ = listener.accept()
            except (BlockingIOError, InterruptedError, ConnectionAbortedError):
                return
            except OSError:  # no file or memory is left; who waits is let in when there is
                _log.exception("no connection can be let in")
                self._loop.remove_reader(listener)
                self._loop.call_later(FULL_SECONDS, self._watch, listener)
                return
            connection.setblocking(False)
            arrival = self._loop.create_task(self._arrive(connection))
            self._arriving.add(arrival)
            arrival.add_done_callback(self._arriving.discard)

    async def _arrive(self, connection: socket.socket) -> None:
        try:
            await self._loop.connect_accepted_socket(self._protocol, connection)
        except OSError:  # it has left already
            connection.close()

    async def close(self) -> None:
        """Let in who waits, as closing the last listener would reset them, and what they have sent with them."""
        for listener in self._listeners:
            self._loop.remove_reader(listener)
            self._let_in(listener, BACKLOG)
            listener.close()
        await asyncio.gather(*self._arriving, return_exceptions=True)
