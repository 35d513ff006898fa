"""The program as its users run it: a process of its own, in a folder of its own."""

import contextlib
import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx

import profilesvc
from profilesvc.cli import main
from support.forks import Fork
from support.waiting import patience

COMMAND = [sys.executable, "-m", "profilesvc"]
START_SECONDS, END_SECONDS = 300, 60
PATIENT = Path(__file__).with_name("patient")


def environment(**settings: str) -> dict[str, str]:
    """The test's own environment, with these settings and no others (`DATA_DIR="x"`)."""
    clean = {name: value for name, value in os.environ.items() if not name.startswith("PROFILESVC_")}
    return clean | {f"PROFILESVC_{name}": value for name, value in settings.items()}


def command(folder: Path, *args: str, **settings: str) -> subprocess.CompletedProcess[str]:
    """Run a command that ends by itself, in a fork of a process that has made its imports.

    A PYTHONPATH may lead to another version of the program, which the fork has not imported.
    """
    if "PYTHONPATH" in os.environ:
        words, variables = [*COMMAND, *args], environment(**settings)
        return subprocess.run(
            words, cwd=folder, env=variables, capture_output=True, text=True, timeout=END_SECONDS, check=False
        )
    process = Fork(_main, args, environment(**settings), folder)
    try:
        outputs = process.communicate(END_SECONDS)
    finally:
        process.kill()
    return subprocess.CompletedProcess([*COMMAND, *args], process.returncode, *outputs)


def _main(*args: str) -> None:
    """Do in the fork what `python -m profilesvc` does."""
    sys.argv = [str(Path(profilesvc.__file__).with_name("__main__.py")), *args]
    main()


class Server:
    """A command that serves; its first line has been read."""

    def __init__(self, folder: Path, *args: str, **settings: str) -> None:
        self.folder = folder
        self.process = self._started(args, environment(**settings))
        late = threading.Timer(START_SECONDS, self.process.kill)
        late.start()
        first = self.read_line()
        late.cancel()
        if not first.startswith("listening on http://"):
            raise AssertionError(f"{first!r} {self.process.communicate()}")
        self.url = first.removeprefix("listening on ").rstrip("\n")

    def _started(self, args: tuple[str, ...], variables: dict[str, str]) -> "subprocess.Popen[str] | Fork":
        """Start a fork, or a new process if it starts processes itself or PYTHONPATH leads to another version."""
        if "PYTHONPATH" not in os.environ and "--workers" not in args:
            return Fork(_main, args, variables, self.folder)
        path = os.pathsep.join(filter(None, [str(PATIENT), variables.get("PYTHONPATH")]))
        words, pipe, variables = [*COMMAND, *args], subprocess.PIPE, variables | {"PYTHONPATH": path}
        return subprocess.Popen(words, cwd=self.folder, env=variables, stdout=pipe, stderr=pipe, text=True)

    @property
    def port(self) -> int:
        return int(self.url.rpartition(":")[2])

    def read_line(self) -> str:
        assert self.process.stdout is not None
        return self.process.stdout.readline()

    def introduction(self) -> list[str]:
        """The output of `demo` after its first line; it ends with the sync."""
        lines: list[str] = []
        while not (lines and "/api/v1/sync/" in lines[-1]):
            lines.append(self.read_line().rstrip("\n"))
        return lines

    def stop(self, number: int = signal.SIGTERM) -> int:
        """Ask it to stop; the exit code. It must have had nothing to complain about."""
        self.process.send_signal(number)
        out, err = self.process.communicate(timeout=patience(40))
        assert (out, err) == ("", ""), err
        assert self.process.returncode is not None
        return self.process.returncode

    def kill(self) -> None:
        """End it without a warning."""
        self.process.kill()
        self.process.communicate()


@contextlib.contextmanager
def serving(folder: Path, *args: str, **settings: str) -> Iterator[Server]:
    """A server for the block; killed after it if it still runs."""
    server = Server(folder, *args, **settings)
    try:
        yield server
    finally:
        server.kill()  # closes its pipes, also those of a process that ended by itself


def demo_token(server: Server) -> str:
    """A service token of the demo's key."""
    key = json.loads((server.folder / "var" / "demo.json").read_text("utf-8"))
    grant = {"grant_type": "client_credentials", "client_id": key["client_id"], "client_secret": key["client_secret"]}
    answer = httpx.post(f"{server.url}/api/v1/auth/token", json=grant)
    assert answer.status_code == 200, answer.text
    token: str = answer.json()["data"]["access_token"]
    return token


def controls(folder: Path, provider: str) -> httpx.Client:
    """A client of the control API of an emulator that is served at `provider` and keeps its token in `folder`."""
    token = (folder / "emulator_token").read_text("utf-8").strip()
    bearer = {"Authorization": f"Bearer {token}"}
    return httpx.Client(base_url=f"{provider}/__emulator/", headers=bearer, timeout=30, trust_env=False)


def caller(server: Server, token: str) -> httpx.Client:
    """A client of a server with a token."""
    return httpx.Client(base_url=server.url, headers={"Authorization": f"Bearer {token}"}, timeout=30)


def data(answer: httpx.Response) -> Any:
    """The data of a success."""
    assert answer.is_success, answer.text
    return answer.json()["data"]
