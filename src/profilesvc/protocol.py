"""HTTP/1.1 as uvicorn speaks it, with the limits and the order at the end that it has not."""

import asyncio
from typing import Any

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from profilesvc.scope import BEFORE

HEAD_SECONDS = 10
LINGER_SECONDS = 0.25
MAX_HEAD_BYTES = 256 * 1024
TAKE_SECONDS = 10
LEAST_TAKEN = 64 * 1024
_INTERIM = b"HTTP/1.1 1"  # 100 Continue, which has no body to wait for


class Protocol(HttpToolsProtocol):
    """uvicorn's protocol, which by itself waits for ever for a head that does not end and takes trailers for headers.

    A head has 10 s, and 256 KB beyond its first piece; heads that are whole but too large are the app's to answer. It
    also waits for ever for an answer to be taken, and keeps it: here 64 KB must be taken every 10 s.
    """

    _in_head, _head_bytes = False, 0
    _head_timer: asyncio.TimerHandle | None = None
    _take_timer: asyncio.TimerHandle | None = None
    _is_last = False

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as uvicorn's own
        super().connection_made(transport)
        self._expect_head()

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop_timer()
        self._stop_take_timer()
        self.pipeline.clear()  # nobody is left to answer, and each attempt would be a traceback in the log
        super().connection_lost(exc)

    def pause_writing(self) -> None:
        super().pause_writing()
        self._expect_taking()

    def resume_writing(self) -> None:
        self._stop_take_timer()
        super().resume_writing()

    def data_received(self, data: bytes) -> None:
        was_in_head = self._in_head
        super().data_received(data)
        if was_in_head and self._in_head:
            self._head_bytes += len(data)
            if self._head_bytes > MAX_HEAD_BYTES:
                self._in_head = False
                self.send_400_response("Invalid HTTP request received.")
        self._expect_head()

    def on_message_begin(self) -> None:
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
        super().on_headers_complete()
        if self.scope["method"] != "HEAD":
            self.cycle.transport = _Joined(self.transport)  # type: ignore[assignment]  # what an answer uses of one
        if self._is_last:
            self.cycle.keep_alive = False

    def shutdown(self) -> None:
        """Close in order: who is just sending a request on an idle connection must not lose it with that."""
        if self._is_answering():
            super().shutdown()
        else:
            self._is_last = True
            self.loop.call_later(LINGER_SECONDS, self._close_if_idle)

    def _close_if_idle(self) -> None:
        if not self._is_answering():
            self.transport.close()

    def timeout_keep_alive_handler(self) -> None:
        """Closing would wait for the rest of the last answer to be taken, however long that is."""
        if self.transport.get_write_buffer_size():
            self.transport.abort()
        else:
            super().timeout_keep_alive_handler()

    def send_400_response(self, msg: str) -> None:
        """What follows a whole request must not take that request's answer: it is carried out and answered first."""
        if self._is_answering() and not self.cycle.more_body:
            self.cycle.keep_alive = False
        else:
            super().send_400_response(msg)

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

    Apart they would be two packets, and the first would wake a peer that can do nothing with it.
    """

    def __init__(self, transport: Any) -> None:
        self._transport = transport
        self._head: bytes | None = None
        self.is_closing = transport.is_closing

    def close(self) -> None:
        """Of an answer that breaks off the head goes out: none at all would be asked for again, as if it were lost."""
        if self._head:
            self._transport.write(self._head)
        self._transport.close()

    def write(self, data: bytes) -> None:
        """An interim answer at once, the head with what comes after it, all else as it comes."""
        if self._head:
            self._transport.write(self._head + data)
            self._head = b""
        elif self._head is not None or data.startswith(_INTERIM):
            self._transport.write(data)
        else:
            self._head = data
