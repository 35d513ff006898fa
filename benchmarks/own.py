"""Comparisons of the service with itself: a sync with its parts, two processes with one, overload, first responses."""

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
from benchmarks.world import OWNER_ID, peer_environment, prepare_peers, prepare_service, service_environment
from profilesvc.bootstrap import create_app
from profilesvc.services.context import Services
from profilesvc.settings import load as load_settings
from profilesvc.storage import locations, sync
from profilesvc.storage.sync import SyncRow

SERVE = ["-m", "profilesvc", "serve", "--port", "{port}"]
BUSY = ["-m", "uvicorn", "--port", "{port}", "--log-level", "warning", "--no-access-log", "benchmarks.peers.busy:app"]
CONTROL = ["-m", "uvicorn", *BUSY[2:-1], "benchmarks.peers.litestar_msgspec:app"]
WORKS = ("list", "status", "heartbeat")
_TIMES = 200
_STEADY_SECONDS = 3
_LAB = """
import time, urllib.request
from profilesvc.lab import open_lab
open_lab().close()  # imports
started = time.perf_counter()
lab = open_lab()
urllib.request.urlopen(f"{lab.url}/healthz").close()
print(time.perf_counter() - started)
lab.close()
"""


def measure(rounds: int, seconds: float, cores: tuple[int | None, int | None]) -> dict[str, Any]:
    """Return all figures in microseconds of CPU; those of first responses in seconds."""
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
    """Measure a sync by the API, and its parts: the request, the calls to the provider, the writes."""
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
            "sync": lambda: _send(app, Request("POST", f"/api/v1/sync/{LOCATION[10:]}", by_key, body())),
            "an authenticated request": lambda: _send(app, read),
            "the read of the provider's profile": lambda: provider.location(LOCATION),
            "the write to the provider": lambda: provider.patch_location(LOCATION, json.loads(body()), ["title"]),
            "the lease of the location": lambda: _lease(services),
            "the writes of profile and history": lambda: _write(services, body()),
        }
        return {name: await _cost(work) for name, work in parts.items()}


async def _cost(work: Callable[[], Awaitable[Any]]) -> float:
    """Return the median of several runs, each with ten calls."""
    costs = []
    for _ in range(_TIMES // 10):
        started = time.process_time()
        for _ in range(10):
            await work()
        costs.append((time.process_time() - started) / 10 * 1e6)
    return statistics.median(costs)


async def _lease(services: Services) -> None:
    now = services.clock.now()
    async with services.storage.write() as session:
        await sync.take_lock(session, OWNER_ID, LOCATION, "bench", now, now + 60_000)
    async with services.storage.write() as session:
        await sync.end_lock(session, OWNER_ID, LOCATION, "bench")


async def _write(services: Services, body: str) -> None:
    async with services.storage.read() as session:
        row = await locations.state(session, OWNER_ID, LOCATION)
    assert row is not None
    now = services.clock.now()
    entry = SyncRow(services.entropy.token_bytes(16).hex(), now, "success", "push", 1)
    async with services.storage.write() as session:
        await locations.change(
            session, OWNER_ID, LOCATION, source=body, last_sync=body, profile=row.profile, profile_read_at=now
        )
        await sync.add(session, OWNER_ID, LOCATION, entry)


async def _send(app: Quart, request: Request) -> None:
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
    body, messages = [{"type": "http.request", "body": request.body.encode(), "more_body": False}], list[Any]()

    async def receive() -> Any:
        return body.pop() if body else await asyncio.sleep(60)

    async def send(message: Any) -> None:
        messages.append(message)

    await app(scope, receive, send)  # type: ignore[arg-type]  # Quart's types are stricter than ASGI
    assert messages[0]["status"] == 200, messages


def _overload(
    environment: dict[str, str],
    access: Access,
    rounds: int,
    seconds: float,
    cores: tuple[int | None, int | None],
    folder: Path,
) -> dict[str, Any]:
    """Measure latencies (ms) at 80 % of the maximum rate, and the responses with twice the permitted callers.

    In the same rounds it measures `busy`, which computes for the same time as a request, to show how much the machine's
    own pauses add to latencies.
    """
    request, permitted, seconds = request_of("status", access), 100, max(seconds, _STEADY_SECONDS)
    with Server(SERVE, environment | {"PROFILESVC_MAX_IN_FLIGHT": str(permitted)}, cores[0], folder) as server:
        maximum = load.steady(server.port, request, seconds, cores[1])
        duration = {"BENCH_BUSY_SECONDS": str(maximum.seconds / maximum.requests)}
        with Server(BUSY, duration, cores[0], folder) as busy:
            subjects = {"service": (server, request), "busy": (busy, Request("GET", "/", {}))}
            runs: dict[str, list[load.Load]] = {name: [] for name in subjects}
            for _ in range(rounds + 1):
                for name, (subject, sent) in subjects.items():
                    maximum = load.steady(subject.port, sent, seconds, cores[1])
                    rate = 0.8 * maximum.requests / maximum.seconds
                    runs[name].append(load.steady(subject.port, sent, seconds, cores[1], rate))
        full = load.steady(server.port, request, seconds, cores[1], connections=2 * permitted)
    assert full.bad == full.refused > 0 == sum(run.bad for run in runs["service"]), (runs, full)
    return {
        **{name: _latencies(rounds_of[1:]) for name, rounds_of in runs.items()},
        "refused": full.refused,
        "answered": full.requests - full.bad,
    }


def _latencies(runs: list[load.Load]) -> dict[str, float]:
    """Return the medians."""
    return {name: statistics.median(getattr(run, name) for run in runs) for name in ("p50", "p99")}


def _first(environment: dict[str, str], rounds: int, core: int | None, folder: Path) -> dict[str, float]:
    """Return the median seconds until the first response, with compiled files as in an installed package."""
    compiled = {"PYTHONPYCACHEPREFIX": str(folder / "compiled"), "PYTHONDONTWRITEBYTECODE": ""}
    measurements: dict[str, Callable[[], float]] = {
        "serve": lambda: _served(environment | compiled, core, folder),
        "embedded": lambda: _embedded(compiled, folder),
    }
    # The first round compiles the files.
    durations = {name: [measure_once() for _ in range(rounds + 1)][1:] for name, measure_once in measurements.items()}
    return {name: statistics.median(seconds) for name, seconds in durations.items()}


def _served(environment: dict[str, str], core: int | None, folder: Path) -> float:
    """Return the seconds from the start of the process to its first response."""
    started = time.perf_counter()
    with Server(SERVE, environment, core, folder) as server:
        urllib.request.urlopen(f"http://127.0.0.1:{server.port}/healthz", timeout=60).close()
        return time.perf_counter() - started


def _embedded(environment: dict[str, str], folder: Path) -> float:
    """Return the seconds to the first response of the service in a notebook, without imports."""
    command = [sys.executable, "-c", _LAB]
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "src"), **environment}
    output = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True, cwd=folder, env=environment).stdout
    return float(output.strip())


def _processes(
    folder: Path, rounds: int, seconds: float, cores: tuple[int | None, int | None]
) -> dict[str, dict[str, Figures]]:
    """Return {work: figures} of `one` process, and of two with the `same` callers and with `twice` as many.

    The database is PostgreSQL, and one or two processes share one core. With `twice` the callers, each process has as
    many as the one process; `half` is one process with as many callers as each of two has. The work `control` is the
    status read of a peer, which shows what two processes on one core cost on this machine.
    """
    results: dict[str, dict[str, Figures]] = {}
    data = folder / "two"
    data.mkdir()
    postgres = Postgres(folder, cores[1])
    try:
        environment = service_environment(data, postgres.create("own"))
        access = asyncio.run(prepare_service(environment))
        peers = peer_environment(postgres.create("peers"))
        peer_access = prepare_peers(peers, access)
        with ExitStack() as stack:

            def start(command: list[str], environment: dict[str, str]) -> dict[str, Server]:
                return {
                    workers: stack.enter_context(
                        Server([*command, "--workers", workers], environment, cores[0], folder)
                    )
                    for workers in ("1", "2")
                }

            servers, control = start(SERVE, environment), start(CONTROL, peers)
            check("heartbeat", servers["1"].port, request_of("heartbeat", access))
            compared = [(work, servers, request_of(work, access)) for work in WORKS]
            for work, pair, request in [*compared, ("control", control, request_of("status", peer_access))]:
                results[work] = in_turn(_by_callers(pair, request, seconds, cores[1]), rounds)
    finally:
        postgres.stop()
    return results


def _by_callers(
    servers: dict[str, Server], request: Request, seconds: float, core: int | None
) -> dict[str, Callable[[], Figures]]:
    callers = {
        "one": (servers["1"], load.CONNECTIONS),
        "half": (servers["1"], load.CONNECTIONS // 2),
        "same": (servers["2"], load.CONNECTIONS),
        "twice": (servers["2"], 2 * load.CONNECTIONS),
    }
    return {name: partial(once, server, request, seconds, core, count) for name, (server, count) in callers.items()}
