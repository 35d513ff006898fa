"""Several processes on the same sockets, with uvicorn's supervisor."""

import logging
import multiprocessing
import os
import signal
import socket
import sys
import threading
from collections.abc import Callable
from multiprocessing.connection import wait
from typing import cast

import uvicorn
from uvicorn.supervisors import multiprocess

from profilesvc.server.serving import SHUTDOWN_SECONDS, Server

_BOOT_SECONDS = 60  # on a busy machine a new process imports for several seconds before it responds to the supervisor
_log = logging.getLogger("profilesvc")


class _Worker(multiprocess.Process):
    """A process with a server of ours: `config.app` is the function that creates it in that process."""

    def target(self, sockets: list[socket.socket] | None = None) -> None:
        threading.Thread(target=_follow_parent, daemon=True).start()
        self._server = cast(Callable[[], Server], self.config.app)()
        try:
            super().target(sockets)
        except SystemExit:
            sys.exit(1)  # uvicorn's own code would stop the other workers, which still serve

    def start(self) -> None:
        super().start()
        self.child_conn.close()  # so that a health check fails at once, not after its timeout, if the worker ends

    def join(self) -> None:
        """Wait for an orderly stop, and kill the worker after that."""
        self.process.join(self.config.timeout_graceful_shutdown)
        self.process.kill()
        self.process.join()


# Multiprocess has no option for the class of its processes, and uvicorn's class runs uvicorn's server.
multiprocess.Process = _Worker  # type: ignore[misc]


def _follow_parent() -> None:
    """Stop when the parent is killed, because an orphan would keep the port."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        wait([parent.sentinel])
        os.kill(os.getpid(), signal.SIGTERM)


class Supervisor(multiprocess.Multiprocess):
    """uvicorn's supervisor: it replaces workers that have died, or all of them on SIGHUP.

    `create_server` is called in each worker. `ready` is called when all accept requests, and `ended` with the process
    id of each worker that has ended.
    """

    def __init__(
        self,
        create_server: Callable[[], Server],
        sockets: list[socket.socket],
        count: int,
        ready: Callable[[], None],
        ended: Callable[[int], None],
        drain: float = 0,
    ) -> None:
        config = uvicorn.Config(
            create_server,  # see `_Worker`
            workers=count,
            log_config=None,
            timeout_worker_healthcheck=_BOOT_SECONDS,
            timeout_graceful_shutdown=round(drain + SHUTDOWN_SECONDS + 5),
        )
        super().__init__(config, sockets)
        self._ready, self._ended = ready, ended
        self._is_ready, self._has_failed = False, False
        self._latest: list[multiprocess.Process] = []

    def serve(self) -> bool:
        """Serve until SIGTERM or SIGINT. Return False if a worker did not start at first; see its log."""
        self.run()
        return not self._has_failed

    def keep_subprocess_alive(self) -> None:
        """Replace workers that have ended, but stop if one of the first ends before all accept requests."""
        if self._is_ready:
            super().keep_subprocess_alive()
        elif any(worker.exitcode is not None for worker in self.processes):
            self._has_failed = True
            self.should_exit.set()
        elif all(worker.is_ready(_BOOT_SECONDS) for worker in self.processes):
            self._is_ready = True
            self._ready()
        for worker in self._latest:
            if worker not in self.processes and worker.pid is not None:
                if worker.exitcode:
                    _log.warning("worker %s ended with %s; starting another", worker.pid, worker.exitcode)
                self._ended(worker.pid)
        self._latest = list(self.processes)

    def terminate_all(self) -> None:
        """Close the sockets first: a connection to a socket that is no longer served would wait forever."""
        for each in self.sockets:
            each.close()
        super().terminate_all()
