"""`python -m benchmarks.deliveries`: CPU and memory of a process that delivers webhooks, on PostgreSQL without TLS.

Events are written by this process, at a rate per second in all, for receivers in another process. Some of these may
accept requests and never respond; the delays are those of the others, from the event to the request.
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
import orjson
import psutil

from benchmarks.database import Postgres
from benchmarks.servers import ROOT
from benchmarks.world import prepare_service, service_environment

_CHANNEL = (
    "INSERT INTO channels (owner_id, kind, target, target_digest, nonce, created_at, confirmed_at) "
    "VALUES ($1, 'webhook', $2, $3, 'n', $4, $4) RETURNING owner_id, id"
)
_EVENT = "INSERT INTO events (owner_id, id, created_at, type, data) VALUES ($1, $2, $3, 'connection.offline', $4)"
_DELIVERY = (
    "INSERT INTO deliveries (owner_id, channel_id, event_id, created_at, next_at, state) "
    "VALUES ($1, $2, $3, $4, $4, 'pending')"
)
_OWNERS, _FIRST_EVENT, _MB = 3, 1_000_000, 1024 * 1024
_REST_SECONDS = 3.0  # after the last event


def _process(environment: dict[str, str], *words: str) -> subprocess.Popen[str]:
    paths = {"PYTHONPATH": os.pathsep.join([str(ROOT), str(ROOT / "src")])}
    command = [sys.executable, "-m", *words]
    return subprocess.Popen(
        command, env={**os.environ, **paths, **environment}, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )


def _line(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    return process.stdout.readline()


async def _load(connection: asyncpg.Connection, ports: list[int], rate: float, seconds: float, pid: int) -> None:
    """Write events, and print the CPU for each delivery and the memory once a minute and at the end."""
    now = round(time.time() * 1000)
    targets = [(1 + place % _OWNERS, f"http://127.0.0.1:{port}/", str(port), now) for place, port in enumerate(ports)]
    channels = [await connection.fetchrow(_CHANNEL, *target) for target in targets]
    process, started, written, minute = psutil.Process(pid), time.monotonic(), 0, 1
    before = sum(process.cpu_times()[:2])

    def report() -> None:
        cpu = (sum(process.cpu_times()[:2]) - before) / max(written, 1) * 1000
        memory = process.memory_info().rss / _MB
        print(f"{time.monotonic() - started:5.0f} s: {written} events, {cpu:.3f} ms each, {memory:.1f} MB", flush=True)

    while (passed := time.monotonic() - started) < seconds:
        for _ in range(int(passed * rate) - written):
            owner, channel = channels[written % len(channels)]
            now, written = round(time.time() * 1000), written + 1
            data = orjson.dumps({"client_id": f"svcid_{owner}_x", "text": "x" * 500, "sent_at": now}).decode()
            await connection.execute(_EVENT, owner, _FIRST_EVENT + written, now, data)
            await connection.execute(_DELIVERY, owner, channel, _FIRST_EVENT + written, now)
        if passed >= 60 * minute:
            report()
            minute += 1
        await asyncio.sleep(0.01)
    await asyncio.sleep(_REST_SECONDS)
    report()
    print(await connection.fetch("SELECT state, count(*) FROM deliveries GROUP BY state"))


def _print_delays(receivers: subprocess.Popen[str]) -> None:
    assert receivers.stdin is not None
    receivers.stdin.write("\n")
    receivers.stdin.flush()
    delays = sorted(json.loads(_line(receivers)))
    p50, p99 = (delays[int(len(delays) * share)] for share in (0.5, 0.99))
    print(f"{len(delays)} arrived; delay: p50 {p50:.0f} ms, p99 {p99:.0f} ms")


async def _measure(server: Postgres, environment: dict[str, str], options: argparse.Namespace) -> None:
    receivers = _process({}, "benchmarks.endpoints", str(options.receivers), str(options.hanging))
    worker = _process(environment, "benchmarks.delivering", str(options.rate))
    connection = await asyncpg.connect(user="postgres", database="deliveries", host=server.host)
    try:
        ports = json.loads(_line(receivers))
        assert _line(worker) == "delivering\n"
        await _load(connection, ports, options.rate, options.seconds, worker.pid)
        _print_delays(receivers)
    finally:
        await connection.close()
        for process in (worker, receivers):
            process.terminate()
            process.communicate()


def main() -> None:
    """Run the load."""
    parser = argparse.ArgumentParser(prog="benchmarks.deliveries", description=__doc__)
    parser.add_argument("--rate", type=float, default=100, help="events per second")
    parser.add_argument("--seconds", type=float, default=600)
    parser.add_argument("--receivers", type=int, default=50, help="receivers that respond")
    parser.add_argument("--hanging", type=int, default=0, help="receivers that never respond")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="bench-") as name:
        server = Postgres(Path(name), None)
        try:
            environment = service_environment(Path(name), server.create("deliveries"))
            environment["PROFILESVC_WEBHOOKS__ALLOW_PRIVATE"] = "true"
            asyncio.run(prepare_service(environment))
            asyncio.run(_measure(server, environment, options))
        finally:
            server.stop()


if __name__ == "__main__":
    main()
