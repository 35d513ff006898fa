"""A deployment of several processes that the tests of the app in this process run on unchanged (`make deployed`)."""

import contextlib
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
from quart import Quart, request

from profilesvc.domain.entropy import SeededEntropy
from profilesvc.domain.rates import Window
from profilesvc.emulator.app import create_emulator
from profilesvc.emulator.embedded import EMULATOR_FILE
from profilesvc.fixtures import load_world
from profilesvc.limits.counters import MemoryWindows
from profilesvc.limits.settings import LimitSettings
from profilesvc.server.serving import EmbeddedServer
from profilesvc.services.context import Services
from profilesvc.settings import Settings
from support.fleet.worker import CHANGE, DEPLOYMENT, Board, SharedClock
from support.parts import changed
from support.program import environment
from support.waiting import patience

WORKERS = int(os.environ.get("PROFILESVC_DEPLOYED", "0"))


def in_process(*values: Any) -> tuple[Any, ...]:
    """The values, or none on a deployment: HTTP cannot carry them, or a server refuses them before the app."""
    return () if WORKERS else values


class ThroughOnePort(httpx.AsyncHTTPTransport):
    """A new connection to the deployment's port for each request, so that every process gets some of them."""

    def __init__(self, port: int) -> None:
        super().__init__(verify=False, limits=httpx.Limits(max_keepalive_connections=0), trust_env=False)
        self._port = port

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        url = request.url.copy_with(scheme="http", host="127.0.0.1", port=self._port)  # Host is a header by now
        return await super().handle_async_request(
            httpx.Request(
                request.method, url, headers=request.headers, stream=request.stream, extensions=request.extensions
            )
        )


class Fleet:
    """The processes, one provider and one count of requests for all, and the clock that they share with the test."""

    def __init__(self, folder: Path, base_url: str) -> None:
        self._folder, self._base_url = folder, base_url
        self._board = Board.lay(folder)
        self._clock, entropy = SharedClock(self._board), SeededEntropy("emulator")
        self._emulator = EmbeddedServer(
            create_emulator(folder / EMULATOR_FILE, clock=self._clock, entropy=entropy, world=load_world())
        ).start()
        self._windows = MemoryWindows(self._clock)
        self._counting = EmbeddedServer(counting(lambda: self._windows)).start()
        self._served: Settings | None = None
        self._limits = LimitSettings(enabled=False)
        # Every client that is made would read the authorities of the whole web, though nothing here speaks TLS.
        os.environ["SSL_CERT_DIR"] = str(folder)
        self._process = subprocess.Popen(
            [sys.executable, "-m", "support.fleet.worker", str(folder), str(WORKERS), self._counting.base_url],
            cwd=Path(__file__).parents[2],
            env=environment(DATA_DIR=str(folder)) | {"PYTHONPATH": os.pathsep.join(sys.path)},
            stdout=subprocess.PIPE,
            text=True,
        )
        assert self._process.stdout is not None
        first = self._process.stdout.readline()
        assert first.startswith("listening on "), first
        self._port = int(first.rpartition(":")[2])

    def clock(self, start: int) -> SharedClock:
        """The time of all processes, set to a start."""
        return SharedClock(self._board, start)

    async def deploy(self, settings: Settings) -> Settings:
        """Serve with these settings and the demo data. Return the settings for use next to the processes.

        What is served by the same already goes on, so that what a process remembers of other tests meets this one.
        """
        async with self.provider() as provider:
            assert (await provider.post("/__emulator/reset")).is_success
        shutil.rmtree(self._folder / "mail", ignore_errors=True)
        away = settings.provider.model_copy(update={"url": self._emulator.base_url})
        beside = settings.model_copy(update={"provider": away, "data_dir": self._folder})
        if beside != self._served:
            self._board.tell(DEPLOYMENT, beside)
            self._served = beside
        self._limits = settings.limits
        self.change()
        return beside

    def joined(self, services: Services) -> Services:
        """Services of this process that count where the others do."""
        return changed(services, self._windows, limits=self._limits)

    def provider(self) -> httpx.AsyncClient:
        """A client of the provider."""
        return httpx.AsyncClient(base_url=self._emulator.base_url, verify=False, trust_env=False, timeout=60)

    def change(self, **parts: Any) -> None:
        """Other parts in all processes, as `parts.changed` takes them, and an empty count."""
        self._windows = MemoryWindows(self._clock)
        self._board.tell(CHANGE, {"limits": self._limits, **parts})

    def client(self, token: str | None = None) -> httpx.AsyncClient:
        """A client of the processes; with a token, a caller."""
        headers = {} if token is None else {"Authorization": f"Bearer {token}"}
        transport = ThroughOnePort(self._port)
        return httpx.AsyncClient(transport=transport, base_url=self._base_url, headers=headers, timeout=60)

    def stop(self) -> list[int]:
        """End the processes in order; how many requests each answered."""
        self._process.terminate()
        rest, _ = self._process.communicate(timeout=patience(60))
        assert (rest, self._process.returncode) == ("", 0)
        self._counting.stop()
        self._emulator.stop()
        return sorted(int(file.read_text()) for file in self._folder.glob("answered-*"))


def counting(windows: Callable[[], MemoryWindows]) -> Quart:
    """The windows by HTTP; see OneCount."""
    app = Quart(__name__)

    @app.post("/take")
    async def take() -> Any:
        bucket, *window = await request.get_json()
        granted, standing = await windows().take(bucket, Window(*window))
        return [granted, *standing]

    @app.post("/standing")
    async def standing() -> Any:
        bucket, *window = await request.get_json()
        return [*await windows().standing(bucket, Window(*window))]

    @app.post("/strike")
    async def strike() -> Any:
        bucket, *window = await request.get_json()
        return [await windows().strike(bucket, Window(*window))]

    return app


@contextlib.contextmanager
def running(base_url: str) -> Iterator[Fleet | None]:
    """The processes that PROFILESVC_DEPLOYED asks for; None: what is tested is the app in this process."""
    if not WORKERS:
        yield None
        return
    with tempfile.TemporaryDirectory(prefix="profilesvc-fleet-") as folder:
        fleet = Fleet(Path(folder), base_url)
        yield fleet
        answered = fleet.stop()
        assert len(answered) == WORKERS
        assert min(answered) > 0, answered
        print(f"\nrequests answered by each process: {answered}")
