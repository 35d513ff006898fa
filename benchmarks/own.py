"""The service held against itself: a sync and the sum of its parts, two processes and one, first answers."""

import asyncio
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Awaitable, Callable
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Any

from quart import Quart

from benchmarks import load
from benchmarks.database import Postgres
from benchmarks.measure import Figures, in_turn, once
from benchmarks.servers import ROOT, Server
from benchmarks.work import LOCATION, Access, Request, check, request_of
from benchmarks.world import prepare_service, service_environment
from profilesvc.bootstrap import create_app
from profilesvc.services.context import Services
from profilesvc.settings import load as load_settings
from profilesvc.storage import locations, sync

SERVE = ["-m", "profilesvc", "serve", "--port", "{port}"]
BUSY = ["-m", "uvicorn", "--port", "{port}", "--log-level", "warning", "--no-access-log", "benchmarks.peers.busy:app"]
WORKS = ("list", "status", "heartbeat")
_TIMES = 200
_STEADY_SECONDS = 3
_LAB = """
import time, urllib.request
from profilesvc.lab import open_lab
open_lab().close()  # imports
begun = time.perf_counter()
lab = open_lab()
urllib.request.urlopen(f"{lab.url}/healthz").close()
print(time.perf_counter() - begun)
lab.close()
"""


def measure(rounds: int, seconds: float, cores: tuple[int | None, int | None]) -> dict[str, Any]:
    """Everything; microseconds of CPU and, for first answers, seconds."""
    with tempfile.TemporaryDirectory(prefix="bench-") as name:
        folder = Path(name)
        environment = service_environment(folder, f"sqlite+aiosqlite:///{folder}/service.db")
        access = asyncio.run(prepare_service(environment))
        return {
            "sync": asyncio.run(_sync(access)),
            "overload": _overload(environment, access, rounds, seconds, cores, folder),
            "first": _first(environment, rounds, cores[0], folder),
            "processes": _processes(folder, rounds, seconds, cores),
        }


async def _sync(access: Access) -> dict[str, float]:
    """A sync by the API, and its parts one by one: the request, what the provider is asked, what is written."""
    app = create_app(load_settings())
    async with app.test_app():
        services: Services = app.extensions["profilesvc"]
        names = iter(range(10**9))

        def body() -> str:
            return json.dumps({"title": f"Harbour Café {next(names)}"})

        by_key = {"Authorization": f"Bearer {access.key_token}", "Content-Type": "application/json"}
        read = Request("GET", f"/api/v1/posts?locationId={LOCATION}&pageSize=1", by_key)
        provider = services.provider
        parts: dict[str, Callable[[], Awaitable[Any]]] = {
            "sync": lambda: _ask(app, Request("POST", f"/api/v1/sync/{LOCATION[10:]}", by_key, body())),
            "an authenticated request": lambda: _ask(app, read),
            "the provider's profile": lambda: provider.location(LOCATION),
            "its change at the provider": lambda: provider.patch_location(LOCATION, json.loads(body()), ["title"]),
            "the turn of the location": lambda: _turn(services),
            "profile and history written": lambda: _written(services, body()),
        }
        return {name: await _cost(work) for name, work in parts.items()}


async def _cost(work: Callable[[], Awaitable[Any]]) -> float:
    """The median of some runs, each of ten."""
    taken = []
    for _ in range(_TIMES // 10):
        begun = time.process_time()
        for _ in range(10):
            await work()
        taken.append((time.process_time() - begun) / 10 * 1e6)
    return statistics.median(taken)


async def _turn(services: Services) -> None:
    now = services.clock.now()
    async with services.storage.write() as session:
        await sync.take_lease(session, LOCATION, "bench", now, now + 60_000)
    async with services.storage.write() as session:
        await sync.end_lease(session, LOCATION, "bench")


async def _written(services: Services, body: str) -> None:
    async with services.storage.read() as session:
        row = await locations.state(session, LOCATION)
    assert row is not None
    now = services.clock.now()
    entry = {"sync_id": services.entropy.token_bytes(16).hex(), "location_name": LOCATION, "created_at": now}
    async with services.storage.write() as session:
        await locations.change(session, LOCATION, source=body, last_sync=body, profile=row.profile, profile_read_at=now)
        await sync.add(session, **entry, status="success", direction="push", fields_updated=1)


async def _ask(app: Quart, request: Request) -> None:
    path, _, query = request.path.partition("?")
    headers = [(b"host", b"bench.test"), (b"content-length", str(len(request.body.encode())).encode())]
    headers += [(name.lower().encode(), value.encode()) for name, value in request.headers.items()]
    scope: dict[str, Any] = {
        "type": "http",
        "http_version": "1.1",
        "method": request.method,
        "scheme": "http",
        "path": path,
    }
    scope |= {"query_string": query.encode(), "headers": headers, "client": ("127.0.0.1", 1), "root_path": ""}
    body, answer = [{"type": "http.request", "body": request.body.encode(), "more_body": False}], list[Any]()

    async def receive() -> Any:
        return body.pop() if body else await asyncio.sleep(60)

    async def send(message: Any) -> None:
        answer.append(message)

    await app(scope, receive, send)  # type: ignore[arg-type]  # Quart's types are stricter than ASGI
    assert answer[0]["status"] == 200, answer


def _overload(
    environment: dict[str, str],
    access: Access,
    rounds: int,
    seconds: float,
    cores: tuple[int | None, int | None],
    folder: Path,
) -> dict[str, Any]:
    """Latencies (ms) at 80 % of the most that it can do, medians, and what becomes of twice as many as are let in.

    In turn with it the same of `busy`, which only computes for as long: what a machine that halts now and then does
    to anybody's latencies.
    """
    request, room, seconds = request_of("status", access), 100, max(seconds, _STEADY_SECONDS)
    with Server(SERVE, environment | {"PROFILESVC_MAX_IN_FLIGHT": str(room)}, cores[0], folder) as server:
        most = load.steady(server.port, request, seconds, cores[1])
        takes = {"BENCH_BUSY_SECONDS": str(most.seconds / most.requests)}
        with Server(BUSY, takes, cores[0], folder) as busy:
            subjects = {"service": (server, request), "busy": (busy, Request("GET", "/", {}))}
            runs: dict[str, list[load.Load]] = {name: [] for name in subjects}
            for _ in range(rounds + 1):
                for name, (each, asked) in subjects.items():
                    most = load.steady(each.port, asked, seconds, cores[1])
                    rate = 0.8 * most.requests / most.seconds
                    runs[name].append(load.steady(each.port, asked, seconds, cores[1], rate))
        full = load.steady(server.port, request, seconds, cores[1], connections=2 * room)
    assert full.bad == full.refused > 0 == sum(run.bad for run in runs["service"]), (runs, full)
    return {
        **{name: _latencies(of_it[1:]) for name, of_it in runs.items()},
        "refused": full.refused,
        "answered": full.requests - full.bad,
    }


def _latencies(runs: list[load.Load]) -> dict[str, float]:
    """Medians."""
    return {name: statistics.median(getattr(run, name) for run in runs) for name in ("p50", "p99")}


def _first(environment: dict[str, str], rounds: int, core: int | None, folder: Path) -> dict[str, float]:
    """Seconds until the first answer, medians; with compiled files, as an installed package has them."""
    compiled = {"PYTHONPYCACHEPREFIX": str(folder / "compiled"), "PYTHONDONTWRITEBYTECODE": ""}
    ways: dict[str, Callable[[], float]] = {
        "serve": lambda: _served(environment | compiled, core, folder),
        "embedded": lambda: _embedded(compiled, folder),
    }
    taken = {name: [way() for _ in range(rounds + 1)][1:] for name, way in ways.items()}  # the first one compiles
    return {name: statistics.median(seconds) for name, seconds in taken.items()}


def _served(environment: dict[str, str], core: int | None, folder: Path) -> float:
    """From the start of the process until it has answered."""
    begun = time.perf_counter()
    with Server(SERVE, environment, core, folder) as server:
        urllib.request.urlopen(f"http://127.0.0.1:{server.port}/healthz", timeout=60).close()
        return time.perf_counter() - begun


def _embedded(environment: dict[str, str], folder: Path) -> float:
    """Until the service of a notebook has answered, imports apart."""
    command = [sys.executable, "-c", _LAB]
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "src"), **environment}
    said = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True, cwd=folder, env=environment).stdout
    return float(said.strip())


def _processes(
    folder: Path, rounds: int, seconds: float, cores: tuple[int | None, int | None]
) -> dict[str, dict[str, Figures]]:
    """work -> what `in_turn` gives of `one` process and of two with the `same` callers, and with `twice` as many.

    On PostgreSQL; one core for one process and for two. Twice the callers give each process as many as the one has;
    `half` is one process with as many callers as each of two has.
    """
    found: dict[str, dict[str, Figures]] = {}
    data = folder / "two"
    data.mkdir()
    postgres = Postgres(folder, cores[1])
    try:
        environment = service_environment(data, postgres.create("own"))
        access = asyncio.run(prepare_service(environment))
        with ExitStack() as stack:
            servers = {
                workers: stack.enter_context(Server([*SERVE, "--workers", workers], environment, cores[0], folder))
                for workers in ("1", "2")
            }
            check("heartbeat", servers["1"].port, request_of("heartbeat", access))
            compared = {
                "one": (servers["1"], load.CONNECTIONS),
                "half": (servers["1"], load.CONNECTIONS // 2),
                "same": (servers["2"], load.CONNECTIONS),
                "twice": (servers["2"], 2 * load.CONNECTIONS),
            }
            for work in WORKS:
                request = request_of(work, access)
                ways = {
                    name: partial(once, server, request, seconds, cores[1], connections)
                    for name, (server, connections) in compared.items()
                }
                found[work] = in_turn(ways, rounds)
    finally:
        postgres.stop()
    return found
