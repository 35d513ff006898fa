"""What operators watch, in Prometheus' words: requests, refusals, the provider, the database's pools, keys and sites.

With several workers each process counts into files of a folder that they share (PROMETHEUS_MULTIPROC_DIR, set by the
supervisor before they start), and whichever worker is asked adds them up.
"""

import asyncio
import contextlib
import os
import platform
from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from typing import NamedTuple

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.multiprocess import MultiProcessCollector, mark_process_dead
from prometheus_client.registry import Collector

from profilesvc import __version__

PATH = "/metrics"
SHARED_FOLDER = "PROMETHEUS_MULTIPROC_DIR"
_TICK_SECONDS = 1.0
_BUCKETS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10)


class Load(NamedTuple):
    """How busy a process is now: its requests, and per pool of connections the size, those in use, who waits."""

    in_flight: int
    pools: Mapping[str, tuple[int, int, int]]


class Metrics:
    """The counters of one running service."""

    def __init__(self) -> None:
        self._registry = CollectorRegistry()
        self._requests = Histogram(
            "profilesvc_request_seconds",
            "Requests answered, by route as documented, status and error code (`ok` for a success).",
            ["method", "route", "status", "outcome"],
            buckets=_BUCKETS,
            registry=self._registry,
        )
        self._known: dict[tuple[str, str, str, str], Histogram] = {}
        self._provider = Histogram(
            "profilesvc_provider_request_seconds",
            "Requests to the external provider; the outcome is its HTTP status or what kept it from answering.",
            ["api", "operation", "outcome"],
            buckets=_BUCKETS,
            registry=self._registry,
        )
        self._refused = Counter(
            "profilesvc_limit_refusals",
            "Requests refused because a limit was reached, by limit.",
            ["limit"],
            registry=self._registry,
        )
        self._in_flight = self._gauge("requests_in_flight", "Requests being answered.")
        self._pool = tuple(
            self._gauge(f"database_pool_{name}", text, "pool")
            for name, text in (
                ("size", "Connections that a pool may have."),
                ("in_use", "Connections of a pool at work."),
                ("waiting", "Requests that wait for a connection of a pool."),
            )
        )
        build = ["version", "python"]
        text = "The version that runs; always 1."
        build_info = Gauge("profilesvc_build_info", text, build, registry=self._registry, multiprocess_mode="livemax")
        build_info.labels(__version__, platform.python_version()).set(1)
        self._look: Callable[[], Load] = lambda: Load(0, {})
        self._events = 0

    def _gauge(self, name: str, text: str, *labels: str) -> Gauge:
        return Gauge(f"profilesvc_{name}", text, labels, registry=self._registry, multiprocess_mode="livesum")

    def request(self, method: str, route: str, status: int, outcome: str, seconds: float) -> None:
        """Count an answer."""
        labels = (method, route, str(status), outcome)
        known = self._known.get(labels)
        if known is None:  # the library's own look-up takes a lock and makes texts of everything again
            known = self._known[labels] = self._requests.labels(*labels)
        known.observe(seconds)
        self._events += route != PATH

    def provider_request(self, api: str, operation: str, outcome: str, seconds: float) -> None:
        """Count one request to the provider; a retried operation has several."""
        self._provider.labels(api, operation, outcome).observe(seconds)
        self._events += 1

    def limit_reached(self, limit: str) -> None:
        """Count a request that was refused for a limit."""
        self._refused.labels(limit).inc()
        self._events += 1

    @contextlib.asynccontextmanager
    async def watching(self, look: Callable[[], Load]) -> AsyncIterator[None]:
        """A block in which gauges tell what `look` finds: when asked, so that nothing is counted up and down.

        Of several processes only one is asked: there each writes down every second what the others add up.
        """
        self._look = look
        ticking = asyncio.ensure_future(self._tick()) if os.environ.get(SHARED_FOLDER) else None
        try:
            yield
        finally:
            if ticking is not None:
                ticking.cancel()

    async def _tick(self) -> None:
        while True:
            self._sample()
            await asyncio.sleep(_TICK_SECONDS)

    def _sample(self) -> None:
        load = self._look()
        self._in_flight.set(load.in_flight)
        for pool, figures in load.pools.items():
            for gauge, figure in zip(self._pool, figures, strict=True):
                gauge.labels(pool).set(figure)

    def stamp(self) -> object | None:
        """The same while `exposition` would say the same; None where other processes have their part in it."""
        return None if os.environ.get(SHARED_FOLDER) else (self._events, self._look())

    def exposition(self) -> bytes:
        """What is known without the database, in the text format."""
        self._sample()
        if os.environ.get(SHARED_FOLDER):
            registry = CollectorRegistry()
            MultiProcessCollector(registry)  # type: ignore[no-untyped-call]
        else:
            registry = self._registry
        return generate_latest(registry)


class _States(Collector):
    def __init__(self, states: dict[str, dict[str, int]], counted_at: float) -> None:
        self._states, self._counted_at = states, counted_at

    def collect(self) -> Iterable[Metric]:
        for name, counts in self._states.items():
            family = GaugeMetricFamily(
                f"profilesvc_{name}", f"{name.replace('_', ' ').capitalize()}.", labels=["state"]
            )
            for state, count in counts.items():
                family.add_metric([state], count)
            yield family
        yield GaugeMetricFamily(
            "profilesvc_counted_at_seconds", "When they were counted, in seconds since the epoch.", self._counted_at
        )


def forget(pid: int | None) -> None:
    """Leave the gauges of a process that is gone out; what it counted stays."""
    mark_process_dead(pid)  # type: ignore[no-untyped-call]


def exposition_of(states: dict[str, dict[str, int]], counted_at: float) -> bytes:
    """Gauges that only the database knows, {name: {label value: count}}, in the text format."""
    registry = CollectorRegistry()
    registry.register(_States(states, counted_at))
    return generate_latest(registry)
