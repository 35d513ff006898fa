"""deploy/compose/: the form of the file, what the containers get, and the commands of docs/deploy.md."""

import contextlib
import json
import os
import shutil
import ssl
import subprocess
import sys
import threading
from collections.abc import Iterator
from http.client import HTTPSConnection
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import httpx
import pytest
import yaml
from anyio.from_thread import start_blocking_portal

from conftest import Postgres
from image.containers import Podman, missing
from profilesvc.domain.entropy import SystemEntropy
from profilesvc.domain.time import SystemClock
from profilesvc.emulator.app import create_emulator
from profilesvc.fixtures import load_world
from profilesvc.server.serving import EmbeddedServer
from profilesvc.settings import load
from support.database.redis_server import RedisServer
from support.identity.issuer import FakeIssuer
from support.network.ports import free_ports
from support.network.tls import certificate, tls_in_front
from support.pages.blocks import proven_by
from support.provider.toxic import ToxicLink
from support.repository import ROOT
from support.waiting import until

BIN = Path(sys.executable).parent
COMPOSE = ROOT / "deploy/compose"
HAPROXY = shutil.which("haproxy") or shutil.which("haproxy", path="/usr/sbin")
WRITTEN = ("identity_client_secret", "provider_client_secret", "provider_refresh_token")


def checked(*command: str | Path, cwd: Path = ROOT, **variables: str) -> str:
    environment = {**os.environ, **variables}
    done = subprocess.run(command, cwd=cwd, env=environment, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def services() -> dict[str, Any]:
    found: dict[str, Any] = yaml.safe_load((COMPOSE / "compose.yaml").read_text("utf-8"))["services"]
    return found


@pytest.fixture
def deployed(tmp_path: Path) -> Path:
    """The folder of the compose file after the steps of the page; `docker` only writes its arguments to a file."""
    shutil.copytree(ROOT / "deploy", tmp_path / "deploy")
    (tmp_path / "docker").write_text(f'#!/bin/sh\necho "$PWD $*" >>{tmp_path}/calls\n')
    (tmp_path / "docker").chmod(0o755)
    folder = tmp_path / "deploy/compose"
    prepare, start = proven_by("docs/deploy.md", "test_the_page_starts_the_containers")
    path = f"{tmp_path}:{os.environ['PATH']}"
    checked("bash", "-euc", prepare.text, cwd=tmp_path, PATH=path)
    for name in WRITTEN:
        (folder / "secrets" / name).write_text(f"{name}-6hT2kq9ZrVbW\n")
    certificate(tmp_path, 30).rename(folder / "secrets/certificate")
    settings = folder / "settings.env"
    settings.write_text(settings.read_text("utf-8").replace("change-me", "an-id"))
    checked("bash", "-euc", start.text, cwd=folder, PATH=path)
    return folder


def test_the_compose_file_has_the_form_of_the_specification() -> None:
    checked(BIN / "check-jsonschema", "--builtin-schema", "vendor.compose-spec", COMPOSE / "compose.yaml")


def test_the_page_starts_the_containers(deployed: Path) -> None:
    calls = (deployed.parents[1] / "calls").read_text().splitlines()
    assert calls == [
        f"{deployed} compose up --detach --wait",
        f"{deployed} compose exec app1 profilesvc doctor",
    ]
    assert (deployed / "secrets").stat().st_mode & 0o777 == 0o700
    assert {path.stat().st_mode & 0o444 for path in (deployed / "secrets").iterdir() if path.name != "certificate"} == {
        0o444
    }


@pytest.mark.parametrize("name", ["app1", "app2", "migrate"])
def test_the_service_accepts_the_settings_of_its_containers(
    deployed: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    service = services()[name]
    lines = (deployed / service["env_file"]).read_text("utf-8").splitlines()
    variables = dict(line.split("=", 1) for line in lines if not line.startswith("#")) | service["environment"]
    files = {variable: value.rpartition("/")[2] for variable, value in variables.items() if variable.endswith("_FILE")}
    assert set(files.values()) == set(service["secrets"])
    for variable, value in variables.items():
        monkeypatch.setenv(variable, value.replace("/run/secrets", str(deployed / "secrets")))
    settings = load(_env_file=None)
    assert settings.production
    password = (deployed / "secrets/database_password").read_text().strip()
    assert settings.database_url == f"postgresql+asyncpg://profilesvc:{password}@postgres/profilesvc"
    assert settings.provider.refresh_token.get_secret_value() == "provider_refresh_token-6hT2kq9ZrVbW"
    assert settings.limits.shared


def test_containers_start_in_order_and_without_rights() -> None:
    found = services()
    assert found["migrate"]["command"] == ["db", "upgrade"]
    for name in ("app1", "app2"):
        waits = {before: how["condition"] for before, how in found[name]["depends_on"].items()}
        assert waits == {"migrate": "service_completed_successfully", "valkey": "service_healthy"}
        assert (found[name]["read_only"], found[name]["cap_drop"]) == (True, ["ALL"])
    assert {name for name, service in found.items() if "healthcheck" not in service} == {"migrate"}


@pytest.mark.skipif(shutil.which("podman") is None, reason="podman is not installed")
def test_podman_compose_accepts_the_file(deployed: Path) -> None:
    shown = yaml.safe_load(checked(BIN / "podman-compose", "config", cwd=deployed))
    assert set(shown["services"]) == set(services())


def write_haproxy(deployed: Path, target: Path, **replaced: str) -> None:
    """Write HAProxy's file with the paths of this machine."""
    text = (deployed / "haproxy.cfg").read_text("utf-8")
    places = {"/run/secrets": f"{deployed}/secrets", "/usr/local/etc/haproxy": f"{ROOT}/deploy/cluster", **replaced}
    for written, here in places.items():
        assert written in text, written
        text = text.replace(written, here)
    target.write_text(text)


@pytest.mark.skipif(HAPROXY is None, reason="HAProxy is not installed")
def test_haproxy_accepts_its_file(deployed: Path, tmp_path: Path) -> None:
    write_haproxy(deployed, tmp_path / "haproxy.cfg")
    checked(str(HAPROXY), "-c", "-f", tmp_path / "haproxy.cfg")


@pytest.mark.skipif(HAPROXY is None, reason="HAProxy is not installed")
@pytest.mark.parametrize(
    ("path", "status"),
    [
        *((path, 404) for path in ("/metrics", "/%6detrics", "/%6Detrics", "/m%65trics", "/%6d%65%74%72%69%63%73")),
        *(
            (path, 404)
            for path in ("//metrics", "/%2fmetrics", "/metrics/", "/metrics?x", "/metrics%3fx", "/metrics%2f")
        ),
        *((path, 200) for path in ("/", "/healthz", "/api/v1/posts?next=/metrics", "/dashboard/metrics")),
    ],
)
def test_haproxy_hides_the_metrics_however_they_are_written(
    deployed: Path, tmp_path: Path, path: str, status: int
) -> None:
    (front,), trusted = free_ports(1), ssl._create_unverified_context()  # the certificate is of another name
    with ThreadingHTTPServer(("127.0.0.1", 0), Always200) as app, contextlib.ExitStack() as stack:
        threading.Thread(target=app.serve_forever, daemon=True).start()
        stack.callback(app.shutdown)
        replaced = {f"app{number}:8000": f"127.0.0.1:{app.server_port}" for number in (1, 2)}
        write_haproxy(deployed, tmp_path / "haproxy.cfg", **replaced, **{"bind :8443": f"bind 127.0.0.1:{front}"})
        haproxy = stack.enter_context(subprocess.Popen([str(HAPROXY), "-f", tmp_path / "haproxy.cfg"]))
        stack.callback(haproxy.terminate)

        def found() -> int:
            with (
                contextlib.suppress(ConnectionError),
                contextlib.closing(HTTPSConnection("127.0.0.1", front, context=trusted, timeout=20)) as connection,
            ):
                connection.request("GET", path)
                response = connection.getresponse().status
                return 0 if response == 503 else response
            return 0

        assert until(found, "HAProxy's first check of the app") == status


class Always200(BaseHTTPRequestHandler):
    """The app, which has every path."""

    def do_GET(self) -> None:
        self.send_response(200)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *_: Any) -> None: ...


@contextlib.contextmanager
def neighbours(folder: Path, postgres: Postgres, password: str) -> Iterator[dict[str, str]]:
    """Start the provider, the identity provider and a port of the database; return their addresses."""
    postgres.run(f"CREATE ROLE profilesvc LOGIN PASSWORD '{password}'")
    postgres.run("CREATE DATABASE profilesvc OWNER profilesvc")
    emulator = create_emulator(folder / "provider.db", clock=SystemClock(), entropy=SystemEntropy(), world=load_world())
    certificate_file = folder / "deploy/compose/secrets/certificate"
    with contextlib.ExitStack() as stack:
        stack.callback(postgres.run, "DROP ROLE profilesvc")
        stack.callback(postgres.drop, "profilesvc")
        provider, issuer = stack.enter_context(EmbeddedServer(emulator)), stack.enter_context(FakeIssuer())
        portal = stack.enter_context(start_blocking_portal())
        socket = ToxicLink(Path(postgres.host) / ".s.PGSQL.5432")
        link = stack.enter_context(portal.wrap_async_context_manager(socket))
        issuer_url = stack.enter_context(tls_in_front(httpx.URL(issuer.url).port or 0, certificate_file))
        yield {
            "https://provider.example.com": stack.enter_context(tls_in_front(provider.port, certificate_file)),
            "https://login.example.com": issuer_url,
            "postgres/": f"127.0.0.1:{link.port}/",
        }


@pytest.mark.image
@pytest.mark.postgres
@pytest.mark.skipif(bool(missing()) or HAPROXY is None, reason=f"{missing() or 'HAProxy is not installed'}")
def test_the_containers_work_together(
    deployed: Path, podman: Podman, postgres: Postgres, redis_server: RedisServer, tmp_path: Path
) -> None:
    """As compose.yaml starts them; PostgreSQL, Valkey and HAProxy are programs of this machine."""
    ports, secrets = free_ports(3), deployed / "secrets"
    password = (secrets / "database_password").read_text().strip()
    with neighbours(tmp_path, postgres, password) as places, contextlib.ExitStack() as stack:
        url = f"https://127.0.0.1:{ports[2]}"
        for path in (deployed / "settings.env", secrets / "database_url"):
            text = path.read_text()
            for written, here in (*places.items(), ("https://profiles.example.com", url)):
                text = text.replace(written, here)
            path.write_text(text)
        (secrets / "certificate").chmod(0o644)
        found = services()
        variables = {**found["app1"]["environment"], "PROFILESVC_LIMITS__STORAGE_URL": redis_server.url}
        options = (
            f"--env-file={deployed}/settings.env",
            *(f"--env={name}={value}" for name, value in variables.items()),
            *(f"--volume={path}:/run/secrets/{path.name}:ro" for path in secrets.iterdir()),
            "--env=SSL_CERT_FILE=/run/secrets/certificate",
        )
        podman.once(*found["migrate"]["command"], options=options)
        first, second = (
            stack.enter_context(podman.container("serve", "--port", str(port), options=options)) for port in ports[:2]
        )
        first.wait_until_ready(ports[0])
        second.wait_until_ready(ports[1])
        replaced = {f"app{number}:8000": f"127.0.0.1:{port}" for number, port in zip((1, 2), ports[:2], strict=True)}
        write_haproxy(deployed, tmp_path / "haproxy.cfg", **replaced, **{"bind :8443": f"bind 127.0.0.1:{ports[2]}"})
        haproxy = stack.enter_context(subprocess.Popen([str(HAPROXY), "-f", tmp_path / "haproxy.cfg"]))
        stack.callback(haproxy.terminate)
        owner = "owner@example.com"
        first.run("profilesvc", "users", "add", owner, "--name", "Olga", "--plan", "growth")
        first.run("profilesvc", "businesses", "add", owner, "Shop")
        first.run("profilesvc", "locations", "import", owner, "--account", "accounts/1")
        new = ("--name", "Site", "--business", "1", "--location", "locations/111")
        key = json.loads(first.run("profilesvc", "keys", "create", owner, *new, "--json"))
        checks = json.loads(second.run("profilesvc", "doctor", "--json"))
        assert {check["name"] for check in checks if check["status"] != "ok"} <= {"guides", "mail", "metrics"}, checks
        trusted = ssl.create_default_context(cafile=str(secrets / "certificate"))
        with httpx.Client(base_url=url, verify=trusted, trust_env=False, timeout=60) as http:
            assert granted(http, key) == 200
            assert http.get("/metrics").status_code == 404
            assert first.stop() == 0
            assert granted(http, key) == 200


def granted(http: httpx.Client, key: dict[str, str]) -> int:
    """Return the status of a token request. HAProxy needs a moment to notice who serves."""
    login = (key["client_id"], key["client_secret"])

    def granted() -> int:
        status = http.post("/oauth2/token", data={"grant_type": "client_credentials"}, auth=login).status_code
        return 0 if status == 503 else status

    return until(granted, "HAProxy to find an app that serves", every=0.5)
