"""A server that starts: its port is reserved at once, and no connection is accepted before it can be served."""

import socket
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from profilesvc.server.serving import EmbeddedServer, bind
from support.program import environment

# Workers whose app starts when the file `go` exists; the supervisor prints its port before it starts them.
_WORKERS = """
import asyncio, pathlib, sys
from quart import Quart
from profilesvc.cli._process.workers import Supervisor
from profilesvc.server.serving import bind
from profilesvc.settings import Settings

def make(settings):
    app = Quart("slow")
    app.extensions["profilesvc.draining"] = asyncio.Event()

    @app.before_serving
    async def wait():
        pathlib.Path(f"waits-{id(app)}").touch()
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
    sys.exit(0 if Supervisor(settings, listener, make=make).run(2, lambda: print("ready", flush=True)) else 1)
"""


class Held:
    """An ASGI app that starts when it is told to."""

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
        while not list(tmp_path.glob("waits-*")):
            assert process.poll() is None
            time.sleep(0.02)
        assert not accepts(port)
        with pytest.raises(OSError, match="in use"):
            bind("127.0.0.1", port)
        (tmp_path / "go").touch()
        assert process.stdout.readline() == "ready\n"
        assert accepts(port)
        process.terminate()
        process.communicate(timeout=40)
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
