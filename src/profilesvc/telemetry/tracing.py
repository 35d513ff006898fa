"""OpenTelemetry traces: a span for each request and for its database transactions and provider calls.

The ready-made instrumentations are not used, because they record paths, queries, addresses and statements, which
identify tenants. They also miss statements that run directly on the database driver.
"""

import asyncio
import contextlib
import math
import threading
import time
from collections.abc import AsyncIterator, Iterator

from opentelemetry import trace
from opentelemetry.context import Context
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from opentelemetry.sdk.trace.sampling import ParentBased, TraceIdRatioBased
from opentelemetry.trace import Span, SpanKind, StatusCode
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator
from sqlalchemy.ext.asyncio import AsyncSession

from profilesvc import __version__
from profilesvc.database.engine import Read, Storage
from profilesvc.database.replica import Replica
from profilesvc.database.statements import FastReader
from profilesvc.database.writers import Executions
from profilesvc.domain.request import current_request
from profilesvc.server.scope import App, Message, Receive, Scope, Send
from profilesvc.settings import TracingSettings
from profilesvc.telemetry.observer import Observer

_SEND_SECONDS, _END_SECONDS = 3.0, 5.0
_METHODS = frozenset({"GET", "HEAD", "OPTIONS", "POST", "PUT", "PATCH", "DELETE"})


class Tracing(Observer):
    """A observer that sends spans to a collector."""

    def __init__(self, settings: TracingSettings) -> None:
        self._settings = settings
        self._tracer: trace.Tracer = trace.NoOpTracer()

    @contextlib.asynccontextmanager
    async def opened(self) -> AsyncIterator[None]:
        """Trace while the block runs, then send the remaining spans for at most five seconds.

        The SDK reads OTEL_EXPORTER_OTLP_HEADERS, OTEL_RESOURCE_ATTRIBUTES and OTEL_BSP_* from the environment.
        """
        # The caller's sampling decision is ignored, because a caller could have all its requests traced.
        ratio = TraceIdRatioBased(self._settings.sample_ratio)
        provider = TracerProvider(
            sampler=ParentBased(ratio, remote_parent_sampled=ratio, remote_parent_not_sampled=ratio),
            resource=Resource.create({"service.name": "profilesvc", "service.version": __version__}),
            shutdown_on_exit=False,
        )
        exporter = OTLPSpanExporter(f"{self._settings.endpoint}/v1/traces", timeout=_SEND_SECONDS)
        provider.add_span_processor(BatchSpanProcessor(exporter))
        self._tracer = provider.get_tracer("profilesvc", __version__)
        try:
            yield
        finally:
            # In a daemon thread, so that an unreachable collector does not delay the end of the process.
            shutdown = threading.Thread(target=provider.shutdown, daemon=True)
            shutdown.start()
            await asyncio.to_thread(shutdown.join, _END_SECONDS)

    def around(self, app: App) -> App:
        """Wrap an app so that each request has a span with method, route, status and request id."""

        async def traced(scope: Scope, receive: Receive, send: Send) -> None:
            if scope["type"] != "http":
                await app(scope, receive, send)
                return
            parent = _parent(scope["headers"])
            with self._tracer.start_as_current_span("request", parent, SpanKind.SERVER, record_exception=False) as span:

                async def traced_send(message: Message) -> None:
                    if message["type"] == "http.response.start":
                        _describe(span, scope, message["status"])
                    await send(message)

                await app(scope, receive, traced_send)

        return traced

    def storage(self, url: str, pool_size: int, replica_url: str = "") -> Storage:
        """Open a storage with a span for each transaction, including the time it waits."""
        return _TracedStorage(url, pool_size, replica_url, self)

    def provider_request(self, api: str, operation: str, outcome: str, seconds: float) -> None:
        """Record a span of a request that has just ended."""
        if _is_traced():
            now = time.time_ns()
            span = self._tracer.start_span(
                f"provider {operation}", kind=SpanKind.CLIENT, start_time=now - int(seconds * 1e9)
            )
            span.set_attributes({"profilesvc.provider.api": api, "profilesvc.provider.outcome": outcome})
            span.end(now)

    def span(self, name: str) -> Span:
        """Start a span inside the request's span. Outside of a request, return an invalid span."""
        return self._tracer.start_span(name, kind=SpanKind.CLIENT) if _is_traced() else trace.INVALID_SPAN


class _TracedStorage(Storage):
    def __init__(self, url: str, pool_size: int, replica_url: str, tracing: Tracing) -> None:
        super().__init__(url, pool_size, replica_url)
        self._tracing = tracing

    def read(self, *, may_be_old: bool = False) -> Read:
        return _TracedRead(self, self.replica if may_be_old else None, self._tracing)

    @contextlib.asynccontextmanager
    async def write(self) -> AsyncIterator[AsyncSession]:
        with _ending(self._tracing.span("database write")):
            async with super().write() as session:
                yield session

    async def commit(self, steps: list[Executions], within: float = math.inf) -> None:
        with _ending(self._tracing.span("database write")):
            await super().commit(steps, within)


class _TracedRead(Read):
    def __init__(self, storage: Storage, replica: Replica | None, tracing: Tracing) -> None:
        super().__init__(storage, replica)
        self._tracing = tracing

    async def __aenter__(self) -> FastReader:
        self._span = self._tracing.span("database read")
        with _ending(self._span, only_failed=True):
            return await super().__aenter__()

    async def __aexit__(self, *problem: object) -> None:
        with _ending(self._span):
            await super().__aexit__(*problem)


@contextlib.contextmanager
def _ending(span: Span, only_failed: bool = False) -> Iterator[None]:
    """End a span with the block. The text of an exception is not recorded."""
    try:
        yield
    except BaseException:
        span.set_status(StatusCode.ERROR)
        span.end()
        raise
    if not only_failed:
        span.end()


def _is_traced() -> bool:
    return trace.get_current_span().is_recording()


def _parent(headers: list[tuple[bytes, bytes]]) -> Context | None:
    """Return the caller's trace to continue it. `tracestate` is ignored, because it can contain anything."""
    parents = [value.decode("latin1") for name, value in headers if name == b"traceparent"]
    return TraceContextTextMapPropagator().extract({"traceparent": parents[0]}) if len(parents) == 1 else None


def _describe(span: Span, scope: Scope, status: int) -> None:
    request, method = current_request(), scope["method"] if scope["method"] in _METHODS else "_OTHER"
    span.update_name(f"{method} {request.route}")
    span.set_attributes(
        {
            "http.request.method": method,
            "http.route": request.route,
            "http.response.status_code": status,
            "profilesvc.request_id": request.request_id or "",
        }
    )
    if status >= 500:
        span.set_status(StatusCode.ERROR)
