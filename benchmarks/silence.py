"""`python -m benchmarks.silence`: many sites fall silent in one hour; each must cause one event and one delivery.

The service's clock moves by a minute for each sweep. A fifth of the sites keeps reporting, as the alarms require.
"""

import argparse
import asyncio
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import asyncpg

from benchmarks import generate
from benchmarks.database import Postgres
from benchmarks.generate import Amounts
from benchmarks.servers import ROOT
from benchmarks.world import prepare_service, service_environment
from profilesvc.bootstrap import Runtime, open_services
from profilesvc.domain.heartbeats import OFFLINE_AFTER
from profilesvc.domain.time import DAY, HOUR, MINUTE, FrozenClock
from profilesvc.operations.notify import sweep
from profilesvc.settings import load

_CHANNELS = (
    "INSERT INTO channels (owner_id, kind, target, target_digest, types, nonce, created_at, confirmed_at) SELECT "
    "DISTINCT owner_id, 'webhook', $1, owner_id::text, ',connection.offline,', 'n', $2::bigint, $2 FROM keys"
)
_SILENT_SINCE = "UPDATE connections SET last_heartbeat_at = $1 + mod(key_id * 7919, $2) WHERE mod(key_id, 5) < 4"
_REPORT = "UPDATE connections SET last_heartbeat_at = $1 WHERE mod(key_id, 5) = 4"
_SILENT = "SELECT count(*) FROM connections WHERE mod(key_id, 5) < 4"
_EVENTS = (
    "SELECT count(*), count(DISTINCT (owner_id, key_id)) FROM events "
    "WHERE type = 'connection.offline' AND created_at > $1"
)


def _receiver() -> subprocess.Popen[str]:
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), str(ROOT / "src")])}
    command = [sys.executable, "-m", "benchmarks.endpoints", "1", "0"]
    return subprocess.Popen(command, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


async def _measure(server: Postgres, environment: dict[str, str], keys: int, port: int) -> None:
    os.environ.update(environment)
    start = round(time.time() * 1000)
    clock = FrozenClock(start)
    connection = await asyncpg.connect(user="postgres", database="silence", host=server.host)
    async with open_services(load(), Runtime(clock=clock)) as services:
        await generate.load(services, Amounts(keys=keys, posts=0, history=0), seed=1, sure=True)
        await connection.execute(_REPORT, start)
        await connection.execute(_SILENT_SINCE, start - OFFLINE_AFTER + 10 * MINUTE, HOUR)
        await connection.execute("VACUUM ANALYZE")
        await sweep.run_once(services)  # adopts the states
        await connection.execute(_CHANNELS, f"http://127.0.0.1:{port}/", start)
        silent, cpu, started = await connection.fetchval(_SILENT), time.process_time(), time.perf_counter()
        for _ in range(75):
            clock.advance(minutes=1)
            await connection.execute(_REPORT, clock.now())
            await sweep.run_once(services)
        while await connection.fetchval("SELECT count(*) FROM deliveries WHERE state = 'pending'"):
            services.due.set()
            await asyncio.sleep(0.2)
        spent, seconds = time.process_time() - cpu, time.perf_counter() - started
        events, of_keys = await connection.fetchrow(_EVENTS, start - DAY)
        print(
            f"{silent} sites silent: {events} events of {of_keys} sites, in {seconds:.0f} s with {spent:.0f} s of CPU"
        )
        print(await connection.fetch("SELECT state, tries, count(*) FROM deliveries GROUP BY state, tries"))
    await connection.close()


def main() -> None:
    """Generate the sites and let them fall silent."""
    parser = argparse.ArgumentParser(prog="benchmarks.silence", description=__doc__)
    parser.add_argument("--keys", type=int, default=125_000, help="a fifth of them keeps reporting")
    options = parser.parse_args()
    receiver = _receiver()
    with tempfile.TemporaryDirectory(prefix="bench-") as name:
        server = Postgres(Path(name), None)
        try:
            environment = service_environment(Path(name), server.create("silence"))
            environment["PROFILESVC_WEBHOOKS__ALLOW_PRIVATE"] = "true"
            asyncio.run(prepare_service(environment))
            assert receiver.stdout is not None
            (port,) = json.loads(receiver.stdout.readline())
            asyncio.run(_measure(server, environment, options.keys, port))
        finally:
            server.stop()
            receiver.terminate()
            receiver.communicate()


if __name__ == "__main__":
    main()
