"""Several processes on one socket: start them, replace one that dies, stop them all on a signal."""

import contextlib
import logging
import multiprocessing
import os
import signal
import socket
import tempfile
import threading
from collections.abc import Callable, Iterator, Sequence
from multiprocessing.connection import Connection, wait
from multiprocessing.context import SpawnProcess
from typing import TYPE_CHECKING

from profilesvc.bootstrap import create_app
from profilesvc.cli._process.stopping import until_stopped
from profilesvc.settings import Settings
from profilesvc.telemetry.metrics import SHARED_FOLDER, forget

if TYPE_CHECKING:
    from quart import Quart

PAUSE_SECONDS = 1.0
log = logging.getLogger("profilesvc")


class Supervisor:
    """The parent: it holds the sockets and serves nothing itself. `make` makes in each worker what that serves."""

    def __init__(
        self, settings: Settings, *listeners: socket.socket, make: Callable[[Settings], "Quart"] = create_app
    ) -> None:
        self._context = multiprocessing.get_context("spawn")  # a fork would share the parent's threads and loop
        self._settings, self._listeners, self._make = settings, listeners, make
        self._workers: list[SpawnProcess] = []
        self._starting: set[Connection] = set()

    def run(self, count: int, ready: Callable[[], None]) -> bool:
        """Until SIGTERM or SIGINT; `ready` is called when all answer. False when one did not start at first."""
        with _stop_signal() as stop, tempfile.TemporaryDirectory(prefix="profilesvc-metrics-") as folder:
            os.environ[SHARED_FOLDER] = folder
            try:
                for _ in range(count):
                    self._start()
                return self._all_answer(stop, ready) and self._keep_up(stop)
            finally:
                self._end()

    def _start(self) -> None:
        ours, theirs = self._context.Pipe(duplex=False)
        worker = self._context.Process(target=_serve, args=(self._settings, self._listeners, theirs, self._make))
        worker.start()
        theirs.close()
        self._workers.append(worker)
        self._starting.add(ours)

    def _all_answer(self, stop: socket.socket, ready: Callable[[], None]) -> bool:
        while self._starting:
            happened = wait([stop, *self._starting])
            if stop in happened:
                return True
            for connection in self._starting.intersection(happened):
                try:
                    connection.recv()
                except EOFError:  # the worker is gone; its log says why
                    return False
                self._starting.discard(connection)
        ready()
        return True

    def _keep_up(self, stop: socket.socket) -> bool:
        while stop not in wait([stop, *(worker.sentinel for worker in self._workers)]):
            for worker in [worker for worker in self._workers if not worker.is_alive()]:
                log.warning("worker %s ended with %s; starting another", worker.pid, worker.exitcode)
                forget(worker.pid)
                self._workers.remove(worker)
                if wait([stop], PAUSE_SECONDS):
                    return True
                self._start()
        return True

    def _end(self) -> None:
        from profilesvc.server.serving import SHUTDOWN_SECONDS

        for listener in self._listeners:
            listener.close()  # nobody may connect to a socket that is no longer served
        for worker in self._workers:
            worker.terminate()
        for worker in self._workers:
            worker.join(self._settings.drain_seconds + SHUTDOWN_SECONDS + 5)
            worker.kill()
            worker.join()


@contextlib.contextmanager
def _stop_signal() -> Iterator[socket.socket]:
    """A socket that becomes readable at the first SIGTERM or SIGINT."""
    stop, raised = socket.socketpair()
    raised.setblocking(False)

    def raise_it(_number: int, _frame: object) -> None:
        with contextlib.suppress(OSError):
            raised.send(b"!")

    before = {number: signal.signal(number, raise_it) for number in (signal.SIGTERM, signal.SIGINT)}
    try:
        with stop, raised:
            yield stop
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _serve(
    settings: Settings, listeners: Sequence[socket.socket], ready: Connection, make: Callable[[Settings], "Quart"]
) -> None:
    """A worker's whole life."""
    from profilesvc.cli._process.logs import log_requests, log_to_stderr
    from profilesvc.server.serving import serve_forever

    log_to_stderr()
    log_requests(settings)
    threading.Thread(target=_follow_parent, daemon=True).start()

    def tell() -> None:
        with contextlib.suppress(OSError):  # nobody waits for a worker that replaces another
            ready.send(True)

    with until_stopped():
        app = make(settings)
        draining = app.extensions["profilesvc.draining"].set
        serve_forever(app, list(listeners), tell, draining, settings.drain_seconds, shared=True)


def _follow_parent() -> None:
    """Stop with a parent that was killed: an orphan would keep the port."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        wait([parent.sentinel])
        os.kill(os.getpid(), signal.SIGTERM)
