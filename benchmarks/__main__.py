"""`python -m benchmarks`: measure everything in one run, print it, and write `docs/performance.md` and its plot."""

import argparse
import asyncio
import json
import os
import sys
import tempfile
from functools import partial
from pathlib import Path
from typing import Any

from benchmarks import anchors, large, own, page
from benchmarks.database import Postgres
from benchmarks.measure import Figures, Subject, in_turn, measure, once
from benchmarks.servers import ROOT, SERVE, Server
from benchmarks.work import WORKS, Access, Request
from benchmarks.world import peer_environment, prepare_peers, prepare_service, service_environment

RESULTS = ROOT / "build" / "bench" / "results.json"
UVICORN = ["-m", "uvicorn", "--port", "{port}", "--log-level", "warning", "--no-access-log"]
PEERS = {"fastapi": "fastapi_sqlmodel", "litestar": "litestar_msgspec", "quart": "quart_schema_sqlmodel"}
Urls = dict[str, str]  # of databases, by the name of a subject or `peers`


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="benchmarks", description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=2, help="length of each measurement; whole seconds with wrk")
    parser.add_argument("--databases", default="sqlite,postgresql")
    parser.add_argument("--works", default=",".join(WORKS))
    parser.add_argument(
        "--subjects",
        default=",".join(["service", *PEERS, *anchors.NAMES]),
        help="the first one is the reference of the others",
    )
    parser.add_argument("--nice", type=int, default=0, help="below 0 as root, so that other programs disturb less")
    parser.add_argument("--no-own", action="store_true", help="leave out the comparisons of the service with itself")
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


def _subjects(names: list[str], folder: Path, urls: Urls, core: int | None) -> list[Subject]:
    """Start the servers to compare, with a prepared database."""
    service = service_environment(folder, urls["service"])
    access = asyncio.run(prepare_service(service))
    peers = peer_environment(urls["peers"])
    peer_access: Access | None = None
    started = []
    for name in names:
        if name == "service":
            started.append(Subject(name, Server(SERVE, service, core, folder), access))
            continue
        if name in anchors.NAMES:
            own_access = asyncio.run(prepare_service(service_environment(folder / name, urls[name])))
            started.append(Subject(name, anchors.start(name, urls[name], core, folder), own_access))
            continue
        peer_access = peer_access or prepare_peers(peers, access)
        command = [*UVICORN, f"benchmarks.peers.{PEERS[name]}:app"]
        started.append(Subject(name, Server(command, peers, core, folder), peer_access))
    return started


def _urls(database: str, folder: Path, core: int | None) -> tuple[Urls, Postgres | None]:
    names = "service", "peers", *anchors.NAMES
    if database == "sqlite":
        return {name: f"sqlite+aiosqlite:///{folder}/{name}.db" for name in names}, None
    server = Postgres(folder, core)
    return {name: server.create(name) for name in names}, server


def _names(database: str, options: argparse.Namespace) -> list[str]:
    """Return the subjects that can run on a database here. An anchor that cannot is named on stderr."""
    without = () if database == "postgresql" else anchors.NAMES
    if options.short:  # the one in Go is compiled first
        without = (*without, "go")
    names = [name for name in options.subjects.split(",") if name not in without]
    for name in names:
        if obstacle := anchors.obstacle(name):
            print(obstacle, file=sys.stderr)
    return [name for name in names if not anchors.obstacle(name)]


def _check_anchors(subjects: list[Subject], urls: Urls) -> None:
    """Check that the anchors do the work of the service."""
    by_name = {subject.name: subject for subject in subjects}
    found = [name for name in anchors.NAMES if name in by_name]
    if found and "service" in by_name:
        traces = {
            name: anchors.trace(by_name[name].server.port, by_name[name].access, urls[name])
            for name in ("service", *found)
        }
        for name in found:
            anchors.compare(traces["service"], traces[name], name)


def _measure_on(database: str, options: argparse.Namespace) -> dict[str, dict[str, Figures]]:
    """Return {work: {subject: figures}}."""
    server_core, load_core = cores()
    with tempfile.TemporaryDirectory(prefix="bench-") as name:
        folder = Path(name)
        urls, postgres = _urls(database, folder, load_core)
        subjects: list[Subject] = []
        try:
            subjects = _subjects(_names(database, options), folder, urls, server_core)
            _check_anchors(subjects, urls)
            left_out = anchors.NAMES if options.short else ()  # a short run only compares them with the service
            measured = [subject for subject in subjects if subject.name not in left_out]
            return measure(measured, options.works.split(","), options.rounds, options.seconds, cores())
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
        if "service" in options.subjects.split(",") and not options.no_own:
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
