"""Run an ASGI app by uvicorn: here until a signal, or on a thread for tests and notebooks."""

import contextlib
import errno
import gc
import logging
import signal
import socket
import threading
import time
from collections.abc import Callable
from types import FrameType, TracebackType
from typing import Any, Self

import uvicorn
from uvicorn.lifespan.on import LifespanOn, LifespanSendMessage

from profilesvc.server.entrance import Entrance, listen
from profilesvc.server.protocol import Protocol, State

KEEP_ALIVE_SECONDS = 75
SHUTDOWN_SECONDS = 20
_GARBAGE_THRESHOLD = 10_000  # objects, some requests' worth; by default each request would pay for several rounds
_log = logging.getLogger(__name__)


def bind(host: str, port: int) -> socket.socket:
    """Reserve a port; 0 picks a free one. OSError if it is taken.

    The socket does not listen yet: until the app can serve, a proxy must be refused, so that it asks another server.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        return _bound(family, (host, port))
    except OSError as error:
        if error.errno != errno.EADDRINUSE:
            raise
    return _bound(family, (host, port), reuse=True)  # only connections of an earlier server may be left


def _bound(family: socket.AddressFamily, address: tuple[str, int], *, reuse: bool = False) -> socket.socket:
    """A bound socket. One that does not listen keeps its port to itself only if it was bound without `reuse`."""
    made = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    # The head and the body of a response are two writes, and the second must not wait for the peer's delayed
    # acknowledgement: uvloop sets this by itself, asyncio does not for a socket that it did not create.
    made.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, reuse)
    try:
        made.bind(address)
    except OSError:
        made.close()
        raise
    made.setblocking(False)
    return made


def _config(app: Any) -> uvicorn.Config:
    return uvicorn.Config(
        app,
        http=Protocol,
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

    def __init__(
        self,
        app: Any,
        ready: Callable[[], None],
        stopping: Callable[[], None],
        drain: float = 0,
        *,
        shared: bool = False,
    ) -> None:
        config = _config(app)
        config.load()
        config.lifespan_class = _Lifespan
        super().__init__(config)
        self._state = self.server_state = State()
        self._ready, self._stopping, self._drain, self._shared = ready, stopping, drain, shared
        self._leaves_at: float | None = None
        self._failure = ""

    @property
    def failure(self) -> str:
        """The reason for not starting, if the app or the port gave one."""
        return self._failure or (self.lifespan.reason if isinstance(self.lifespan, _Lifespan) else "")

    def run(self, sockets: list[socket.socket] | None = None) -> None:
        """Return when it has ended, or did not start, where uvicorn's own would end the process."""
        with contextlib.suppress(SystemExit):
            super().run(sockets)

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Start the app, and only then listen."""
        await super().startup([])
        if not self.started:
            return
        try:
            listen(sockets or [])
        except OSError as error:  # another server reserved the port in the same way and was ready first
            self._failure, self.started, self.should_exit = f"cannot listen: {error.strerror}", False, True
            _log.error("%s", self._failure)
            await self.lifespan.shutdown()
            return
        self._entrance = Entrance(sockets or [], self._protocol, self._state, shared=self._shared)
        self._ready()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """End as uvicorn does, and serve those whom the system has let in and the loop has not."""
        await self._entrance.close()
        await super().shutdown(sockets)

    def _protocol(self) -> Protocol:
        return Protocol(self.config, self._state, self.lifespan.state)

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """uvicorn's own raises the signal again in the end, so that an orderly stop would not exit with 0."""
        self._stopping()
        if self._drain and sig == signal.SIGTERM and self._leaves_at is None:
            self._leaves_at = time.monotonic() + self._drain
            return
        self.force_exit = self.should_exit and sig == signal.SIGINT
        self.should_exit = True

    async def on_tick(self, counter: int) -> bool:
        """True when it is time to stop taking requests."""
        is_over = self._leaves_at is not None and time.monotonic() >= self._leaves_at
        return await super().on_tick(counter) or is_over


def _spare_what_stays() -> None:
    """Keep the collector from what start-up has made: a look through all of it takes a tenth of a second."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(_GARBAGE_THRESHOLD, 20, 50)


def serve_forever(
    app: Any,
    listeners: list[socket.socket],
    ready: Callable[[], None],
    stopping: Callable[[], None],
    drain: float = 0,
    *,
    shared: bool = False,
) -> bool:
    """Serve until SIGTERM or SIGINT; requests in flight finish. False when the app did not start: the log tells why.

    `drain`: for as many seconds after the first SIGTERM requests are still taken, so that a proxy that asks whether
    the process is ready learns in time that it will not be. `shared`: other processes listen there, too.
    """

    def settled() -> None:
        _spare_what_stays()
        ready()

    server = _Server(app, settled, stopping, drain, shared=shared)
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
