"""Servers as processes on their own core, and their CPU time and memory."""

import contextlib
import os
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import Self

import psutil

from benchmarks.load import pin

ROOT = Path(__file__).parents[1]
SERVE = ["-m", "profilesvc", "serve", "--port", "{port}"]


def free_port() -> int:
    """Return a free port."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


class Server:
    """A server that runs until `stop()`. `took` is the time in seconds until it accepted a connection.

    `command` is what follows the program, which is Python by default.
    """

    def __init__(
        self,
        command: list[str],
        environment: dict[str, str],
        core: int | None,
        folder: Path,
        program: str = sys.executable,
    ) -> None:
        self.port = free_port()
        inherited = {name: value for name, value in os.environ.items() if not name.startswith("PROFILESVC_")}
        paths = [str(ROOT), str(ROOT / "src"), *filter(None, [inherited.get("PYTHONPATH")])]
        self._log = (folder / f"server-{self.port}.log").open("w+")
        started = time.perf_counter()
        self._process = subprocess.Popen(
            [program, *(part.replace("{port}", str(self.port)) for part in command)],
            env={**inherited, "PYTHONPATH": os.pathsep.join(paths), **environment},
            stdout=self._log,
            stderr=subprocess.STDOUT,
            preexec_fn=pin(core),
            cwd=folder,
        )
        self._wait()
        self.took = time.perf_counter() - started

    def _wait(self) -> None:
        for _ in range(3000):
            with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", self.port), timeout=1):
                return
            if self._process.poll() is not None:
                break
            time.sleep(0.01)
        raise RuntimeError(f"did not start:\n{self.log()}")

    @property
    def pid(self) -> int:
        """The id of the started process."""
        return self._process.pid

    def log(self) -> str:
        """Return the output."""
        self._log.seek(0)
        return self._log.read()

    def cpu(self) -> float:
        """Return the CPU seconds of all its processes."""
        process = psutil.Process(self._process.pid)
        times = [member.cpu_times() for member in (process, *process.children(recursive=True))]
        return float(sum(cpu.user + cpu.system for cpu in times))

    def memory(self) -> int:
        """Return the resident bytes of all its processes."""
        process = psutil.Process(self._process.pid)
        return sum(member.memory_info().rss for member in (process, *process.children(recursive=True)))

    def stop(self) -> None:
        """Stop the server by SIGTERM."""
        self._process.terminate()
        try:
            self._process.wait(20)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._log.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        self.stop()
