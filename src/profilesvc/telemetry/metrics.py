"""Metrics for Prometheus: requests, limits, the provider, database pools, keys and sites.

With several workers, each process counts in files of a shared directory (PROMETHEUS_MULTIPROC_DIR, which the supervisor
sets before it starts them). The worker that gets the request for /metrics adds them up.
"""

import os
import platform
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Literal, NamedTuple

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.multiprocess import MultiProcessCollector, mark_process_dead
from prometheus_client.registry import Collector

from profilesvc import __version__

PATH = "/metrics"
SHARED_FOLDER = "PROMETHEUS_MULTIPROC_DIR"
_BUCKETS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10)
_JOB_BUCKETS = (0.01, 0.1, 1, 10, 60, 600)
_Mode = Literal["livesum", "livemin", "livemax", "liveall"]  # of several processes


class Load(NamedTuple):
    """The load of a process: its requests, and per pool the size, connections in use and waiting requests."""

    in_flight: int
    pools: Mapping[str, tuple[int, int, int]]


class Metrics:
    """The counters of one running service."""

    def __init__(self) -> None:
        self._registry = CollectorRegistry()
        self._series: dict[tuple[str, str, str, str], Histogram] = {}
        self._look: Callable[[], Load] = lambda: Load(0, {})
        self._events = 0
        self._requests = self._histogram(
            "request_seconds",
            "Responses by route, status and error code (`ok` for a success).",
            *("method", "route", "status", "outcome"),
        )
        text = "Requests to the external provider. The outcome is its HTTP status or the reason for a missing response."
        self._provider = self._histogram("provider_request_seconds", text, "api", "operation", "outcome")
        self._rejected = self._counter("limit_refusals", "Requests rejected because of a limit, by limit.", "limit")
        self._posts = self._counter("posts_created", "Posts created.")
        text = "Attempts to deliver events, by kind of channel and outcome."
        self._deliveries = self._counter("deliveries", text, "kind", "outcome")
        text = "Notifications of the provider's change feed, by result."
        self._notifications = self._counter("provider_notifications", text, "result")
        self._in_flight = self._gauge("requests_in_flight", "Requests being handled.")
        self._pool = (
            self._gauge("database_pool_size", "Maximum number of connections in a pool.", "pool"),
            self._gauge("database_pool_in_use", "Connections of a pool in use.", "pool"),
            self._gauge("database_pool_waiting", "Requests that wait for a connection of a pool.", "pool"),
        )
        text = "How often a call waited or was refused because of the provider's quota."
        self._quota = self._counter("provider_quota_events", text, "api", "event")
        self._count_jobs()
        text = "The running version. The value is always 1."
        build_info = self._gauge("build_info", text, "version", "python", mode="livemax")
        build_info.labels(__version__, platform.python_version()).set(1)

    def _count_jobs(self) -> None:
        text = "Runs of periodic work, by job and outcome (`skipped`: another process was doing it)."
        self._job_runs = self._counter("job_runs", text, "job", "outcome")
        self._job_seconds = self._histogram("job_seconds", "Duration of runs.", "job", buckets=_JOB_BUCKETS)
        text = "Time of the last run that succeeded, or of the start, in seconds since the epoch."
        self._job_success = self._gauge("job_last_success_seconds", text, "job", mode="liveall")
        text = "Seconds between the runs of a job, and where it runs."
        self._job_interval = self._gauge("job_interval_seconds", text, "job", "where", mode="livemax")

    def _histogram(self, name: str, text: str, *labels: str, buckets: Sequence[float] = _BUCKETS) -> Histogram:
        return Histogram(f"profilesvc_{name}", text, labels, buckets=buckets, registry=self._registry)

    def _counter(self, name: str, text: str, *labels: str) -> Counter:
        return Counter(f"profilesvc_{name}", text, labels, registry=self._registry)

    def _gauge(self, name: str, text: str, *labels: str, mode: _Mode = "livesum") -> Gauge:
        return Gauge(f"profilesvc_{name}", text, labels, registry=self._registry, multiprocess_mode=mode)

    def request(self, method: str, route: str, status: int, outcome: str, seconds: float) -> None:
        labels = (method, route, str(status), outcome)
        series = self._series.get(labels)
        if series is None:  # the library's own lookup acquires a lock and converts all labels to strings again
            series = self._series[labels] = self._requests.labels(*labels)
        series.observe(seconds)
        self._events += route != PATH

    def provider_request(self, api: str, operation: str, outcome: str, seconds: float) -> None:
        """Count a request to the provider. A retried operation has several requests."""
        self._provider.labels(api, operation, outcome).observe(seconds)
        self._events += 1

    def quota_event(self, api: str, event: str) -> None:
        """Count what the provider's quota caused: `waited` or `refused`."""
        self._quota.labels(api, event).inc()
        self._events += 1

    def limit_reached(self, limit: str) -> None:
        """Count a request that was rejected because of a limit."""
        self._rejected.labels(limit).inc()
        self._events += 1

    def post_created(self) -> None:
        """Count a post that was created through the service."""
        self._posts.inc()
        self._events += 1

    def delivery(self, kind: str, outcome: str) -> None:
        """Count an attempt to deliver an event."""
        self._deliveries.labels(kind, outcome).inc()
        self._events += 1

    def notification(self, result: str) -> None:
        """Count a notification of the provider's change feed."""
        self._notifications.labels(result).inc()
        self._events += 1

    def job_started(self, job: str, where: str, every: float, now: int) -> None:
        """Note the interval of a job in seconds; a job that has not run yet is as old as its process."""
        self._job_interval.labels(job, where).set(every)
        self._job_success.labels(job).set(now / 1000)

    def job_ended(self, job: str, outcome: str, seconds: float, now: int) -> None:
        """Count a run of a job: `ok`, `failed`, or `skipped` because another process was at it."""
        self._job_runs.labels(job, outcome).inc()
        if outcome != "skipped":
            self._job_seconds.labels(job).observe(seconds)
        if outcome == "ok":
            self._job_success.labels(job).set(now / 1000)
        self._events += 1

    def look_at(self, look: Callable[[], Load]) -> None:
        """Read the gauges from `look` when this process is scraped."""
        self._look = look

    async def share(self) -> None:
        """Write the gauges to the shared directory: of several processes only one is scraped."""
        if os.environ.get(SHARED_FOLDER):
            self._sample()

    def _sample(self) -> None:
        load = self._look()
        self._in_flight.set(load.in_flight)
        for pool, figures in load.pools.items():
            for gauge, figure in zip(self._pool, figures, strict=True):
                gauge.labels(pool).set(figure)

    def stamp(self) -> object | None:
        """Return an object that is equal while `exposition` returns the same, or None with several processes."""
        return None if os.environ.get(SHARED_FOLDER) else (self._events, self._look())

    def exposition(self) -> bytes:
        """Return the metrics of the processes in the text format."""
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
            "profilesvc_counted_at_seconds", "Time of the count, in seconds since the epoch.", self._counted_at
        )


def forget(pid: int | None) -> None:
    """Remove the gauges of an ended process. Its counters stay."""
    mark_process_dead(pid)  # type: ignore[no-untyped-call]


def exposition_of(states: dict[str, dict[str, int]], counted_at: float) -> bytes:
    """Return gauges that were counted in the database, {name: {label value: count}}, in the text format."""
    registry = CollectorRegistry()
    registry.register(_States(states, counted_at))
    return generate_latest(registry)
