"""Run an ASGI app with uvicorn: until a signal, or on a thread for tests and notebooks."""

import asyncio
import contextlib
import errno
import gc
import logging
import math
import os
import signal
import socket
import sys
import threading
import time
from collections.abc import Callable
from types import FrameType, TracebackType
from typing import Self

import uvicorn
from uvicorn.config import STARTUP_FAILURE
from uvicorn.lifespan.on import LifespanOn, LifespanSendMessage

from profilesvc.server.protocol import Protocol, State, is_readable
from profilesvc.server.scope import App

KEEP_ALIVE_SECONDS = 75
SHUTDOWN_SECONDS = 20
_CHECK_SECONDS = 1
_ACCEPT_ROUNDS = 10  # of the loop, after which those accepted last are among the connections that uvicorn closes
_SETTLE_SECONDS = 0.05  # in which callers whose connections were closed after a response open others
_GARBAGE_THRESHOLD = 10_000  # objects, as many as a few requests create; the default collects several times per request
_log = logging.getLogger(__name__)


def bind(host: str, port: int) -> socket.socket:
    """Reserve a port; 0 picks a free one.

    The socket does not listen yet. Connections are refused until the app can serve, so a proxy uses another server.

    Raises:
        OSError: the port is taken.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        return _bound(family, (host, port))
    except OSError as error:
        if error.errno != errno.EADDRINUSE:
            raise
    return _bound(family, (host, port), reuse=True)  # old connections of an earlier server may still use the port


def _bound(family: socket.AddressFamily, address: tuple[str, int], *, reuse: bool = False) -> socket.socket:
    """Return a bound socket. Without `reuse`, no other socket can bind to the port even before this one listens."""
    bound = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, reuse)
    try:
        bound.bind(address)
    except OSError:
        bound.close()
        raise
    bound.setblocking(False)
    return bound


def _max_connections() -> int:
    """Return how many connections leave a quarter of the file descriptors for the work of the requests."""
    try:
        import resource
    except ImportError:  # Windows
        return sys.maxsize
    limit = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    with open(os.devnull) as probe:  # the system returns the lowest free number
        return sys.maxsize if limit == resource.RLIM_INFINITY else max(limit * 3 // 4 - probe.fileno(), 1)


class _Lifespan(LifespanOn):
    """uvicorn's lifespan, which also stores why the app did not start."""

    failure = ""

    async def send(self, message: LifespanSendMessage) -> None:
        if message["type"] == "lifespan.startup.failed":
            self.failure = message.get("message", "")
        await super().send(message)


class Server(uvicorn.Server):
    """uvicorn's server with a callback for each change of state, a drain period, and checks for slow clients.

    `ready` is called when requests are accepted, and `stopping` at the first signal. Requests are accepted for `drain`
    more seconds after the first SIGTERM, so that a proxy that polls `/readyz` notices in time. `opened` has what the
    app uses: it is entered first, where a signal or an error ends the server, and left last.
    """

    failure = ""  # the reason for a failed start

    def __init__(
        self,
        app: App,
        ready: Callable[[], None] = lambda: None,
        stopping: Callable[[], None] = lambda: None,
        drain: float = 0,
        opened: contextlib.AbstractAsyncContextManager[object] | None = None,
    ) -> None:
        config = uvicorn.Config(
            app,
            http=Protocol,
            ws="none",  # an upgrade to a websocket would bypass the checks of the app
            proxy_headers=False,  # how many proxies to trust is the app's setting
            lifespan="on",
            log_config=None,
            log_level="error",  # a warning for each malformed request would let anyone fill the disk
            access_log=False,
            server_header=False,
            timeout_keep_alive=KEEP_ALIVE_SECONDS,
            timeout_graceful_shutdown=SHUTDOWN_SECONDS,
        )
        config.load()
        config.lifespan_class = _Lifespan
        super().__init__(config)
        self.server_state: State = State()
        self._ready, self._stopping = ready, stopping
        self._drain, self._drained_at = drain, math.inf
        self._opened = opened or contextlib.nullcontext()

    def run(self, sockets: list[socket.socket] | None = None) -> None:
        """Serve until a signal, in a loop that exists before, because it takes long to make the first one."""
        with asyncio.Runner(loop_factory=self.config.get_loop_factory()) as runner:
            runner.get_loop()
            runner.run(self.serve(sockets))

    async def serve(self, sockets: list[socket.socket] | None = None) -> None:
        async with contextlib.AsyncExitStack() as opened:
            await opened.enter_async_context(self._opened)
            with self.capture_signals():
                await asyncio.sleep(0)  # ends if an earlier signal has cancelled this task
                if (task := asyncio.current_task()) is not None and task.cancelling():
                    raise asyncio.CancelledError  # Python 3.11 can lose a cancellation
                async with opened:
                    await self._serve(sockets)

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Start the app, and only then listen."""
        try:
            await super().startup([])
        except SystemExit:
            self.failure = getattr(self.lifespan, "failure", "")
            raise
        try:
            self.servers = [await self._listen(each) for each in sockets or []]
        except OSError as error:  # another server reserved the port in the same way and was ready first
            self.failure, self.started = f"cannot listen: {error.strerror}", False
            _log.error("%s", self.failure)
            await self.lifespan.shutdown()
            sys.exit(STARTUP_FAILURE)
        self.server_state.max_connections = _max_connections()
        self._check_connections()
        self._ready()

    async def _listen(self, listener: socket.socket) -> asyncio.Server:
        # Connections inherit this option, so that those left at the end do not keep the next server from the port.
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.listen(self.config.backlog)  # uvloop would not report an error
        return await asyncio.get_running_loop().create_server(
            lambda: Protocol(self.config, self.server_state, self.lifespan.state),
            sock=listener,
            backlog=self.config.backlog,
        )

    def _check_connections(self) -> None:
        loop = asyncio.get_running_loop()
        for connection in list(self.server_state.connections):
            connection.check(loop.time())  # type: ignore[union-attr]  # all are of our protocol
        loop.call_later(_CHECK_SECONDS, self._check_connections)

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Close the listeners, and then the connections.

        A listener that is closed resets the connections in its backlog. So connections stay open for a moment, in which
        no caller needs a new one, and those in the backlog are accepted.
        """
        self.server_state.is_stopping = False
        await asyncio.sleep(_SETTLE_SECONDS)
        for _ in range(self.config.backlog):
            if not is_readable(*sockets or []):
                break
            await asyncio.sleep(0)
        for server in self.servers:
            server.close()
        self.server_state.is_stopping = True
        for _ in range(_ACCEPT_ROUNDS):
            await asyncio.sleep(0)
        await super().shutdown(sockets)

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """Start to stop, with exit code 0; uvicorn would raise the signal again at the end."""
        self._stopping()
        self.server_state.is_stopping = True
        if self._drain and sig == signal.SIGTERM and self._drained_at == math.inf:
            self._drained_at = time.monotonic() + self._drain
            return
        self.force_exit = self.should_exit and sig == signal.SIGINT
        self.should_exit = True

    async def on_tick(self, counter: int) -> bool:
        """Return whether it is time to stop."""
        return await super().on_tick(counter) or time.monotonic() >= self._drained_at


def serve_forever(
    app: App,
    listeners: list[socket.socket],
    ready: Callable[[], None],
    stopping: Callable[[], None],
    drain: float = 0,
    opened: contextlib.AbstractAsyncContextManager[object] | None = None,
) -> bool:
    """Serve until SIGTERM or SIGINT; requests in flight finish. Return False if the app did not start; see its log.

    An error of `opened` is raised.
    """

    def when_ready() -> None:
        freeze_heap()
        ready()

    server = Server(app, when_ready, stopping, drain, opened)
    with contextlib.suppress(SystemExit):
        server.run(sockets=listeners)
    return server.started


def freeze_heap() -> None:
    """Exclude the objects that exist after the start from garbage collection, which takes 0.1 s for all of them."""
    gc.freeze()
    gc.set_threshold(_GARBAGE_THRESHOLD, 20, 50)


class EmbeddedServer:
    """The same server on a thread with its own loop, on 127.0.0.1 and a free port; a context manager."""

    def __init__(self, app: App, port: int = 0) -> None:
        self._listener = bind("127.0.0.1", port)
        self.port: int = self._listener.getsockname()[1]
        self._has_started = threading.Event()
        self._server = Server(app, self._has_started.set)
        self._thread = threading.Thread(target=self._run, name="profilesvc-server", daemon=True)

    @property
    def base_url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def _run(self) -> None:
        try:
            with contextlib.suppress(SystemExit):
                self._server.run(sockets=[self._listener])
        finally:
            self._listener.close()
            self._has_started.set()

    def start(self) -> Self:
        """Return when requests are accepted.

        Raises:
            RuntimeError: the app did not start; the message has the reason.
        """
        self._thread.start()
        self._has_started.wait()
        if not self._server.started:
            self._thread.join()
            raise RuntimeError(f"the app did not start: {self._server.failure or 'see its log'}")
        return self

    def stop(self) -> None:
        """Finish the requests in flight, then end the thread. Do nothing if it has ended or was never started."""
        self._server.should_exit = True
        if self._thread.ident is not None:
            self._thread.join()
        self._listener.close()

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.stop()
