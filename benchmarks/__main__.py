"""`python -m benchmarks`: measure everything in one run, print it, write `docs/performance.md` and its plot."""

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
    parser.add_argument("--seconds", type=float, default=2, help="of each measurement, whole ones with wrk")
    parser.add_argument("--databases", default="sqlite,postgresql")
    parser.add_argument("--works", default=",".join(WORKS))
    parser.add_argument(
        "--subjects", default=",".join(["service", *PEERS]), help="the first one is what the others are held against"
    )
    parser.add_argument("--nice", type=int, default=0, help="below 0, as root: less disturbed by what else runs")
    parser.add_argument("--no-page", action="store_true", help="print alone, leave docs/ as it is")
    parser.add_argument("--render", action="store_true", help="write the page of the last run anew")
    return parser.parse_args()


def cores() -> tuple[int | None, int | None]:
    """(the server's core, the load generator's and the database's), None where there is one alone."""
    there = sorted(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else []
    return (there[0], there[1]) if len(there) > 1 else (None, None)


def _subjects(names: list[str], folder: Path, urls: tuple[str, str], core: int | None) -> list[Subject]:
    """Start what is compared; each is prepared in its own database."""
    service = service_environment(folder, urls[0])
    access = asyncio.run(prepare_service(service))
    peers = peer_environment(urls[1])
    theirs: Access | None = None
    started = []
    for name in names:
        if name == "service":
            started.append(Subject(name, Server(SERVE, service, core, folder), access))
            continue
        theirs = theirs or prepare_peers(peers, access)
        command = [*UVICORN, f"benchmarks.peers.{PEERS[name]}:app"]
        started.append(Subject(name, Server(command, peers, core, folder), theirs))
    return started


def _urls(database: str, folder: Path, core: int | None) -> tuple[tuple[str, str], Postgres | None]:
    if database == "sqlite":
        return (f"sqlite+aiosqlite:///{folder}/service.db", f"sqlite+aiosqlite:///{folder}/peers.db"), None
    server = Postgres(folder, core)
    return (server.create("service"), server.create("peers")), server


def _on(database: str, asked: argparse.Namespace) -> dict[str, dict[str, Figures]]:
    """work -> subject -> what `in_turn` gives."""
    server_core, load_core = cores()
    with tempfile.TemporaryDirectory(prefix="bench-") as name:
        folder = Path(name)
        urls, postgres = _urls(database, folder, load_core)
        subjects: list[Subject] = []
        try:
            subjects = _subjects(asked.subjects.split(","), folder, urls, server_core)
            return measure(subjects, asked.works.split(","), asked.rounds, asked.seconds, cores())
        finally:
            for subject in subjects:
                subject.server.stop()
            if postgres is not None:
                postgres.stop()


def _bare(asked: argparse.Namespace) -> Figures:
    """What a request costs before anybody has looked at it."""
    server_core, load_core = cores()
    with tempfile.TemporaryDirectory(prefix="bench-") as folder:
        server = Server([*UVICORN, "benchmarks.peers.bare:app"], {}, server_core, Path(folder))
        with server:
            ways = {"bare": partial(once, server, Request("GET", "/", {}), asked.seconds, load_core)}
            return in_turn(ways, asked.rounds)["bare"]


def main() -> None:
    """Measure, print, write."""
    asked = _arguments()
    if not asked.render:
        os.nice(asked.nice)  # servers and load inherit it
        how = {"rounds": asked.rounds, "seconds": asked.seconds, "nice": asked.nice}
        results: dict[str, Any] = {"machine_load": os.getloadavg(), **how}
        results["bare ASGI"] = _bare(asked)
        results["databases"] = {name: _on(name, asked) for name in asked.databases.split(",")}
        if "service" in asked.subjects.split(","):
            results["own"] = own.measure(asked.rounds, asked.seconds, cores())
            results["large"] = large.measure(asked.rounds, asked.seconds, cores())
        RESULTS.parent.mkdir(parents=True, exist_ok=True)
        RESULTS.write_text(json.dumps(results, indent=1))
    results = json.loads(RESULTS.read_text())
    print(page.tables(results))
    if not asked.no_page:
        page.write(results, ROOT / "docs")


if __name__ == "__main__":
    main()
