"""`python -m benchmarks.soak` (`make soak`): hours of mixed load on `serve`, to find memory leaks.

At the end, the memory of each process must be within 5 % of its memory after one minute.
"""

import argparse
import asyncio
import json
import os
import subprocess
import sys
import tempfile
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from pathlib import Path

import httpx
import psutil

from benchmarks.database import Postgres
from benchmarks.mixed_load import OWNERS, Mixed
from benchmarks.servers import ROOT, Server

RESULTS = ROOT / "build" / "bench"
EVERY_SECONDS, FIRST_SECONDS, ALLOWED = 5.0, 60.0, 0.05
_MB = 1024 * 1024


@dataclass(frozen=True)
class Sample:
    """The state of a process at a time: bytes, counts, and seconds of CPU since its start."""

    at: float
    pid: int
    rss: int
    uss: int
    files: int
    threads: int
    cpu: float
    database: int

    def __str__(self) -> str:
        size = f"rss {self.rss / _MB:6.1f} MB, uss {self.uss / _MB:6.1f} MB, database {self.database / _MB:6.1f} MB"
        return f"{self.at / 60:5.1f} min  process {self.pid}: {size}, {self.files} files, {self.threads} threads"


class Watch:
    """The samples of all serving processes."""

    def __init__(self, pid: int, folder: Path) -> None:
        self._folder, self._next, self._next_print = folder, 0.0, 0.0
        self._serving = serving_processes(pid)
        self.samples: list[Sample] = []

    def look(self, at: float) -> None:
        """Read a sample if it is due, and print it every ten minutes."""
        if at < self._next:
            return
        self._next += EVERY_SECONDS
        samples = [self._sample(process, at) for process in self._serving]
        self.samples += samples
        if at >= self._next_print:
            print(*samples, sep="\n", flush=True)
            self._next_print = FIRST_SECONDS if at < FIRST_SECONDS else (at // 600 + 1) * 600

    def _sample(self, process: psutil.Process, at: float) -> Sample:
        memory, times = process.memory_full_info(), process.cpu_times()
        stored = sum(file.stat().st_size for file in self._folder.glob("profilesvc.db*"))
        counts = process.num_fds(), process.num_threads()
        return Sample(at, process.pid, memory.rss, memory.uss, *counts, times.user + times.system, stored)

    def verdicts(self) -> list[tuple[int, str, float]]:
        """Return (process, measure, ratio of the mean in the last minute to that at the end of the first minute)."""
        ratios = []
        for process in self._serving:
            samples = [sample for sample in self.samples if sample.pid == process.pid]
            first = [sample for sample in samples if abs(sample.at - FIRST_SECONDS) <= 2 * EVERY_SECONDS]
            last = [sample for sample in samples if sample.at >= samples[-1].at - FIRST_SECONDS]
            for measure in ("rss", "uss"):
                before, after = (sum(getattr(s, measure) for s in part) / len(part) for part in (first, last))
                ratios.append((process.pid, measure, after / before))
        return ratios


def serving_processes(pid: int) -> list[psutil.Process]:
    """Return the workers of a supervisor, or the only process."""
    master = psutil.Process(pid)
    workers = [child for child in master.children() if "spawn_main" in " ".join(child.cmdline())]
    return workers or [master]


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="benchmarks.soak", description=__doc__)
    parser.add_argument("--minutes", type=float, default=60)
    parser.add_argument("--database", choices=["sqlite", "postgresql"], default="sqlite")
    parser.add_argument("--workers", type=int, default=2, help="on PostgreSQL; SQLite has one process")
    return parser.parse_args()


def _command(environment: dict[str, str], *words: str) -> str:
    """Run a command of the program and return its output."""
    paths = os.pathsep.join([str(ROOT / "src"), *filter(None, [os.environ.get("PYTHONPATH")])])
    process = subprocess.run(
        [sys.executable, "-m", "profilesvc", *words],
        env={**os.environ, **environment, "PYTHONPATH": paths},
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    return process.stdout.strip()


def _serve(stack: ExitStack, folder: Path, options: argparse.Namespace) -> tuple[Server, dict[str, str]]:
    """Start the provider's emulator and the service as separate processes, with limits as in production."""
    provider = stack.enter_context(
        Server(["-m", "profilesvc", "emulator", "serve", "--port", "{port}"], {}, None, folder)
    )
    environment = {
        "PROFILESVC_BASE_URL": "http://soak.test",
        "PROFILESVC_DATA_DIR": str(folder),
        "PROFILESVC_TRUSTED_HOPS": "1",
        "PROFILESVC_PROVIDER__URL": f"http://127.0.0.1:{provider.port}",
        "PROFILESVC_PROVIDER__EDITS_PER_MINUTE": "0",
    }
    words = ["-m", "profilesvc", "serve", "--demo", "--port", "{port}"]
    if options.database == "postgresql":
        postgres = Postgres(folder, None)
        stack.callback(postgres.stop)
        environment["PROFILESVC_DATABASE_URL"] = postgres.create("soak")
        _command(environment, "db", "upgrade")
        words += ["--workers", str(options.workers)]
    return stack.enter_context(Server(words, environment, None, folder)), environment


async def _soak(server: Server, tokens: dict[str, str], folder: Path, seconds: float) -> tuple[Mixed, Watch]:
    limits = httpx.Limits(max_connections=20)
    url = f"http://127.0.0.1:{server.port}"
    async with httpx.AsyncClient(base_url=url, timeout=30, limits=limits, trust_env=False) as http:
        mixed = Mixed(http, tokens)
        await mixed.prepare()
        watch = Watch(server.pid, folder)
        await mixed.run(seconds, watch.look)
    return mixed, watch


def main() -> None:
    """Run the load and print the report. Exit with 1 if the memory of a process changed by more than 5 %."""
    options = _arguments()
    with tempfile.TemporaryDirectory(prefix="soak-") as name, ExitStack() as stack:
        folder = Path(name)
        server, environment = _serve(stack, folder, options)
        owners = [owner for owner, _ in OWNERS.values()]
        for owner in owners:
            _command(environment, "plans", "assign", owner, "agency")
        tokens = {owner: _command(environment, "users", "token", owner) for owner in owners}
        mixed, watch = asyncio.run(_soak(server, tokens, folder, options.minutes * 60))
        log = server.log()
    RESULTS.mkdir(parents=True, exist_ok=True)
    result = {"minutes": options.minutes, "samples": [asdict(sample) for sample in watch.samples]}
    (RESULTS / f"soak-{options.database}.json").write_text(json.dumps(result))
    raise SystemExit(_report(mixed, watch, log))


def _report(mixed: Mixed, watch: Watch, log: str) -> int:
    for (kind, outcome), count in sorted(mixed.outcomes.items()):
        print(f"{kind:14} {outcome:5} {count:8}")
    seconds = watch.samples[-1].at
    print(
        f"{sum(mixed.outcomes.values()) / seconds:.1f} requests/s; the server wrote {len(log)} characters", log[:2000]
    )
    is_stable = True
    for pid, measure, ratio in watch.verdicts():
        within = abs(ratio - 1) <= ALLOWED
        is_stable = is_stable and within
        verdict = "ok" if within else "FAILED"
        print(f"process {pid}: {measure} at the end is {ratio:.3f} × that after one minute: {verdict}")
    return 0 if is_stable else 1


if __name__ == "__main__":
    main()
