"""`python -m benchmarks.versions BEFORE AFTER`: the CPU of each request with the code of two commits, in turn.

Each commit is checked out into a folder of its own and prepares a database with its own tables. The servers are
started again several times, because two starts of the same code differ by up to 5 %.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from benchmarks import servers
from benchmarks.__main__ import cores
from benchmarks.database import Postgres
from benchmarks.measure import Figures, once
from benchmarks.servers import SERVE
from benchmarks.work import WORKS, Access, check, request_of

# Executed by the code of a commit: prepare the database, and print the settings and the credentials.
PREPARE = """
import asyncio, dataclasses, json, sys
from pathlib import Path
from benchmarks.world import prepare_service, service_environment
settings = service_environment(Path(sys.argv[1]), sys.argv[2])
print(json.dumps([settings, dataclasses.asdict(asyncio.run(prepare_service(settings)))]))
"""


@dataclass(frozen=True)
class Version:
    """A commit that is checked out, the settings of its service, and credentials for it."""

    tree: Path
    folder: Path
    settings: dict[str, str]
    access: Access

    def start(self, core: int | None) -> servers.Server:
        """Start the service with this code."""
        paths = {"PYTHONPATH": f"{self.tree}/src"}
        return servers.Server(SERVE, self.settings | paths, core, self.folder)


def _prepare(commit: str, scratch: Path, url: str, undo: ExitStack) -> Version:
    tree, folder = scratch / "code", scratch / "data"
    folder.mkdir(parents=True)
    git = partial(subprocess.run, cwd=servers.ROOT, check=True, stderr=subprocess.DEVNULL)
    git(["git", "worktree", "add", "--detach", str(tree), commit], stdout=subprocess.DEVNULL)
    undo.callback(git, ["git", "worktree", "remove", "--force", str(tree)])
    url = url or f"sqlite+aiosqlite:///{folder}/service.db"
    environment = os.environ | {"PYTHONPATH": f"{tree}:{tree}/src"}
    command = [sys.executable, "-c", PREPARE, str(folder), url]
    output = subprocess.run(command, cwd=tree, env=environment, stdout=subprocess.PIPE, text=True, check=True).stdout
    settings, access = json.loads(output)
    return Version(tree, folder, settings, Access(**access))


def _round(versions: list[Version], works: list[str], seconds: float, repeats: int) -> dict[str, list[Figures]]:
    """Start both servers, and return {work: the CPU of each version, for each repeat}."""
    server_core, load_core = cores()
    results: dict[str, list[Figures]] = {}
    with ExitStack() as stack:
        started = [stack.enter_context(version.start(server_core)) for version in versions]
        for work in works:
            requests = [request_of(work, version.access) for version in versions]
            for server, version in zip(started, versions, strict=True):
                check("heartbeat", server.port, request_of("heartbeat", version.access))
                once(server, request_of(work, version.access), seconds, load_core)
            for repeat in range(repeats):
                order = [0, 1] if repeat % 2 == 0 else [1, 0]
                cpu = {place: once(started[place], requests[place], seconds, load_core) for place in order}
                assert not any(figures["bad"] for figures in cpu.values()), cpu
                pair = {"before": cpu[0]["cpu"], "after": cpu[1]["cpu"], "times": cpu[1]["cpu"] / cpu[0]["cpu"]}
                results.setdefault(work, []).append(pair)
    return results


def _compare(database: str, options: argparse.Namespace) -> None:
    with tempfile.TemporaryDirectory(prefix="versions-") as name, ExitStack() as undo:
        scratch = Path(name)
        scratch.chmod(0o755)  # as root, PostgreSQL runs as another user
        postgres = Postgres(scratch, cores()[1]) if database == "postgresql" else None
        if postgres is not None:
            undo.callback(postgres.stop)
        urls = {side: postgres.create(side) if postgres else "" for side in ("before", "after")}
        versions = [_prepare(getattr(options, side), scratch / side, urls[side], undo) for side in ("before", "after")]
        works = options.works.split(",")
        rounds = [_round(versions, works, options.seconds, options.repeats) for _ in range(options.starts)]
        for work in works:
            pairs = [pair for results in rounds for pair in results[work]]
            before, after, times = (statistics.median(pair[key] for pair in pairs) for key in pairs[0])
            low, *_, high = sorted(statistics.median(p["times"] for p in results[work]) for results in rounds)
            print(
                f"{database:10} {work:10} {before:6.0f} µs before, {after:6.0f} µs after: {times:.3f} times"
                f" (starts: {low:.3f} to {high:.3f})",
                flush=True,
            )


def main() -> None:
    """Compare the commits on each database."""
    parser = argparse.ArgumentParser(prog="benchmarks.versions", description=__doc__)
    parser.add_argument("before")
    parser.add_argument("after")
    parser.add_argument("--databases", default="sqlite,postgresql")
    parser.add_argument("--works", default=",".join(WORKS))
    parser.add_argument("--starts", type=int, default=4)
    parser.add_argument("--repeats", type=int, default=4, help="of each pair of measurements after a start")
    parser.add_argument("--seconds", type=float, default=2, help="length of each measurement; whole seconds with wrk")
    options = parser.parse_args()
    for database in options.databases.split(","):
        _compare(database, options)


if __name__ == "__main__":
    main()
