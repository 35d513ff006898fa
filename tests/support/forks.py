"""Functions in forks of a process that has imported the service and opened nothing: they start at once."""

import contextlib
import multiprocessing
import os
import signal
import subprocess
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

_IMPORTED = """
aiosqlite httptools httpx uvicorn.loops.auto profilesvc.bootstrap profilesvc.server.serving profilesvc.api.app
profilesvc.dashboard.routes profilesvc.dev_issuer.routes profilesvc.provider.connect profilesvc.emulator.embedded
profilesvc.operations.operator profilesvc.cli
"""
FORKS = multiprocessing.get_context("forkserver")
FORKS.set_forkserver_preload(_IMPORTED.split())


class Fork:
    """A function in a process of its own; of subprocess.Popen what is used, without the seconds of the imports.

    `stderr` is a pipe or pytest's.
    """

    def __init__(
        self,
        function: Callable[..., None],
        args: tuple[Any, ...],
        variables: Mapping[str, str],
        folder: Path,
        *,
        errors: bool = True,
    ) -> None:
        pipes = [FORKS.Pipe(duplex=False) for _ in ("stdout", "stderr")[: 1 + errors]]
        entered = (function, args, dict(variables), str(folder), [written for _, written in pipes])
        self._process = FORKS.Process(target=_enter, args=entered, daemon=True)
        with contextlib.ExitStack() as stack:
            for end in (end for pipe in pipes for end in pipe):
                stack.enter_context(end)
            self._process.start()
            self._outputs = [open(os.dup(read.fileno()), encoding="utf-8") for read, _ in pipes]  # noqa: SIM115
        self.stdout = self._outputs[0]

    @property
    def pid(self) -> int:
        assert self._process.pid is not None
        return self._process.pid

    def send_signal(self, number: int) -> None:
        if self.poll() is None:
            os.kill(self.pid, number)

    def terminate(self) -> None:
        self.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)

    def communicate(self, timeout: float | None = None) -> tuple[str, str]:
        pool = ThreadPoolExecutor(2)
        reading = [pool.submit(output.read) for output in self._outputs if not output.closed]
        pool.shutdown(wait=False)
        self._process.join(timeout)
        if self.poll() is None:
            raise subprocess.TimeoutExpired(str(self._process), timeout or 0)
        out, errors, *_ = [*(output.result() for output in reading), "", ""]
        for output in self._outputs:
            output.close()
        return out, errors

    def poll(self) -> int | None:
        return self._process.exitcode

    returncode = property(poll)


def _enter(
    function: Callable[..., None],
    args: tuple[Any, ...],
    variables: dict[str, str],
    folder: str,
    outputs: list[Connection],
) -> None:
    os.environ.clear()
    os.environ.update(variables)
    os.chdir(folder)
    for number, output in enumerate(outputs, 1):
        os.dup2(output.fileno(), number)
        output.close()
    function(*args)
