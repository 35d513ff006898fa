"""`python -m benchmarks.sweeps`: CPU of a sweep of many keys on PostgreSQL, and its statements that took long.

The first sweep adopts the states of all keys. The ones after it find little that is new.
"""

import argparse
import asyncio
import os
import re
import tempfile
import time
from pathlib import Path

import asyncpg
import psutil

from benchmarks import generate
from benchmarks.database import Postgres
from benchmarks.generate import Amounts
from benchmarks.world import prepare_service, service_environment
from profilesvc.bootstrap import Runtime, open_services
from profilesvc.operations.notify import sweep
from profilesvc.settings import load

_SWEEPS = 4
_LONG_MS = 20  # statements that the server logs
_DURATION = re.compile(r"duration: ([\d.]+) ms  (?:execute|statement)[^:]*: (.*)")


def _cpu(process: psutil.Process) -> float:
    return float(sum(process.cpu_times()[:2]))


def _backends(server: Postgres) -> float:
    """Return the CPU of the server, with that of ended backends."""
    master = psutil.Process(int((Path(server.host) / "postmaster.pid").read_text().splitlines()[0]))
    ended = master.cpu_times()
    running = sum(_cpu(each) for each in master.children(recursive=True))
    return running + float(ended.children_user + ended.children_system)


def _long_statements(log: Path, position: int) -> list[tuple[float, str]]:
    found = _DURATION.findall(log.read_bytes()[position:].decode(errors="replace"))
    return sorted(((float(duration), text[:80]) for duration, text in found), reverse=True)


async def _measure(server: Postgres, environment: dict[str, str], keys: int) -> None:
    os.environ.update(environment)
    own = psutil.Process()
    async with open_services(load(), Runtime()) as services:
        await generate.load(services, Amounts(keys=keys, posts=0, history=0), seed=1, sure=True)
        connection = await asyncpg.connect(user="postgres", database="sweeps", host=server.host)
        await connection.execute("VACUUM ANALYZE")
        await connection.execute(f"ALTER SYSTEM SET log_min_duration_statement = {_LONG_MS}")
        await connection.execute("SELECT pg_reload_conf()")
        await connection.close()
        log = Path(server.host) / "log"
        for number in range(_SWEEPS):
            position, before, server_before = log.stat().st_size, _cpu(own), _backends(server)
            started = time.perf_counter()
            await sweep.catch_up(services)
            seconds = time.perf_counter() - started
            spent, in_server = _cpu(own) - before, _backends(server) - server_before
            print(
                f"sweep {number + 1} of {keys} keys: {seconds:.1f} s, {spent:.1f} s of CPU here and "
                f"{in_server:.1f} s in the server; longest statements:"
            )
            for duration, text in _long_statements(log, position)[:3]:
                print(f"  {duration:.0f} ms: {text}")


def main() -> None:
    """Generate the keys and sweep them."""
    parser = argparse.ArgumentParser(prog="benchmarks.sweeps", description=__doc__)
    parser.add_argument("--keys", type=int, default=1_000_000)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="bench-") as name:
        server = Postgres(Path(name), None)
        try:
            environment = service_environment(Path(name), server.create("sweeps"))
            asyncio.run(prepare_service(environment))
            asyncio.run(_measure(server, environment, options.keys))
        finally:
            server.stop()


if __name__ == "__main__":
    main()
