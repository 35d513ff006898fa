"""deploy/nginx.conf in nginx itself: only ports, certificates and names are put in."""

import datetime
import http.client
import json
import re
import shutil
import socket
import ssl
import subprocess
import threading
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from profilesvc.bootstrap import create_app
from profilesvc.contract.errors import CATALOGUE
from profilesvc.domain.request import client_address
from profilesvc.server.serving import EmbeddedServer
from support.api import assert_error
from support.network.nginx import NGINX, main_file, site_file
from support.network.ports import free_ports, listens
from support.waiting import until

DEPLOY = Path(__file__).parents[2] / "deploy"
NAME = "profiles.test"
pytestmark = pytest.mark.skipif(NGINX is None, reason="nginx is not installed: `make nginx` installs it by apt")


class Upstream:
    """A stand-in for `serve`: its path selects the response, and it records the requests."""

    def __init__(self, port: int = 0) -> None:
        self.seen: list[tuple[str, str, dict[str, str], bytes]] = []
        self.connections: list[socket.socket] = []
        outer = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def setup(self) -> None:
                super().setup()
                outer.connections.append(self.connection)

            def answer(self) -> None:
                body = self._body()
                outer.seen.append((self.command, self.path, {k.lower(): v for k, v in self.headers.items()}, body))
                if self.path == "/streamed":
                    self._stream()
                    return
                status = int(found[1]) if (found := re.fullmatch(r"/status/(\d+)", self.path)) else 200
                content = json.dumps({"from": "the app", "size": len(body)}).encode()
                self.send_response(status)
                self.send_header("Content-Type", "text/html" if self.path == "/page" else "application/json")
                self.send_header("Retry-After", "77")
                self.send_header("Content-Length", str(len(content)))
                self.end_headers()
                self.wfile.write(content)

            def _body(self) -> bytes:
                if self.headers.get("Transfer-Encoding") != "chunked":
                    return self.rfile.read(int(self.headers.get("Content-Length", 0)))
                body = b""
                while size := int(self.rfile.readline(), 16):
                    body += self.rfile.read(size)
                    self.rfile.readline()
                self.rfile.readline()
                return body

            def _stream(self) -> None:
                self.send_response(200)
                self.send_header("Transfer-Encoding", "chunked")
                self.end_headers()
                for index in range(100):
                    self.wfile.write(b"2800\r\n" + bytes([index]) * 0x2800 + b"\r\n")
                self.wfile.write(b"0\r\n\r\n")

            do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = do_OPTIONS = answer

            def log_message(self, *_: Any) -> None:
                """Nothing is written."""

        self._server = ThreadingHTTPServer(("127.0.0.1", port), Handler)
        self.port = self._server.server_port
        threading.Thread(target=self._server.serve_forever, args=(0.01,), daemon=True).start()

    def stop(self) -> None:
        self._server.shutdown()
        self._server.server_close()
        for each in self.connections:
            with suppress(OSError):  # nginx was first
                each.shutdown(socket.SHUT_RDWR)


def certificate(folder: Path) -> None:
    key, name = ec.generate_private_key(ec.SECP256R1()), x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, NAME)])
    now = datetime.datetime.now(datetime.UTC)
    made = x509.CertificateBuilder().subject_name(name).issuer_name(name).public_key(key.public_key())
    made = made.serial_number(1).not_valid_before(now).not_valid_after(now + datetime.timedelta(days=1))
    pem = serialization.Encoding.PEM
    (folder / "fullchain.pem").write_bytes(made.sign(key, hashes.SHA256()).public_bytes(pem))
    private = key.private_bytes(pem, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    (folder / "privkey.pem").write_bytes(private)


class Proxy:
    """nginx with our file."""

    def __init__(self, folder: Path, upstreams: list[int], further: str = "") -> None:
        self.http, self.https = free_ports(2)
        certificate(folder)
        (folder / "site.conf").write_text(further + site_file(upstreams, self.http, self.https, folder, NAME))
        (folder / "nginx.conf").write_text(main_file(folder, f"{folder}/site.conf"))
        self._words = [str(NGINX), "-p", str(folder), "-e", f"{folder}/error.log", "-c", f"{folder}/nginx.conf"]
        self._folder = folder
        self._process: subprocess.Popen[bytes] | None = None

    def check(self) -> str:
        done = subprocess.run([*self._words, "-t"], capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        return done.stderr

    def __enter__(self) -> "Proxy":
        self._process = subprocess.Popen([*self._words, "-g", "daemon off;"])
        until(lambda: listens(self.https), lambda: "nginx: " + (self._folder / "error.log").read_text())
        return self

    def __exit__(self, *_: object) -> None:
        assert self._process is not None
        self._process.terminate()
        self._process.wait(20)

    def logged(self) -> list[str]:
        return (self._folder / "access.log").read_text().splitlines()

    def socket(self) -> ssl.SSLSocket:
        context = ssl.create_default_context(cafile=str(self._folder / "fullchain.pem"))
        raw = socket.create_connection(("127.0.0.1", self.https), timeout=30)
        raw.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return context.wrap_socket(raw, server_hostname=NAME)

    def client(self) -> http.client.HTTPConnection:
        made = http.client.HTTPConnection(NAME)
        made.sock = self.socket()
        return made

    def ask(self, method: str, path: str, body: Any = None, headers: dict[str, str] | None = None) -> "Answer":
        client = self.client()
        client.request(method, path, body, headers or {})
        answer = Answer(client.getresponse())
        client.close()
        return answer

    def raw(self, request: bytes) -> "Answer":
        with self.socket() as there:
            there.sendall(request)
            response = http.client.HTTPResponse(there, method="GET")
            response.begin()
            return Answer(response)


class Answer:
    """A response that was read."""

    def __init__(self, response: http.client.HTTPResponse) -> None:
        self.status_code, self.headers, self.content = response.status, response.headers, response.read()
        self.headers_list = [(name.lower(), value) for name, value in response.getheaders()]
        self.text = self.content.decode("latin1")

    def json(self) -> Any:
        return json.loads(self.content)


@pytest.fixture(scope="module")
def upstreams() -> Iterator[list[Upstream]]:
    found = [Upstream(), Upstream()]
    yield found
    for each in found:
        each.stop()


@pytest.fixture(scope="module")
def proxy(upstreams: list[Upstream], tmp_path_factory: pytest.TempPathFactory) -> Iterator[Proxy]:
    with Proxy(tmp_path_factory.mktemp("nginx"), [each.port for each in upstreams]) as running:
        yield running


def assert_refused(answer: Answer, code: str) -> None:
    """nginx's own refusal in the form of the API, with the headers that every response of the API has."""
    assert_error(answer, CATALOGUE[code].status, code)
    names = [name for name, _ in answer.headers_list]
    assert len(set(names)) == len(names)
    assert answer.headers["X-Content-Type-Options"] == "nosniff"
    assert answer.headers["Strict-Transport-Security"] == "max-age=31536000"
    assert answer.headers["Vary"] == "Origin"
    assert re.fullmatch("[0-9a-f]{32}", answer.headers["X-Request-Id"])
    assert ("retry-after" in names) is (CATALOGUE[code].status in (429, 503))
    assert "nginx/" not in answer.headers["Server"]


GET = b"GET /api/v1/posts HTTP/1.1\r\nHost: profiles.test\r\n"


@pytest.mark.parametrize(
    ("request_bytes", "code"),
    [
        (b"GET / HTTP/1.1\r\n\r\n", "VALIDATION_ERROR"),
        (b"GET / HTTP/1.1\r\nHost: a b\r\n\r\n", "VALIDATION_ERROR"),
        (b"GET /\x01 HTTP/1.1\r\nHost: a\r\n\r\n", "VALIDATION_ERROR"),
        (b"nonsense\r\n\r\n", "VALIDATION_ERROR"),
        (GET + b"Content-Length: x\r\n\r\n", "VALIDATION_ERROR"),
        (GET + b"Transfer-Encoding: gzip\r\n\r\n", "VALIDATION_ERROR"),
        (b"GET / HTTP/7.0\r\nHost: a\r\n\r\n", "VALIDATION_ERROR"),
        (b"GET /" + b"x" * 20_000 + b" HTTP/1.1\r\nHost: a\r\n\r\n", "HEADERS_TOO_LARGE"),
        (GET + b"X-Long: " + b"x" * 20_000 + b"\r\n\r\n", "HEADERS_TOO_LARGE"),
        (b"TRACE / HTTP/1.1\r\nHost: a\r\n\r\n", "METHOD_NOT_ALLOWED"),
        (GET.replace(b"/api/v1/posts", b"/metrics") + b"\r\n", "NOT_FOUND"),
        (GET.replace(b"/api/v1/posts", b"/.profilesvc/NOT_FOUND") + b"\r\n", "NOT_FOUND"),
        (b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 2000000\r\n\r\n", "PAYLOAD_TOO_LARGE"),
    ],
)
def test_errors_of_nginx_have_the_envelope(proxy: Proxy, request_bytes: bytes, code: str) -> None:
    assert_refused(proxy.raw(request_bytes), code)


def test_nginx_offers_http_2(proxy: Proxy) -> None:
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    context.set_alpn_protocols(["h2"])
    with socket.create_connection(("127.0.0.1", proxy.https), timeout=30) as raw, context.wrap_socket(raw) as there:
        assert there.selected_alpn_protocol() == "h2"


def test_http_on_the_port_for_https(proxy: Proxy) -> None:
    client = http.client.HTTPConnection("127.0.0.1", proxy.https, timeout=30)
    client.request("GET", "/")
    assert_error(Answer(client.getresponse()), 400, "VALIDATION_ERROR")
    client.close()


def test_http_leads_to_https(proxy: Proxy) -> None:
    client = http.client.HTTPConnection("127.0.0.1", proxy.http, timeout=30)
    client.request("POST", "/api/v1/auth/token?a=1", "{}", {"Host": NAME})
    answer = Answer(client.getresponse())
    client.close()
    assert (answer.status_code, answer.headers["Location"]) == (308, f"https://{NAME}/api/v1/auth/token?a=1")


def test_the_paths_of_oauth_have_their_own_form(proxy: Proxy) -> None:
    for path in ("/oauth2/token", "/.well-known/jwks.json"):
        answer = proxy.raw(f"POST {path} HTTP/1.1\r\nHost: a\r\nContent-Length: 2000000\r\n\r\n".encode())
        assert (answer.status_code, answer.headers["Content-Type"]) == (413, "application/json")
        assert set(answer.json()) == {"error", "error_description"}
        assert answer.json()["error"] == "invalid_request"


@pytest.mark.parametrize("status", [200, 400, 401, 403, 404, 405, 408, 413, 429, 431, 500, 501, 502, 503, 504])
def test_responses_of_the_app_pass_unchanged(proxy: Proxy, status: int) -> None:
    answer = proxy.ask("POST", f"/status/{status}", b"12345")
    assert (answer.status_code, answer.json()) == (status, {"from": "the app", "size": 5})
    assert answer.headers["Retry-After"] == "77"


def test_streams_in_both_directions(proxy: Proxy, upstreams: list[Upstream]) -> None:
    assert proxy.ask("GET", "/streamed").content == b"".join(bytes([index]) * 0x2800 for index in range(100))
    pieces = [b"x" * 10_000 for _ in range(50)]
    answer = proxy.ask("POST", "/status/200", iter(pieces))  # chunked
    assert answer.json()["size"] == 500_000


def test_does_not_compress_pages_with_tokens(proxy: Proxy) -> None:
    answer = proxy.ask("GET", "/page", headers={"Accept-Encoding": "gzip"})
    assert (answer.headers["Content-Type"], answer.headers["Content-Encoding"]) == ("text/html", None)


def test_keeps_connections_on_both_sides(proxy: Proxy, upstreams: list[Upstream]) -> None:
    client = proxy.client()
    for _ in range(4):
        client.request("GET", "/status/200")
        client.getresponse().read()
    before = sum(len(each.connections) for each in upstreams)
    for _ in range(20):
        client.request("GET", "/status/200")
        assert client.getresponse().read()
    client.close()
    assert sum(len(each.connections) for each in upstreams) == before


def test_names_the_clients_address_behind_whatever_it_claims(proxy: Proxy, upstreams: list[Upstream]) -> None:
    for claimed in ({}, {"X-Forwarded-For": "203.0.113.7"}, {"X-Forwarded-For": "1.1.1.1, 2.2.2.2"}):
        for each in upstreams:
            each.seen.clear()
        proxy.ask("GET", "/status/200", headers={**claimed, "X-Request-Id": "from-the-client"})
        (_, _, headers, _) = next(found for each in upstreams for found in each.seen)
        assert client_address("127.0.0.1", [headers["x-forwarded-for"]], 1) == "127.0.0.1"
        assert headers["x-forwarded-for"] == ", ".join([*claimed.values(), "127.0.0.1"])
        assert headers["host"] == NAME
        assert re.fullmatch("[0-9a-f]{32}", headers["x-request-id"])


def test_behind_a_front_its_callers_address_is_the_one_that_counts(upstreams: list[Upstream], tmp_path: Path) -> None:
    """The limit of connections is per `$remote_addr`, which is also the last address of X-Forwarded-For."""
    front = (DEPLOY / "cluster" / "nginx-front.conf").read_text("utf-8").replace("10.0.0.31", "127.0.0.1")
    for each in upstreams:
        each.seen.clear()
    with Proxy(tmp_path, [each.port for each in upstreams], front) as proxy:
        client = proxy.client()
        client.putrequest("GET", "/status/200")
        for address in ("198.51.100.1", "203.0.113.7"):  # HAProxy adds a line to what the caller claims
            client.putheader("X-Forwarded-For", address)
        client.endheaders()
        client.getresponse().read()
        client.close()
    (_, _, headers, _) = next(found for each in upstreams for found in each.seen)
    assert headers["x-forwarded-for"] == "198.51.100.1, 203.0.113.7, 203.0.113.7"
    assert client_address("127.0.0.1", [headers["x-forwarded-for"]], 2) == "203.0.113.7"


@pytest.mark.parametrize(("path", "status"), [("sites/111/posts", 200), ("posts/new", 200), ("keys", 413)])
def test_only_forms_with_a_photo_are_large(proxy: Proxy, path: str, status: int) -> None:
    assert proxy.ask("POST", f"/dashboard/{path}", bytes(6 * 1024 * 1024)).status_code == status


def test_nginx_accepts_the_file(proxy: Proxy) -> None:
    assert "test is successful" in proxy.check()
    text = (DEPLOY / "nginx.conf").read_text("utf-8")
    for name in ("client_header_timeout", "client_body_timeout", "send_timeout", "limit_conn"):
        assert re.search(rf"^ +{name} .+;", text, re.MULTILINE), name
    assert "proxy_intercept_errors" not in text


def test_one_upstream_is_restarted_and_no_request_fails(tmp_path: Path) -> None:
    serving = [Upstream(), Upstream()]
    with Proxy(tmp_path, [each.port for each in serving]) as proxy:
        for index, each in enumerate(serving):
            assert proxy.ask("GET", "/status/200").status_code == 200
            each.stop()
            assert [proxy.ask(method, "/status/200", b"x").status_code for method in ("GET", "POST") * 5] == [200] * 10
            serving[index] = Upstream(each.port)
            assert [proxy.ask(method, "/status/200", b"x").status_code for method in ("GET", "POST") * 5] == [200] * 10
            assert serving[index].seen
    for each in serving:
        each.stop()


def test_without_a_responding_upstream(tmp_path: Path) -> None:
    with ExitStack() as stack:
        full = [stack.enter_context(socket.socket()) for _ in range(2)]
        for each in full:  # nothing is accepted, and the backlog is full: a connection is never made
            each.bind(("127.0.0.1", 0))
            each.listen(0)
            for _ in range(8):
                waiting = stack.enter_context(socket.socket())
                waiting.setblocking(False)
                waiting.connect_ex(each.getsockname())
        with Proxy(tmp_path, [each.getsockname()[1] for each in full]) as proxy:
            assert_refused(proxy.ask("GET", "/api/v1/posts"), "SERVICE_UNAVAILABLE")  # nginx calls it 504
            for each in full:
                each.close()
            assert_refused(proxy.ask("POST", "/api/v1/posts", b"{}"), "SERVICE_UNAVAILABLE")  # and this 502
            answer = proxy.ask("POST", "/oauth2/token", b"")
            assert (answer.status_code, answer.headers["Retry-After"]) == (503, "1")
            assert answer.json()["error"] == "temporarily_unavailable"


def test_in_front_of_the_service(sqlite_template: Path, tmp_path: Path) -> None:
    from conftest import make_settings

    data = tmp_path / "data"
    shutil.copytree(sqlite_template, data)
    folder = tmp_path / "nginx"
    folder.mkdir()
    app = create_app(make_settings(data, base_url=f"https://{NAME}", trusted_hops=1))
    with EmbeddedServer(app) as server, Proxy(folder, [server.port, server.port]) as proxy:
        assert proxy.ask("GET", "/healthz").status_code == 200
        unknown = proxy.ask("GET", "/api/v1/nothing")
        assert_error(unknown, 404, "NOT_FOUND")
        big = proxy.ask("POST", "/api/v1/auth/token", b" " * 900_000, {"Content-Type": "application/json"})
        assert_error(big, 413, "PAYLOAD_TOO_LARGE")
        for answer in (unknown, big):
            for name in ("strict-transport-security", "x-content-type-options", "x-request-id", "vary"):
                assert len([value for found, value in answer.headers_list if found == name]) == 1, name
        wrong = proxy.ask("POST", "/oauth2/token", b"grant_type=x", {"Content-Type": "text/plain"})
        assert "error_description" in wrong.json()


@pytest.mark.parametrize(
    ("target", "logged"),
    [
        ("/dashboard/sign-in/callback?code=s3cret&state=s3cret", "/dashboard/sign-in/callback"),
        ("/oauth2/authorize?client_id=x&code=s3cret", "/oauth2/authorize"),
        ("/dashboard/connections/link/s3cret", "/dashboard/connections/link/..."),
        ("/dashboard/connections/link/s3cret/start", "/dashboard/connections/link/..."),
        ("//dashboard/connections/link/s3cret", "//dashboard/connections/link/..."),
        ("/dashboard/%63onnections/link/s3cret", "/dashboard/"),
        ("/dashboard/connections%2Flink/s3cret", "/dashboard/connections"),
        ("/dashboard/alerts/confirm/1-2-s3cret", "/dashboard/alerts/confirm/..."),
        ("/dashboard/alerts/unsubscribe/1-2-s3cret", "/dashboard/alerts/unsubscribe/..."),
        ("/dashboard/badge/s3cret.svg", "/dashboard/badge/..."),
        ("/metrics?s3cret", "/metrics"),
        ("/api/v1/posts?locationId=s3cret", "/api/v1/posts"),
    ],
)
def test_the_log_has_no_secret_of_a_request(proxy: Proxy, target: str, logged: str) -> None:
    before = len(proxy.logged())
    proxy.ask("GET", target)
    lines = until(lambda: proxy.logged()[before:], "a line of the log")  # nginx writes it after the response
    assert f'"GET {logged}"' in lines[-1]
    assert not [line for line in lines if "s3cret" in line]


def test_all_samples_of_nginx_write_the_log_without_secrets() -> None:
    """The file of one machine is also that of the app hosts of a cluster; no other one has a server."""
    servers = [path for path in DEPLOY.rglob("*.conf") if "server {" in path.read_text("utf-8")]
    assert [path.name for path in servers] == ["nginx.conf"]
    assert "access_log /var/log/nginx/access.log profilesvc;" in servers[0].read_text("utf-8")
