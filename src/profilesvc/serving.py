"""Run an ASGI app by uvicorn: here until a signal, or on a thread for tests and notebooks."""

import asyncio
import contextlib
import signal
import socket
import threading
from collections.abc import Callable
from types import FrameType, TracebackType
from typing import Any, Self

import uvicorn
from uvicorn.lifespan.on import LifespanOn, LifespanSendMessage
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

KEEP_ALIVE_SECONDS = 75
SHUTDOWN_SECONDS = 20
HEAD_SECONDS = 10
MAX_HEAD_BYTES = 256 * 1024
TAKE_SECONDS = 10
LEAST_TAKEN = 64 * 1024


def bind(host: str, port: int) -> socket.socket:
    """A listening socket; port 0 takes a free one. OSError when the port is taken."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listener = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    # Head and body are two writes, and the second must not wait for the peer's late acknowledgement: uvloop sees to
    # that by itself, asyncio not for a listener that it did not make.
    listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    try:
        listener.bind((host, port))
    except OSError:
        listener.close()
        raise
    listener.listen(2048)
    listener.setblocking(False)
    return listener


class _Protocol(HttpToolsProtocol):
    """uvicorn's protocol, which by itself waits for ever for a head that does not end and takes trailers for headers.

    A head has 10 s, and 256 KB beyond its first piece; heads that are whole but too large are the app's to answer. It
    also waits for ever for an answer to be taken, and keeps it: here 64 KB must be taken every 10 s.
    """

    _in_head, _head_bytes = False, 0
    _head_timer: asyncio.TimerHandle | None = None
    _take_timer: asyncio.TimerHandle | None = None

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
        self._expect_head()

    def on_header(self, name: bytes, value: bytes) -> None:
        if self._in_head:
            super().on_header(name, value)

    def on_headers_complete(self) -> None:
        self._in_head = False
        self._stop_timer()
        super().on_headers_complete()

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


def _config(app: Any) -> uvicorn.Config:
    return uvicorn.Config(
        app,
        http=_Protocol,
        ws="none",  # there are no websockets; an upgrade to one must not pass the app's edge by
        proxy_headers=False,  # how many proxies to believe is the app's setting, not the server's guess
        lifespan="on",
        log_config=None,
        access_log=False,
        server_header=False,
        date_header=True,
        timeout_keep_alive=KEEP_ALIVE_SECONDS,
        timeout_graceful_shutdown=SHUTDOWN_SECONDS,
    )


class _Lifespan(LifespanOn):
    """uvicorn's lifespan that remembers why the app did not start."""

    reason = ""

    async def send(self, message: LifespanSendMessage) -> None:
        if message["type"] == "lifespan.startup.failed":
            self.reason = message.get("message", "")
        await super().send(message)


class _Server(uvicorn.Server):
    """uvicorn's server that tells when it is ready, when it was asked to stop, and why it did not start."""

    def __init__(self, app: Any, ready: Callable[[], None], stopping: Callable[[], None]) -> None:
        config = _config(app)
        config.load()
        config.lifespan_class = _Lifespan
        super().__init__(config)
        self._ready, self._stopping = ready, stopping

    @property
    def failure(self) -> str:
        """What the app gave as the reason for not starting."""
        return self.lifespan.reason if isinstance(self.lifespan, _Lifespan) else ""

    def run(self, sockets: list[socket.socket] | None = None) -> None:
        """Return when it has ended, or did not start, where uvicorn's own would end the process."""
        with contextlib.suppress(SystemExit):
            super().run(sockets)

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        if self.started:
            self._ready()

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """uvicorn's own raises the signal again in the end, so that an orderly stop would not exit with 0."""
        self._stopping()
        self.force_exit = self.should_exit and sig == signal.SIGINT
        self.should_exit = True


def serve_forever(
    app: Any, listeners: list[socket.socket], ready: Callable[[], None], stopping: Callable[[], None]
) -> bool:
    """Serve until SIGTERM or SIGINT; requests in flight finish. False when the app did not start: the log tells why."""
    server = _Server(app, ready, stopping)
    with contextlib.suppress(KeyboardInterrupt):
        server.run(sockets=listeners)
    return server.started


class EmbeddedServer:
    """The same server on a thread with its own loop, on 127.0.0.1 and a free port; a context manager."""

    def __init__(self, app: Any, port: int = 0) -> None:
        self._listener = bind("127.0.0.1", port)
        self.port: int = self._listener.getsockname()[1]
        self._up = threading.Event()
        self._server = _Server(app, self._up.set, lambda: None)
        self._thread = threading.Thread(target=self._run, name="profilesvc-server", daemon=True)

    @property
    def base_url(self) -> str:
        """Where it answers."""
        return f"http://127.0.0.1:{self.port}"

    def _run(self) -> None:
        try:
            self._server.run(sockets=[self._listener])
        finally:
            self._listener.close()
            self._up.set()

    def start(self) -> Self:
        """Return when requests are answered. RuntimeError with the reason when the app did not start."""
        self._thread.start()
        self._up.wait()
        if not self._server.started:
            self._thread.join()
            raise RuntimeError(f"the app did not start: {self._server.failure or 'see its log'}")
        return self

    def stop(self) -> None:
        """Let requests in flight finish, then end the thread; harmless when it has ended or never began."""
        self._server.should_exit = True
        if self._thread.ident is not None:
            self._thread.join()
        self._listener.close()

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.stop()
