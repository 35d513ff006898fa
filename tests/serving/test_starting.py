"""A server that starts: its port is reserved at once, and no connection is accepted before it can be served."""

import socket
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import httpx
import psutil
import pytest

from profilesvc.server.serving import EmbeddedServer, bind
from support.network.ports import free_port
from support.program import COMMAND, environment
from support.waiting import patience, until

pytestmark = pytest.mark.thorough

# Workers whose app starts when the file `go` exists; the supervisor prints its port before it starts them.
_WORKERS = """
import asyncio, os, pathlib, sys
from quart import Quart
from profilesvc.cli._process.workers import serve_workers
from profilesvc.server.serving import bind
from profilesvc.settings import Settings

def make(settings):
    app = Quart("slow")
    app.extensions["profilesvc.draining"] = asyncio.Event()

    @app.before_serving
    async def wait():
        pathlib.Path(f"waits-{os.getpid()}").touch()
        if pathlib.Path("down").exists():
            pathlib.Path(f"failed-{os.getpid()}").touch()
            raise RuntimeError("no such database")
        while not pathlib.Path("go").exists():
            await asyncio.sleep(0.01)

    @app.get("/")
    async def ask():
        return "served"

    return app

if __name__ == "__main__":
    listener = bind("127.0.0.1", 0)
    print(listener.getsockname()[1], flush=True)
    settings = Settings(_env_file=None, base_url="http://x", data_dir=pathlib.Path("."))
    sys.exit(0 if serve_workers(settings, [listener], 2, lambda: print("ready", flush=True), make) else 1)
"""


class Held:
    """An ASGI app that starts when the test allows it."""

    def __init__(self) -> None:
        self.starts, self.go = threading.Event(), threading.Event()

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        assert scope["type"] == "lifespan"
        for kind in ("startup", "shutdown"):
            await receive()
            self.starts.set()
            self.go.wait(20)
            await send({"type": f"lifespan.{kind}.complete"})


def accepts(port: int) -> bool:
    with socket.socket() as caller:
        return caller.connect_ex(("127.0.0.1", port)) == 0


def test_a_server_on_a_thread_listens_when_it_is_ready() -> None:
    app = Held()
    server = EmbeddedServer(app)
    starting = threading.Thread(target=server.start)
    starting.start()
    assert app.starts.wait(20)
    assert not accepts(server.port)
    with pytest.raises(OSError, match="in use"):
        bind("127.0.0.1", server.port)
    app.go.set()
    starting.join()
    assert accepts(server.port)
    server.stop()
    assert not accepts(server.port)


def test_workers_listen_when_one_of_them_is_ready(tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text(_WORKERS)
    command = [sys.executable, "program.py"]
    with subprocess.Popen(command, cwd=tmp_path, env=environment(), stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        port = int(process.stdout.readline())

        def waits() -> bool:
            assert process.poll() is None
            return bool(list(tmp_path.glob("waits-*")))

        until(waits, "a worker that waits")
        assert not accepts(port)
        with pytest.raises(OSError, match="in use"):
            bind("127.0.0.1", port)
        (tmp_path / "go").touch()
        assert process.stdout.readline() == "ready\n"
        assert accepts(port)
        process.terminate()
        process.communicate(timeout=patience(40))
    assert process.returncode == 0


def test_a_port_that_another_server_took_in_the_meantime_is_the_reason_for_not_starting() -> None:
    """Two sockets can be bound to one port where connections of an earlier server are left; one of them can listen."""
    with socket.socket() as rival:
        rival.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        rival.bind(("127.0.0.1", 0))
        app = Held()
        app.go.set()
        server = EmbeddedServer(app, rival.getsockname()[1])
        rival.listen()
        with pytest.raises(RuntimeError, match="did not start: cannot listen: Address already in use"):
            server.start()


def run_workers(folder: Path) -> subprocess.Popen[str]:
    """Run workers that do not wait. They fail to start while the file `down` exists."""
    (folder / "program.py").write_text(_WORKERS)
    (folder / "go").touch()
    command = [sys.executable, "program.py"]
    return subprocess.Popen(
        command, cwd=folder, env=environment(), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )


def test_if_one_of_the_first_workers_does_not_start_all_end_with_the_reason(tmp_path: Path) -> None:
    (tmp_path / "down").touch()
    with run_workers(tmp_path) as process:
        out, errors = process.communicate(timeout=patience(40))
    assert process.returncode == 1
    assert "ready" not in out
    assert "no such database" in errors


def test_a_worker_that_cannot_be_replaced_does_not_end_the_others(tmp_path: Path) -> None:
    """If the database is down, the other workers keep serving, and the start is tried again."""
    with run_workers(tmp_path) as process:
        assert process.stdout is not None
        port = int(process.stdout.readline())
        assert process.stdout.readline() == "ready\n"
        (tmp_path / "down").touch()
        victim = children(process)[0]
        victim.kill()
        until(lambda: len(list(tmp_path.glob("failed-*"))) >= 2, "a second attempt", 40)
        assert process.poll() is None
        assert accepts(port)
        (tmp_path / "down").unlink()
        until(
            lambda: len(list(tmp_path.glob("waits-*"))) == 3 + len(list(tmp_path.glob("failed-*"))), "a new worker", 40
        )
        process.terminate()
        _, errors = process.communicate(timeout=patience(40))
    assert process.returncode == 0
    assert f"worker {victim.pid} ended with -9" in errors


@pytest.mark.parametrize("words", ["serve", "demo", "emulator serve"])
def test_a_server_starts_without_a_reader_of_its_output(tmp_path: Path, words: str) -> None:
    """Its background work ended, although it still accepted requests."""
    port = free_port()
    with (
        open("/dev/full", "w") as full,
        subprocess.Popen(
            [*COMMAND, *words.split(), "--port", str(port)],
            cwd=tmp_path,
            env=environment(),
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
        ) as process,
    ):
        try:
            until(lambda: accepts(port), "the server to listen", 40)
            httpx.get(f"http://127.0.0.1:{port}/", timeout=30, trust_env=False)
            process.terminate()
            _, errors = process.communicate(timeout=patience(60))
        finally:
            process.kill()
    assert (process.returncode, errors) == (0, "")


def children(process: subprocess.Popen[str]) -> list[psutil.Process]:
    """The living workers."""
    found = psutil.Process(process.pid).children()
    return [child for child in found if child.status() != "zombie" and "spawn_main" in " ".join(child.cmdline())]
