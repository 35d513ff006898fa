"""uvicorn's HTTP/1.1 protocol with the time and size limits for which uvicorn has no options.

The overrides use private names of uvicorn, so pyproject.toml bounds its version. Each protects callers.
"""

import asyncio
import math
import selectors
import socket
import sys
from collections import OrderedDict
from types import SimpleNamespace
from typing import Any, cast

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle
from uvicorn.server import ServerState

from profilesvc.server.scope import ARRIVED, BEFORE, LEFT, MALFORMED

HEAD_SECONDS = 10
MAX_HEAD_BYTES = 256 * 1024
MAX_PIPELINED = 16
READ_SECONDS, MIN_READ_BYTES = 10, 64 * 1024
DISCARD_SECONDS = 5
LINGER_SECONDS = 0.5


class State(ServerState):
    """The connections of a server.

    `waiting` holds those that wait for their clients, the longest first. If `is_stopping`, each connection closes after
    its next response, so that a busy client connects to another process before this one ends.
    """

    def __init__(self) -> None:
        super().__init__()
        self.waiting: OrderedDict[Protocol, None] = OrderedDict()
        self.max_connections = sys.maxsize
        self.is_stopping = False


def is_readable(*sockets: socket.socket) -> bool:
    """Return whether the system has data or connections that have not been read from these sockets."""
    with selectors.DefaultSelector() as selector:
        for each in sockets:
            selector.register(each.fileno(), selectors.EVENT_READ)
        return bool(selector.select(0))


class Protocol(HttpToolsProtocol):
    """uvicorn's protocol with limits for slow and hostile clients, and an orderly close.

    A request head must arrive within 10 s and must not exceed 256 KB. A client must read 64 KB of a response every
    10 s. A body stays in the system's buffer until the app asks for it.
    """

    server_state: State
    _running: RequestResponseCycle | None = None  # uvicorn's `cycle` is the newest request, which may be queued
    _in_head, _head_bytes = False, 0
    _waits_since = 0.0  # for a request head or, if `_is_discarding`, for the end of what the client sends
    _unread: tuple[int, float] | None = None  # bytes that the client has not read, and when they were counted
    _is_discarding = False  # everything else that the client sends is discarded

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as in uvicorn
        """Close the connection that has waited for its client the longest if there are too many connections."""
        super().connection_made(transport)
        self._responses = SimpleNamespace(  # the transport as responses use it
            write=transport.write, is_closing=transport.is_closing, close=self._close_after_response
        )
        self._waits_since = self.loop.time()
        waiting = self.server_state.waiting
        waiting[self] = None
        if len(self.connections) > self.server_state.max_connections:
            waiting.popitem(last=False)[0].transport.abort()

    def connection_lost(self, exc: Exception | None) -> None:
        """Forget every request of the connection; uvicorn would run those that are queued."""
        self.server_state.waiting.pop(self, None)
        self.pipeline.clear()
        if self._running is not None:
            self._running.disconnected = not self._running.response_complete
        super().connection_lost(exc)

    def eof_received(self) -> bool:  # type: ignore[override]  # uvicorn returns None, which closes at once
        """Close after the last response, because a client that has closed its side still reads."""
        return self._close_after_responses()

    def resume_writing(self) -> None:
        """Restart the clock of `check`: the client has read most of what was buffered."""
        self._unread = None
        super().resume_writing()

    def data_received(self, data: bytes) -> None:
        """Parse data, unless the connection is about to close, and limit the size of a request head."""
        if self._is_discarding:
            return
        was_in_head = self._in_head
        super().data_received(data)
        if was_in_head and self._in_head:
            self._head_bytes += len(data)
            if self._head_bytes > MAX_HEAD_BYTES:
                self.send_400_response("The request head is too large.")
        self._note_waiting()

    def _note_waiting(self) -> None:
        """Note whether the connection waits for its client, and stop reading a body that the app has not asked for."""
        is_responding = self._is_responding()
        if is_responding and not self.cycle.more_body:
            self.server_state.waiting.pop(self, None)
            return
        self.server_state.waiting.setdefault(self)
        if is_responding and not self.transport.is_closing():
            self.flow.pause_reading()

    def on_message_begin(self) -> None:
        """Start a request. A queued request needs memory long before it runs, so limit how many there are."""
        if len(self.pipeline) >= MAX_PIPELINED:
            raise RuntimeError("too many requests are queued")  # the parser ends, and data_received closes
        self._in_head, self._head_bytes = True, 0
        self._waits_since = self.loop.time()
        super().on_message_begin()
        unfinished = sum(not task.done() for task in self.tasks)  # a finished task is removed a moment later
        self.scope[BEFORE] = unfinished  # type: ignore[literal-required]  # our own name

    def on_header(self, name: bytes, value: bytes) -> None:
        """Add a header, but not a trailer: that could replace what was checked in the head."""
        if self._in_head:
            super().on_header(name, value)

    def on_headers_complete(self) -> None:
        """Start the request, or queue it."""
        self._in_head = False
        super().on_headers_complete()
        cycle = self.cycle
        cycle.transport = cast(asyncio.Transport, self._responses)
        if self.server_state.is_stopping:
            cycle.keep_alive = False
        if self.scope["http_version"] == "1.0" or (b"content-length", b"0") in self.headers:
            cycle.waiting_for_100_continue = False  # such a client does not wait for it (RFC 9110 §10.1.1)
        self.scope[ARRIVED] = lambda: (len(cycle.body), cycle.more_body)  # type: ignore[literal-required]  # our own name
        self.scope[LEFT] = lambda: cycle.disconnected  # type: ignore[literal-required]  # our own name

    def _start_asgi_task(self, cycle: RequestResponseCycle, app: Any) -> None:
        self._running = cycle
        super()._start_asgi_task(cycle, app)

    def on_response_complete(self) -> None:
        """Free the part of the body that the app has not read, and go on to the next request."""
        if self._running is not None:
            self._running.body = bytearray()
        super().on_response_complete()
        self._note_waiting()

    def send_400_response(self, msg: str) -> None:
        """Count malformed input, and respond to it unless responses to the requests before it come first."""
        self._in_head, self._is_discarding = False, True
        self.app_state.get(MALFORMED, lambda: None)()
        if not self._close_after_responses():
            super().send_400_response(msg)

    def _close_after_response(self) -> None:
        """Close, but first discard for 5 s what the client still sends.

        The system resets a connection that is closed with unread data, and the client may lose the response.
        """
        if self._running is not None and self._running.more_body and not self.transport.is_closing():
            self._is_discarding, self._waits_since = True, self.loop.time()
            self.transport.write_eof()
        else:
            self.transport.close()

    def _close_after_responses(self) -> bool:
        """Close after the response to the last complete request. Return False if every response has been sent."""
        if self.pipeline and self.cycle.more_body:  # the rest of this request will never arrive
            self.pipeline.popleft()
            self.cycle = self.pipeline[0][0] if self.pipeline else cast(RequestResponseCycle, self._running)
        if not self._is_responding() or self.cycle.more_body:
            return False
        self.cycle.keep_alive = False
        return True

    def shutdown(self) -> None:
        """Close after the response. Leave an idle connection open for a moment: a request may be on its way."""
        if self._is_responding():
            super().shutdown()
        else:
            self.loop.call_later(LINGER_SECONDS, self._close_if_idle)

    def _close_if_idle(self) -> None:
        if self._is_responding() or self.transport.is_closing():
            return
        connection = self.transport.get_extra_info("socket")
        if connection is not None and is_readable(connection):  # a request arrived while this process was busy
            self.loop.call_later(0, self._close_if_idle)
        else:
            self.transport.close()

    def _is_responding(self) -> bool:
        return self.cycle is not None and not self.cycle.response_complete

    def check(self, now: float) -> None:
        """Close the connection if its client is too slow. The server calls this every second."""
        if self.flow.write_paused or self.transport.is_closing():
            unread = self.transport.get_write_buffer_size()
            before, since = self._unread or (unread + MIN_READ_BYTES, now - READ_SECONDS)
            if now - since >= READ_SECONDS:
                self._unread = unread, now
                if before - unread < MIN_READ_BYTES:
                    self.transport.abort()
        elif not self._is_responding() and now - self._waits_since >= self._timeout():
            self.transport.close()

    def _timeout(self) -> float:
        """Return for how many seconds the connection may wait; between two requests uvicorn has its own timeout."""
        if self._is_discarding:
            return DISCARD_SECONDS
        return HEAD_SECONDS if self.timeout_keep_alive_task is None else math.inf
