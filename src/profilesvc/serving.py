"""Run an ASGI app by uvicorn: here until a signal, or on a thread for tests and notebooks."""

import contextlib
import socket
import threading
from collections.abc import Callable
from types import FrameType, TracebackType
from typing import Any, Self

import uvicorn

KEEP_ALIVE_SECONDS = 75
SHUTDOWN_SECONDS = 20


def bind(host: str, port: int) -> socket.socket:
    """A listening socket; port 0 takes a free one. OSError when the port is taken."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listener = socket.socket(family, socket.SOCK_STREAM)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((host, port))
    except OSError:
        listener.close()
        raise
    listener.listen(2048)
    listener.setblocking(False)
    return listener


def _config(app: Any) -> uvicorn.Config:
    return uvicorn.Config(
        app,
        lifespan="on",
        log_config=None,
        access_log=False,
        server_header=False,
        date_header=True,
        timeout_keep_alive=KEEP_ALIVE_SECONDS,
        timeout_graceful_shutdown=SHUTDOWN_SECONDS,
    )


class _Server(uvicorn.Server):
    """uvicorn's server that tells when it is ready and when it was asked to stop."""

    def __init__(self, config: uvicorn.Config, ready: Callable[[], None], stopping: Callable[[], None]) -> None:
        super().__init__(config)
        self._ready, self._stopping = ready, stopping

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        if self.started:
            self._ready()

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        self._stopping()
        super().handle_exit(sig, frame)


def serve_forever(app: Any, listener: socket.socket, ready: Callable[[], None], stopping: Callable[[], None]) -> bool:
    """Serve until SIGTERM or SIGINT; requests in flight finish. False when the app did not start."""
    server = _Server(_config(app), ready, stopping)
    with contextlib.suppress(KeyboardInterrupt):
        server.run(sockets=[listener])
    return server.started


class EmbeddedServer:
    """The same server on a thread with its own loop, on 127.0.0.1 and a free port; a context manager."""

    def __init__(self, app: Any, port: int = 0) -> None:
        self._listener = bind("127.0.0.1", port)
        self.port: int = self._listener.getsockname()[1]
        self._up = threading.Event()
        self._server = _Server(_config(app), self._up.set, lambda: None)
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
        """Return when requests are answered. RuntimeError when the app did not start."""
        self._thread.start()
        self._up.wait()
        if not self._server.started:
            self._thread.join()
            raise RuntimeError("the app did not start; see its log")
        return self

    def stop(self) -> None:
        """Let requests in flight finish, then end the thread."""
        self._server.should_exit = True
        self._thread.join()

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.stop()
