"""The units of deploy/: how systemd rates them, and the service at work in them."""

import json
import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from conftest import Postgres
from profilesvc.client import ProfileClient
from profilesvc.domain.entropy import SystemEntropy
from profilesvc.domain.time import SystemClock
from profilesvc.emulator.app import create_emulator
from profilesvc.fixtures import load_world
from profilesvc.server.serving import EmbeddedServer
from support.database.cluster import postgres_programs
from support.network.ports import free_ports
from support.pages.blocks import proven_by
from support.repository import ROOT
from support.systemd.machine import ANALYZE, PEPPER_FILE, SystemdMachine, missing

pytestmark = pytest.mark.thorough

DEPLOY = ROOT / "deploy"
UNITS = sorted(path.name for kind in ("service", "socket", "timer") for path in DEPLOY.glob(f"profilesvc*.{kind}"))
needs_systemd = pytest.mark.skipif(ANALYZE is None, reason="systemd is not installed")
SERVE = [sys.executable, "-m", "profilesvc", "serve"]
LISTENING = 'LISTEN_PID=$$ LISTEN_FDS=${COUNT:-1} exec "$@"'
# Where the machine has the packages of this environment.
TOOLS = Path("/opt/packages", *postgres_programs().parts[-3:])
PEPPER = "pepper-of-the-test-6hT2kq9ZrVbW"


@needs_systemd
@pytest.mark.parametrize("unit", UNITS)
def test_systemd_accepts_each_unit(unit: str, tmp_path: Path) -> None:
    for path in DEPLOY.glob("profilesvc*"):
        text = path.read_text("utf-8").replace("/opt/profilesvc/bin/profilesvc", sys.executable)
        (tmp_path / path.name).write_text(text, "utf-8")
    done = subprocess.run(
        [str(ANALYZE), "verify", "--man=no", unit.replace("@.", "@8000.")],
        env={**os.environ, "SYSTEMD_UNIT_PATH": f"{tmp_path}:"},
        capture_output=True,
        text=True,
        check=False,
    )
    ours = [line for line in done.stderr.splitlines() if "profilesvc" in line]
    assert (done.returncode, ours) == (0, [])


@needs_systemd
@pytest.mark.parametrize("unit", [name for name in UNITS if name.endswith(".service")])
def test_the_exposure_is_at_most_two(unit: str) -> None:
    threshold = ("--offline=true", "--threshold=20", "--no-pager")
    done = subprocess.run(
        [str(ANALYZE), "security", *threshold, DEPLOY / unit], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout


def test_the_service_reports_that_it_is_ready_and_uses_the_socket_of_systemd(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener, socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as states:
        states.bind(f"\0profilesvc-test-{os.getpid()}")
        states.settimeout(60)
        clean = {name: value for name, value in os.environ.items() if not name.startswith("PROFILESVC_")}
        served = subprocess.Popen(
            ["bash", "-c", f"exec 3<&{listener.fileno()}; {LISTENING}", "bash", *SERVE, "--port", "1"],
            cwd=tmp_path,
            env={**clean, "NOTIFY_SOCKET": f"@profilesvc-test-{os.getpid()}"},
            pass_fds=[listener.fileno()],
            stdout=subprocess.DEVNULL,
        )
        try:
            assert states.recv(100) == b"READY=1"
            url = f"http://127.0.0.1:{listener.getsockname()[1]}"
            assert httpx.get(f"{url}/readyz", trust_env=False).status_code == 200
            served.terminate()
            assert served.wait(30) == 0
        finally:
            served.kill()


@pytest.mark.parametrize(("count", "problem"), [("2", "must have one socket, not 2"), ("1", "must have a TCP socket")])
def test_a_socket_unit_that_does_not_fit_is_rejected(tmp_path: Path, count: str, problem: str) -> None:
    with socket.socket(socket.AF_UNIX) as other:
        done = subprocess.run(
            ["bash", "-c", f"exec 3<&{other.fileno()}; COUNT={count}; {LISTENING}", "bash", *SERVE],
            cwd=tmp_path,
            pass_fds=[other.fileno()],
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
    assert (done.returncode, problem in done.stderr) == (1, True), done.stderr


@pytest.mark.postgres
@pytest.mark.skipif(bool(missing()), reason=f"{missing()}")
class TestMachine:
    """The units as they are, under systemd as the first process of a machine."""

    @pytest.fixture
    def ports(self) -> list[int]:
        return free_ports(3)

    @pytest.fixture
    def machine(self, tmp_path: Path, postgres: Postgres, ports: list[int]) -> Iterator[SystemdMachine]:
        postgres.run("CREATE ROLE profilesvc LOGIN")
        postgres.run("CREATE DATABASE profilesvc OWNER profilesvc")
        etc = tmp_path / "etc"
        (credential,) = proven_by("docs/deploy.md", "test_the_service_serves_syncs_and_stops")
        tools = f"[Service]\nEnvironment=PATH={TOOLS}:/usr/bin:/bin PGHOST=/opt/database\n"
        for unit, lines in (("profilesvc@", credential.text), ("profilesvc-backup", tools)):
            folder = etc / f"systemd/system/{unit}.service.d"
            folder.mkdir(parents=True)
            (folder / "test.conf").write_text(lines)
        pepper = etc / Path(PEPPER_FILE).relative_to("/etc")
        pepper.parent.mkdir()
        pepper.write_text(f"{PEPPER}\n")
        pepper.chmod(0o600)
        try:
            emulator = create_emulator(
                tmp_path / "provider.db", clock=SystemClock(), entropy=SystemEntropy(), world=load_world()
            )
            with EmbeddedServer(emulator) as provider:
                settings = {
                    "BASE_URL": f"http://127.0.0.1:{ports[0]}",
                    "DATA_DIR": "/var/lib/profilesvc",
                    "DATABASE_URL": "postgresql+asyncpg://profilesvc@/profilesvc?host=/opt/database",
                    "PROVIDER__URL": provider.base_url,
                }
                written = [f"PROFILESVC_{name}={value}\n" for name, value in settings.items()]
                (etc / "profilesvc.env").write_text("".join(written))
                with SystemdMachine(tmp_path, etc, postgres.host) as machine:
                    yield machine
        finally:
            postgres.drop("profilesvc")
            postgres.run("DROP ROLE profilesvc")

    def test_the_service_serves_syncs_and_stops(self, machine: SystemdMachine, ports: list[int]) -> None:
        unit = f"profilesvc@{ports[0]}"
        machine.run("systemctl", "start", unit)
        assert httpx.get(f"http://127.0.0.1:{ports[0]}/readyz", trust_env=False).status_code == 200
        machine.admin("db", "seed")
        assert_at_work(machine, ports[0])
        machine.run("systemctl", "stop", unit)
        result = machine.run("systemctl", "show", "-p", "Result,ExecMainStatus", unit)
        assert set(result.split()) == {"ExecMainStatus=0", "Result=success"}

    def test_connections_wait_in_the_socket_while_the_service_restarts(
        self, machine: SystemdMachine, ports: list[int]
    ) -> None:
        machine.run("systemctl", "start", f"profilesvc@{ports[1]}.socket")
        url = f"http://127.0.0.1:{ports[1]}/readyz"
        with httpx.Client(trust_env=False, timeout=120) as http:
            assert http.get(url).status_code == 200  # the first connection starts the service
            machine.run("systemctl", "restart", "--no-block", f"profilesvc@{ports[1]}.service")
            for _ in range(20):
                assert http.get(url, headers={"Connection": "close"}).status_code in (200, 503)

    def test_a_backup_is_complete_and_private(self, machine: SystemdMachine, ports: list[int]) -> None:
        machine.run("systemctl", "start", f"profilesvc@{ports[2]}")
        machine.run("systemctl", "start", "profilesvc-backup")
        (dump,) = machine.run("sh", "-c", "ls /var/lib/profilesvc-backup/*").split()
        assert machine.run("stat", "-c", "%a %U", dump, str(Path(dump).parent)).split() == [
            "600",
            "profilesvc",
            "700",
            "profilesvc",
        ]
        assert "TABLE DATA public users" in machine.run(f"{TOOLS}/pg_restore", "--list", dump)
        machine.run("systemctl", "start", "profilesvc-backup.timer")
        assert "profilesvc-backup.service" in machine.run("systemctl", "list-timers", "--no-pager")


def assert_at_work(machine: SystemdMachine, port: int) -> None:
    """Grant a token, send a heartbeat and sync a profile."""
    url = f"http://127.0.0.1:{port}"
    command = (
        "keys",
        "create",
        "alice@example.com",
        "--name",
        "Site",
        "--business",
        "10",
        "--location",
        "locations/111",
    )
    key = json.loads(machine.admin(*command, "--json"))
    with ProfileClient.service(url, key["client_id"], key["client_secret"]) as site:
        site.heartbeat()
        assert site.sync("locations/111", {"websiteUri": "https://harbour.example/systemd"}).fieldsUpdated == [
            "websiteUri"
        ]
