"""HTTP/1.1 as uvicorn speaks it, with the limits and the order at the end that it has not."""

import asyncio
import selectors
from collections import OrderedDict
from collections.abc import Callable
from typing import Any, cast

import httptools
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle
from uvicorn.server import ServerState

from profilesvc.server.scope import ARRIVED, BEFORE, MALFORMED

HEAD_SECONDS = 10
LINGER_SECONDS = 0.25
DISCARD_SECONDS = 5
MAX_HEAD_BYTES = 256 * 1024
TAKE_SECONDS = 10
LEAST_TAKEN = 64 * 1024
MAX_PIPELINED = 16
MAX_JOINED = 64 * 1024
_INTERIM = b"HTTP/1.1 1"  # 100 Continue, which has no body to wait for


class TooManyPipelinedError(Exception):
    """A client has sent more requests than may wait on one connection."""


class State(ServerState):
    """What the connections of a server share. `waiting`: those that wait for their clients, the longest first."""

    def __init__(self) -> None:
        super().__init__()
        self.waiting: OrderedDict[Protocol, None] = OrderedDict()

    def count(self) -> int:
        """How many connections there are."""
        return len(self.connections)

    def close_one(self) -> bool:
        """Close the connection that has waited for its client for the longest time. False if none waits."""
        if not self.waiting:
            return False
        self.waiting.popitem(last=False)[0].transport.abort()
        return True


class Protocol(HttpToolsProtocol):
    """uvicorn's protocol, which by itself waits forever for a head that does not end and takes trailers for headers.

    A head has 10 s, and 256 KB beyond its first piece; heads that are whole but too large are the app's to answer.
    A body that nobody has asked for stays in the system's buffer. uvicorn also waits forever for a response to be
    taken, and keeps it: here 64 KB must be taken every 10 s.
    """

    server_state: State
    _in_head, _head_bytes = False, 0
    _head_timer: asyncio.TimerHandle | None = None
    _take_timer: asyncio.TimerHandle | None = None
    _running: RequestResponseCycle | None = None
    _is_last = False  # the next response is the last one
    _is_deaf = False  # what else the client sends is discarded

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as uvicorn's own
        super().connection_made(transport)
        self.server_state.waiting[self] = None
        self._expect_head()

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop_timer()
        self._stop_take_timer()
        self.server_state.waiting.pop(self, None)
        self.pipeline.clear()  # nobody is left to answer, and each attempt would be a traceback in the log
        if self._running is not None:  # uvicorn knows of the newest request alone
            self._running.disconnected = not self._running.response_complete
        super().connection_lost(exc)

    def eof_received(self) -> bool:  # type: ignore[override]  # uvicorn's own returns nothing, and so closes at once
        """A client that has sent its last request still reads: close when every whole request has its response."""
        return self._close_after_responses()

    def pause_writing(self) -> None:
        super().pause_writing()
        self._expect_taking()

    def resume_writing(self) -> None:
        self._stop_take_timer()
        super().resume_writing()

    def data_received(self, data: bytes) -> None:
        """As uvicorn, which would write a log line for each malformed request: the app counts them instead."""
        if self._is_deaf:
            return
        self._unset_keepalive_if_required()
        was_in_head = self._in_head
        try:
            self.parser.feed_data(data)
        except httptools.HttpParserUpgrade:
            pass  # there is nothing to upgrade to
        except httptools.HttpParserError:
            self._refuse_malformed()
            return
        if was_in_head and self._in_head:
            self._head_bytes += len(data)
            if self._head_bytes > MAX_HEAD_BYTES:
                self._in_head = False
                self._refuse_malformed()
                return
        self._note_who_waits()
        self._expect_head()

    def _note_who_waits(self) -> None:
        """The client waits for the server once its request is whole; until then the server waits for the client."""
        waiting = self.server_state.waiting
        if not self._is_answering():
            waiting.setdefault(self)
        elif self.cycle.more_body:
            waiting.setdefault(self)
            if not self.transport.is_closing():
                self.flow.pause_reading()  # until the app asks for it
        else:
            waiting.pop(self, None)

    def on_message_begin(self) -> None:
        """A request begins. The parser reports the error to `data_received`, which answers what came before."""
        if len(self.pipeline) >= MAX_PIPELINED:  # each costs memory long before it is its turn
            raise TooManyPipelinedError
        self._in_head, self._head_bytes = True, 0
        super().on_message_begin()
        waiting = sum(not task.done() for task in self.tasks)  # those of this turn that are done are there still
        self.scope[BEFORE] = waiting  # type: ignore[literal-required]  # a name of our own
        self._expect_head()

    def on_header(self, name: bytes, value: bytes) -> None:
        if self._in_head:
            super().on_header(name, value)

    def on_headers_complete(self) -> None:
        self._in_head = False
        self._stop_timer()
        self.server_state.waiting.pop(self, None)
        super().on_headers_complete()
        cycle = self.cycle
        if self.scope["http_version"] == "1.0" or (b"content-length", b"0") in self.headers:
            cycle.waiting_for_100_continue = False  # such a client does not wait for it (RFC 9110 §10.1.1)
        self.scope[ARRIVED] = lambda: (len(cycle.body), cycle.more_body)  # type: ignore[literal-required]  # ours, too
        if self.scope["method"] != "HEAD":
            cycle.transport = cast(asyncio.Transport, _Joined(self.transport, self._end))
        if self._is_last:
            cycle.keep_alive = False

    def _start_asgi_task(self, cycle: RequestResponseCycle, app: Any) -> None:
        self._running = cycle
        super()._start_asgi_task(cycle, app)

    def on_response_complete(self) -> None:
        if self._running is not None:
            self._running.body = bytearray()  # nobody will read it
        super().on_response_complete()
        self._note_who_waits()

    def _end(self) -> None:
        """Close after a response. A client that is still sending must be able to read it, so hear it out for a while:
        a socket that is closed with something unread resets the connection, and the response is lost.
        """
        if self._running is not None and self._running.more_body and not self.transport.is_closing():
            self._is_deaf = True
            self.transport.write_eof()
            self.loop.call_later(DISCARD_SECONDS, self.transport.close)
        else:
            self.transport.close()

    def _close_after_responses(self) -> bool:
        """Whether responses are owed to whole requests; the connection closes after the last of them."""
        if self.pipeline and self.cycle.more_body:  # this one will never be whole
            self.pipeline.popleft()
            self.cycle = self.pipeline[0][0] if self.pipeline else cast(RequestResponseCycle, self._running)
        last = self.cycle
        if last is None or last.response_complete or last.more_body:
            return False
        last.keep_alive = False
        return True

    def shutdown(self) -> None:
        """Close in order: who is just sending a request on an idle connection must not lose it with that."""
        if self._is_answering():
            super().shutdown()
        else:
            self._is_last = True
            self.loop.call_later(LINGER_SECONDS, self._close_if_idle)

    def _close_if_idle(self) -> None:
        if self._is_answering():
            return
        if self._has_unread():  # a request that came while this process was busy
            self.loop.call_later(0, self._close_if_idle)
        else:
            self.transport.close()

    def _has_unread(self) -> bool:
        connection = self.transport.get_extra_info("socket")
        if connection is None or self.transport.is_closing():
            return False
        with selectors.DefaultSelector() as ready:
            ready.register(connection.fileno(), selectors.EVENT_READ)
            return bool(ready.select(0))

    def timeout_keep_alive_handler(self) -> None:
        """Closing would wait for the rest of the last answer to be taken, however long that is."""
        if self.transport.get_write_buffer_size():
            self.transport.abort()
        else:
            super().timeout_keep_alive_handler()

    def _refuse_malformed(self) -> None:
        """What follows a whole request must not take that request's answer: it is carried out and answered first."""
        self._is_deaf = True
        self.app_state.get(MALFORMED, lambda: None)()
        if not self._close_after_responses():
            self.send_400_response("Invalid HTTP request received.")

    def _is_answering(self) -> bool:
        return self.cycle is not None and not self.cycle.response_complete

    def _expect_head(self) -> None:
        """Start the clock, unless it runs or an answer is under way, after which uvicorn's own clock starts."""
        if self._head_timer is None and not self._is_answering() and self.timeout_keep_alive_task is None:
            self._head_timer = self.loop.call_later(HEAD_SECONDS, self._head_is_late)

    def _head_is_late(self) -> None:
        self._head_timer = None
        if not self._is_answering():
            self.transport.close()

    def _expect_taking(self) -> None:
        left = self.transport.get_write_buffer_size()
        self._take_timer = self.loop.call_later(TAKE_SECONDS, self._check_taking, left)

    def _check_taking(self, before: int) -> None:
        if before - self.transport.get_write_buffer_size() < LEAST_TAKEN:
            self.transport.abort()
        else:
            self._expect_taking()

    def _stop_take_timer(self) -> None:
        if self._take_timer is not None:
            self._take_timer.cancel()

    def _stop_timer(self) -> None:
        if self._head_timer is not None:
            self._head_timer.cancel()
            self._head_timer = None


class _Joined:
    """A transport as an answer sees it: its head waits for the first piece of its body, and both go out as one.

    Apart they would be two packets, and the first would wake a peer that can do nothing with it. A large body is not
    joined: that would be a copy for each client that is slow to read it.
    """

    def __init__(self, transport: asyncio.Transport, end: Callable[[], None]) -> None:
        self._transport, self._end = transport, end
        self._head: bytes | None = None
        self.is_closing = transport.is_closing

    def close(self) -> None:
        """Of an answer that breaks off the head goes out: none at all would be asked for again, as if it were lost."""
        if self._head:
            self._transport.write(self._head)
        self._end()

    def write(self, data: bytes) -> None:
        """An interim answer at once, the head with what comes after it, all else as it comes."""
        if self._head and len(data) > MAX_JOINED:
            self._transport.write(self._head)
            self._transport.write(data)
            self._head = b""
        elif self._head:
            self._transport.write(self._head + data)
            self._head = b""
        elif self._head is not None or data.startswith(_INTERIM):
            self._transport.write(data)
        else:
            self._head = data
