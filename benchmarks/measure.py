"""Several rounds in turn over all subjects, so that what else the machine does falls on everybody alike; medians."""

import statistics
import sys
import time
from dataclasses import dataclass

from benchmarks import limits, load
from benchmarks.servers import Server
from benchmarks.work import Access, Request, check, request_of

_WARM_SECONDS = 1


@dataclass(frozen=True)
class Subject:
    """A running server and what opens its doors."""

    name: str
    server: Server
    access: Access


def measure(
    subjects: list[Subject], works: list[str], rounds: int, seconds: float, cores: tuple[int | None, int | None]
) -> dict[str, dict[str, dict[str, float]]]:
    """work -> subject -> rate (1/s), cpu (µs per request), p50, p99 (ms), bad (a share), medians of the rounds.

    `cores`: the servers' and the load's. Beside the grants stands `signing`, what cannot be beaten, in turn with them.
    """
    server_core, core = cores
    found: dict[str, dict[str, dict[str, float]]] = {work: {} for work in works}
    for subject in subjects:  # a status is online, and has versions, after a heartbeat
        check("heartbeat", subject.server.port, request_of("heartbeat", subject.access))
    for work in works:
        runs: dict[str, list[dict[str, float]]] = {subject.name: [] for subject in subjects}
        for subject in subjects:
            request = request_of(work, subject.access)
            check(work, subject.server.port, request)
            load.run(subject.server.port, request, _WARM_SECONDS, core)
        for _ in range(rounds):
            for subject in subjects:
                runs[subject.name].append(_once(subject.server, request_of(work, subject.access), seconds, core))
            if work == "token":
                runs.setdefault("signing", []).append(limits.signing(seconds, server_core))
        for subject in subjects:
            check(work, subject.server.port, request_of(work, subject.access))
        found[work] = {name: _medians(each) for name, each in runs.items()}
        _say(work, found[work])
    return found


def medians(server: Server, request: Request, rounds: int, seconds: float, core: int | None) -> dict[str, float]:
    """The medians of one server and one request."""
    return _medians([_once(server, request, seconds, core) for _ in range(rounds)])


def in_turn(
    servers: dict[str, tuple[Server, int]], request: Request, rounds: int, seconds: float, core: int | None
) -> dict[str, dict[str, float]]:
    """The medians of several servers and one request on so many connections."""
    runs: dict[str, list[dict[str, float]]] = {name: [] for name in servers}
    for server, connections in servers.values():
        load.run(server.port, request, _WARM_SECONDS, core, connections)
    for _ in range(rounds):
        for name, (server, connections) in servers.items():
            runs[name].append(_once(server, request, seconds, core, connections))
    return {name: _medians(each) for name, each in runs.items()}


def _once(
    server: Server, request: Request, seconds: float, core: int | None, connections: int = load.CONNECTIONS
) -> dict[str, float]:
    time.sleep(0.2)  # what the run before left behind is not counted here
    before = server.cpu()
    done = load.run(server.port, request, seconds, core, connections)
    cpu = server.cpu() - before
    return {
        "rate": done.requests / done.seconds,
        "cpu": cpu / max(done.requests, 1) * 1e6,
        "p50": done.p50,
        "p99": done.p99,
        "bad": done.bad / max(done.requests, 1),
    }


def _medians(runs: list[dict[str, float]]) -> dict[str, float]:
    return {name: statistics.median(run[name] for run in runs) for name in runs[0]}


def _say(work: str, found: dict[str, dict[str, float]]) -> None:
    for name, medians in found.items():
        print(f"{work:10} {name:9} {medians['rate']:8.0f}/s {medians['cpu']:7.0f} us", file=sys.stderr, flush=True)
