"""Several rounds in turn over all that is compared, so that what else the machine does falls on everybody alike."""

import statistics
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial

from benchmarks import limits, load
from benchmarks.servers import Server
from benchmarks.work import Access, Request, check, request_of

Figures = dict[str, float]


@dataclass(frozen=True)
class Subject:
    """A running server and what opens its doors."""

    name: str
    server: Server
    access: Access


def measure(
    subjects: list[Subject], works: list[str], rounds: int, seconds: float, cores: tuple[int | None, int | None]
) -> dict[str, dict[str, Figures]]:
    """work -> subject -> what `in_turn` gives.

    `cores`: the servers' and the load's. Beside the grants stands `signing`, what cannot be beaten, in turn with them.
    """
    server_core, core = cores
    found: dict[str, dict[str, Figures]] = {}
    for subject in subjects:  # a status is online, and has versions, after a heartbeat
        check("heartbeat", subject.server.port, request_of("heartbeat", subject.access))
    for work in works:
        ways: dict[str, Callable[[], Figures]] = {
            subject.name: partial(once, subject.server, request_of(work, subject.access), seconds, core)
            for subject in subjects
        }
        if work == "token":
            ways["signing"] = partial(limits.signing, seconds, server_core)
        for subject in subjects:
            check(work, subject.server.port, request_of(work, subject.access))
        found[work] = in_turn(ways, rounds)
        for subject in subjects:
            check(work, subject.server.port, request_of(work, subject.access))
        _say(work, found[work])
    return found


def in_turn(ways: Mapping[str, Callable[[], Figures]], rounds: int) -> dict[str, Figures]:
    """rate (1/s), cpu (µs per request), p50, p99 (ms), bad (a share) of each way, medians after a round to get warm.

    `times_cpu` and `times_rate` hold each round's figures against those of the first way in that round, medians too:
    a machine that is slow for a while is so for both.
    """
    runs = [{name: way() for name, way in ways.items()} for _ in range(rounds + 1)][1:]
    first = next(iter(ways))
    for run in runs:
        for figures in run.values():
            figures["times_cpu"] = figures["cpu"] / run[first]["cpu"]
            figures["times_rate"] = run[first]["rate"] / figures["rate"]
    return {name: _medians([run[name] for run in runs]) for name in ways}


def once(
    server: Server, request: Request, seconds: float, core: int | None, connections: int = load.CONNECTIONS
) -> Figures:
    """One run."""
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


def _medians(runs: list[Figures]) -> Figures:
    return {name: statistics.median(run[name] for run in runs) for name in runs[0]}


def _say(work: str, found: dict[str, Figures]) -> None:
    for name, medians in found.items():
        print(f"{work:10} {name:9} {medians['rate']:8.0f}/s {medians['cpu']:7.0f} us", file=sys.stderr, flush=True)
