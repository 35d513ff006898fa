"""`python -m benchmarks`: measure everything in one run, print it, and write `docs/performance.md` and its plot."""

import argparse
import asyncio
import json
import os
import tempfile
from functools import partial
from pathlib import Path
from typing import Any

from benchmarks import large, own, page
from benchmarks.database import Postgres
from benchmarks.measure import Figures, Subject, in_turn, measure, once
from benchmarks.servers import ROOT, Server
from benchmarks.work import WORKS, Access, Request
from benchmarks.world import peer_environment, prepare_peers, prepare_service, service_environment

RESULTS = ROOT / "build" / "bench" / "results.json"
UVICORN = ["-m", "uvicorn", "--port", "{port}", "--log-level", "warning", "--no-access-log"]
PEERS = {"fastapi": "fastapi_sqlmodel", "litestar": "litestar_msgspec", "quart": "quart_schema_sqlmodel"}
SERVE = ["-m", "profilesvc", "serve", "--port", "{port}"]


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="benchmarks", description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=2, help="length of each measurement; whole seconds with wrk")
    parser.add_argument("--databases", default="sqlite,postgresql")
    parser.add_argument("--works", default=",".join(WORKS))
    parser.add_argument(
        "--subjects", default=",".join(["service", *PEERS]), help="the first one is the reference of the others"
    )
    parser.add_argument("--nice", type=int, default=0, help="below 0 as root, so that other programs disturb less")
    parser.add_argument("--no-page", action="store_true", help="only print, and do not write docs/")
    parser.add_argument(
        "--short", action="store_true", help="run everything once on small tables, to see that it works"
    )
    parser.add_argument("--render", action="store_true", help="write the page again from the last results")
    return parser.parse_args()


def cores() -> tuple[int | None, int | None]:
    """Return the server's core, and the core of the load generator and the database; None on a machine with one."""
    usable = sorted(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else []
    return (usable[0], usable[1]) if len(usable) > 1 else (None, None)


def _subjects(names: list[str], folder: Path, urls: tuple[str, str], core: int | None) -> list[Subject]:
    """Start the servers to compare, with a prepared database."""
    service = service_environment(folder, urls[0])
    access = asyncio.run(prepare_service(service))
    peers = peer_environment(urls[1])
    peer_access: Access | None = None
    started = []
    for name in names:
        if name == "service":
            started.append(Subject(name, Server(SERVE, service, core, folder), access))
            continue
        peer_access = peer_access or prepare_peers(peers, access)
        command = [*UVICORN, f"benchmarks.peers.{PEERS[name]}:app"]
        started.append(Subject(name, Server(command, peers, core, folder), peer_access))
    return started


def _urls(database: str, folder: Path, core: int | None) -> tuple[tuple[str, str], Postgres | None]:
    if database == "sqlite":
        return (f"sqlite+aiosqlite:///{folder}/service.db", f"sqlite+aiosqlite:///{folder}/peers.db"), None
    server = Postgres(folder, core)
    return (server.create("service"), server.create("peers")), server


def _measure_on(database: str, options: argparse.Namespace) -> dict[str, dict[str, Figures]]:
    """Return {work: {subject: figures}}."""
    server_core, load_core = cores()
    with tempfile.TemporaryDirectory(prefix="bench-") as name:
        folder = Path(name)
        urls, postgres = _urls(database, folder, load_core)
        subjects: list[Subject] = []
        try:
            subjects = _subjects(options.subjects.split(","), folder, urls, server_core)
            return measure(subjects, options.works.split(","), options.rounds, options.seconds, cores())
        finally:
            for subject in subjects:
                subject.server.stop()
            if postgres is not None:
                postgres.stop()


def _bare(options: argparse.Namespace) -> Figures:
    """Measure a minimal ASGI function, which is the lower limit for a request."""
    server_core, load_core = cores()
    with tempfile.TemporaryDirectory(prefix="bench-") as folder:
        server = Server([*UVICORN, "benchmarks.peers.bare:app"], {}, server_core, Path(folder))
        with server:
            measurements = {"bare": partial(once, server, Request("GET", "/", {}), options.seconds, load_core)}
            return in_turn(measurements, options.rounds)["bare"]


def main() -> None:
    """Run the benchmarks, print the tables and write the page."""
    options = _arguments()
    if options.short:
        options.rounds, options.seconds, options.no_page = 1, 1, True
    if not options.render:
        os.nice(options.nice)  # the servers and the load generator inherit it
        parameters = {"rounds": options.rounds, "seconds": options.seconds, "nice": options.nice}
        results: dict[str, Any] = {"machine_load": os.getloadavg(), **parameters}
        results["bare ASGI"] = _bare(options)
        results["databases"] = {name: _measure_on(name, options) for name in options.databases.split(",")}
        if "service" in options.subjects.split(","):
            results["own"] = own.measure(options.rounds, options.seconds, cores())
            results["large"] = large.measure(
                options.rounds, options.seconds, cores(), large.FEW if options.short else large.MANY
            )
        RESULTS.parent.mkdir(parents=True, exist_ok=True)
        RESULTS.write_text(json.dumps(results, indent=1))
    results = json.loads(RESULTS.read_text())
    print(page.tables(results))
    if not options.no_page:
        page.write(results, ROOT / "docs")


if __name__ == "__main__":
    main()
