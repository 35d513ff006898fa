"""Measure the subjects in turn over several rounds, so that other load on the machine affects all of them alike."""

import math
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
    """A running server and the credentials for it."""

    name: str
    server: Server
    access: Access


def measure(
    subjects: list[Subject], works: list[str], rounds: int, seconds: float, cores: tuple[int | None, int | None]
) -> dict[str, dict[str, Figures]]:
    """Return {work: {subject: figures}}.

    `cores` are those of the servers and of the load. With grants, `signing` measures their limit in the same rounds.
    """
    server_core, core = cores
    results: dict[str, dict[str, Figures]] = {}
    for subject in subjects:  # after a heartbeat, a status is online and has versions
        check("heartbeat", subject.server.port, request_of("heartbeat", subject.access))
    for work in works:
        measurements: dict[str, Callable[[], Figures]] = {
            subject.name: partial(once, subject.server, request_of(work, subject.access), seconds, core)
            for subject in subjects
        }
        if work == "token":
            measurements["signing"] = partial(limits.signing, seconds, server_core)
        for subject in subjects:
            check(work, subject.server.port, request_of(work, subject.access))
        results[work] = in_turn(measurements, rounds)
        for subject in subjects:
            check(work, subject.server.port, request_of(work, subject.access))
        _print(work, results[work])
    return results


def in_turn(measurements: Mapping[str, Callable[[], Figures]], rounds: int) -> dict[str, Figures]:
    """Return the medians after a warm-up round: rate (1/s), cpu (µs per request), p50, p99 (ms), bad (a share).

    `times_cpu` and `times_rate` are the medians of each round's ratio to the first measurement in that round, because a
    machine that is slow for a while is slow for both. A run without a response has no cost per request and no
    latency. They are NaN, and so are its ratios, and the medians leave them out. `silent` counts such runs.
    """
    runs = [{name: measurement() for name, measurement in measurements.items()} for _ in range(rounds + 1)][1:]
    first = next(iter(measurements))
    for run in runs:
        for figures in run.values():
            figures["times_cpu"] = figures["cpu"] / run[first]["cpu"]
            figures["times_rate"] = run[first]["rate"] / figures["rate"] if figures["rate"] else math.nan
    return {name: _summary([run[name] for run in runs]) for name in measurements}


def once(
    server: Server, request: Request, seconds: float, core: int | None, connections: int = load.CONNECTIONS
) -> Figures:
    """Measure one run."""
    time.sleep(0.2)  # so that work left by the previous run is not counted
    before = server.cpu()
    result = load.run(server.port, request, seconds, core, connections)
    cpu = server.cpu() - before
    if not result.requests:
        return {"rate": 0.0, "cpu": math.nan, "p50": math.nan, "p99": math.nan, "bad": 1.0}
    return {
        "rate": result.requests / result.seconds,
        "cpu": cpu / result.requests * 1e6,
        "p50": result.p50,
        "p99": result.p99,
        "bad": result.bad / result.requests,
    }


def _summary(runs: list[Figures]) -> Figures:
    return {name: _median([run[name] for run in runs]) for name in runs[0]} | {
        "silent": sum(not run["rate"] for run in runs)
    }


def _median(values: list[float]) -> float:
    known = [value for value in values if not math.isnan(value)]
    return statistics.median(known) if known else math.nan


def _print(work: str, results: dict[str, Figures]) -> None:
    for name, medians in results.items():
        print(f"{work:10} {name:9} {medians['rate']:8.0f}/s {medians['cpu']:7.0f} us", file=sys.stderr, flush=True)
