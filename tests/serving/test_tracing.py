"""Traces: what a collector receives of a running service, what it never receives, and what happens without one."""

import asyncio
import subprocess
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import httpx
import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from support.api import assert_ok
from support.program import COMMAND, Server, caller, command, data, environment, serving
from support.provider.consent import CONNECTIONS, connect_by_token
from support.waiting import patience
from support.wire import KEYS, REFRESH

pytestmark = pytest.mark.thorough

TRACE, SPAN = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"
WORDS = ("serve", "--demo", "--port", "0")


class Collector:
    """Takes spans by OTLP over HTTP and keeps the bytes."""

    def __init__(self) -> None:
        received = self.received = list[bytes]()

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                received.append(self.rfile.read(int(self.headers["Content-Length"])))
                self.send_response(200 if self.path == "/v1/traces" else 404)
                self.end_headers()

            def log_message(self, *_: Any) -> None:
                """Not into the tests' output."""

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}"

    def spans(self) -> list[Any]:
        requests = [ExportTraceServiceRequest.FromString(body) for body in self.received]
        scopes = [scope for request in requests for one in request.resource_spans for scope in one.scope_spans]
        return [span for scope in scopes for span in scope.spans]


@pytest.fixture
def collector() -> Iterator[Collector]:
    made = Collector()
    thread = threading.Thread(target=made.server.serve_forever)
    thread.start()
    yield made
    made.server.shutdown()
    thread.join()
    made.server.server_close()


def attributes(span: Any) -> dict[str, Any]:
    return {one.key: getattr(one.value, one.value.WhichOneof("value")) for one in span.attributes}


def drive(server: Server, folder: Path) -> list[str]:
    """Some requests; the secrets and ids that were in them."""
    user = command(folder, "users", "token", "alice@example.com").stdout.strip()
    with caller(server, user) as alice:
        body = {"name": "Site", "business_id": 10, "assigned_location_id": "locations/111"}
        key = data(alice.post(KEYS, json=body))
        named = {"X-Request-Id": "from-the-proxy-1", "traceparent": f"00-{TRACE}-{SPAN}-00", "tracestate": "t=hunter2"}
        data(alice.get("/api/v1/posts", params={"locationId": "111", "pageToken": ""}, headers=named))
        data(alice.post(REFRESH))
        assert alice.get("/api/v1/hunter2").status_code == 404
        grant = {"grant_type": "client_credentials", "client_id": key["client_id"], "client_secret": "hunter2"}
        assert alice.post("/api/v1/auth/token", json=grant).status_code == 401
        grant["client_secret"] = key["client_secret"]
        tokens = data(alice.post("/api/v1/auth/token", json=grant))
        data(alice.get(f"/api/v1/api-keys/{key['client_id']}/status"))
    secrets = [key["client_secret"], tokens["access_token"], tokens["refresh_token"], user]
    return [*secrets, key["client_id"], "hunter2", "locations/111", "alice", "pageToken", "Bearer"]


def test_a_collector_gets_spans_of_requests_and_of_their_waits(tmp_path: Path, collector: Collector) -> None:
    with serving(tmp_path, *WORDS, TRACING__ENDPOINT=collector.url) as server:
        drive(server, tmp_path)
        assert server.stop() == 0
    spans = collector.spans()
    requests = {span.name: span for span in spans if span.kind == span.SPAN_KIND_SERVER}
    assert {"GET /api/v1/posts", "POST /api/v1/auth/token", "GET unknown"} <= set(requests)
    listing = requests["GET /api/v1/posts"]
    assert attributes(listing) == {
        "http.request.method": "GET",
        "http.route": "/api/v1/posts",
        "http.response.status_code": 200,
        "profilesvc.request_id": "from-the-proxy-1",
    }
    assert (listing.trace_id.hex(), listing.parent_span_id.hex()) == (TRACE, SPAN)
    within = [span for span in spans if span.trace_id == listing.trace_id and span is not listing]
    assert {span.name for span in within} == {"database read", "database write", "provider posts"}
    assert {span.parent_span_id for span in within} == {listing.span_id}
    (asked,) = [span for span in within if span.name == "provider posts"]
    assert attributes(asked) == {"profilesvc.provider.api": "posts", "profilesvc.provider.outcome": "200"}
    assert listing.start_time_unix_nano <= asked.start_time_unix_nano < asked.end_time_unix_nano
    assert {span.trace_id for span in spans} == {
        span.trace_id for span in spans if span.kind == span.SPAN_KIND_SERVER
    }, "a span outside of a request"


def test_no_secret_no_id_and_no_query_reaches_the_collector(tmp_path: Path, collector: Collector) -> None:
    with serving(tmp_path, *WORDS, TRACING__ENDPOINT=collector.url) as server:
        secrets = drive(server, tmp_path)
        assert server.stop() == 0
    received = b"".join(collector.received)
    assert len(collector.spans()) > 10
    assert [secret for secret in secrets if secret.encode() in received] == []


async def read_a_connection(server: Server, user: str) -> None:
    """Connect Alice's login at the provider, and read what it sees there."""
    async with httpx.AsyncClient(base_url=server.url, timeout=30, trust_env=False) as http:
        number = await connect_by_token(http, user, "100001")
        assert_ok(await http.get(f"{CONNECTIONS}/{number}", headers={"Authorization": f"Bearer {user}"}))


def test_no_token_of_a_login_at_the_provider_reaches_the_collector(tmp_path: Path, collector: Collector) -> None:
    with serving(tmp_path, *WORDS, TRACING__ENDPOINT=collector.url) as server:
        user = command(tmp_path, "users", "token", "alice@example.com").stdout.strip()
        asyncio.run(read_a_connection(server, user))
        assert server.stop() == 0
    spans = collector.spans()
    assert "provider accounts" in {span.name for span in spans}
    assert {name for span in spans for name in attributes(span)} == {
        *("http.request.method", "http.route", "http.response.status_code", "profilesvc.request_id"),
        *("profilesvc.provider.api", "profilesvc.provider.outcome"),
    }
    said = "\n".join(f"{span.name} {attributes(span)} {span.status.message} {span.events}" for span in spans)
    assert [secret for secret in ("1//", "ya29.", "4/", "code=", "state=", user) if secret in said] == []


def test_a_sample_ratio_of_zero_sends_nothing(tmp_path: Path, collector: Collector) -> None:
    """Also for who asks for it: the caller's flag does not decide."""
    settings = {"TRACING__ENDPOINT": collector.url, "TRACING__SAMPLE_RATIO": "0"}
    with serving(tmp_path, *WORDS, **settings) as server:
        with caller(server, "none") as http:
            http.get("/api/v1/posts", headers={"traceparent": f"00-{TRACE}-{SPAN}-01"})
        assert server.stop() == 0
    assert collector.received == []


def test_an_unreachable_collector_delays_no_request(tmp_path: Path) -> None:
    with serving(tmp_path, *WORDS, TRACING__ENDPOINT="http://127.0.0.1:9") as server:
        user = command(tmp_path, "users", "token", "alice@example.com").stdout.strip()
        with caller(server, user) as alice:
            data(alice.get("/api/v1/posts", params={"locationId": "111"}))
        server.process.terminate()
        _, errors = server.process.communicate(timeout=patience(15))
        assert server.process.returncode == 0
    assert user not in errors


def test_without_the_packages_the_start_is_rejected_with_the_name_of_the_extra(tmp_path: Path) -> None:
    hidden = tmp_path / "hidden"
    hidden.mkdir()
    (hidden / "opentelemetry.py").write_text("raise ImportError('not installed')")
    settings = environment(TRACING__ENDPOINT="http://127.0.0.1:9")
    settings["PYTHONPATH"] = f"{hidden}:{settings.get('PYTHONPATH', '')}"
    refused = subprocess.run(
        [*COMMAND, "serve", "--port", "0"], cwd=tmp_path, env=settings, capture_output=True, text=True, timeout=60
    )
    assert refused.returncode == 1
    assert (
        "PROFILESVC_TRACING__ENDPOINT requires the extra `otel`: pip install '.[otel]' in the checkout"
        in refused.stderr
    )
    assert refused.stderr.count("\n") == 1
