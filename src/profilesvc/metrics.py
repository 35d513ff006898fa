"""What operators watch, in Prometheus' words: requests, calls to the provider, keys and their sites.

With several workers each process counts into files of a folder that they share (PROMETHEUS_MULTIPROC_DIR, set by the
supervisor before they start), and whichever worker is asked adds them up.
"""

import os
from collections.abc import Iterable

from prometheus_client import CollectorRegistry, Histogram, generate_latest
from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.multiprocess import MultiProcessCollector
from prometheus_client.registry import Collector

SHARED_FOLDER = "PROMETHEUS_MULTIPROC_DIR"
_BUCKETS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10)


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
            ["api", "method", "outcome"],
            buckets=_BUCKETS,
            registry=self._registry,
        )

    def request(self, method: str, route: str, status: int, outcome: str, seconds: float) -> None:
        """Count an answer."""
        labels = (method, route, str(status), outcome)
        known = self._known.get(labels)
        if known is None:  # the library's own look-up takes a lock and makes texts of everything again
            known = self._known[labels] = self._requests.labels(*labels)
        known.observe(seconds)

    def provider_request(self, api: str, method: str, outcome: str, seconds: float) -> None:
        """Count one request to the provider; a retried operation has several."""
        self._provider.labels(api, method, outcome).observe(seconds)

    def exposition(self, states: dict[str, dict[str, int]]) -> bytes:
        """The text format. `states`: gauges that only the database knows, {name: {label value: count}}."""
        if os.environ.get(SHARED_FOLDER):
            registry = CollectorRegistry()
            MultiProcessCollector(registry)  # type: ignore[no-untyped-call]
        else:
            registry = self._registry
        return generate_latest(registry) + generate_latest(_known(states))


class _States(Collector):
    def __init__(self, states: dict[str, dict[str, int]]) -> None:
        self._states = states

    def collect(self) -> Iterable[Metric]:
        for name, counts in self._states.items():
            family = GaugeMetricFamily(
                f"profilesvc_{name}", f"{name.replace('_', ' ').capitalize()}.", labels=["state"]
            )
            for state, count in counts.items():
                family.add_metric([state], count)
            yield family


def _known(states: dict[str, dict[str, int]]) -> CollectorRegistry:
    registry = CollectorRegistry()
    registry.register(_States(states))
    return registry
