"""The backup of docs/backups.md from a cluster: it follows a failover, and brings back all that was acknowledged."""

import contextlib
import os
import shlex
import shutil
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from failover.callers import Load
from support.database.cluster import PATRONI, Cluster, kill_postgres, postgres_programs, until
from support.database.hosts import Host, as_other
from support.pages.blocks import proven_by
from support.repository import ROOT
from support.systemd.backups import PAGE, provide_verify

pytestmark = pytest.mark.failover
SCRIPTS = ROOT / "deploy" / "backup"
PASSWORD = "secret-of-the-backup"
WELL_SECONDS = 60.0
SLOTS = "SELECT count(*) FROM pg_replication_slots WHERE slot_name = 'profilesvc_backup'"
RECEIVED_SECONDS = 2.0  # after which the backup host has what was written before


class BackupHost:
    """The backup host of a cluster, and the commands of the page on the others."""

    def __init__(self, cluster: Cluster, folder: Path) -> None:
        self.cluster, self.host, self.folder = cluster, cluster.hosts["backup"], folder
        self.role, self.configuration, self.place, self.restoration, self.adoption = (
            block.text for block in proven_by(PAGE, "test_the_backup_follows_a_failover_and_restores_the_cluster")
        )
        (folder / "bin").mkdir()
        (folder / "wal").mkdir()
        for path in (folder, folder / "wal"):
            shutil.chown(path, "nobody", "nogroup")
        provide_verify(folder / "bin", postgres_programs())
        shutil.copy(SCRIPTS / "restore", folder / "bin" / "profilesvc-restore")
        self._stub("runuser", f'shift 3; exec setpriv {shlex.join(as_other())} -- "$@"')
        self._stub("systemctl", "exit 0")

    def on(self, host: Host, script: str, answers: str = "") -> str:
        """Run commands of the page on a host; return their output."""
        for old, new in {
            "/opt/patroni/bin/patronictl": str(PATRONI.with_name("patronictl")),
            "/etc/patroni.yml": str(host.folder / "patroni.yml"),
            "/usr/lib/postgresql/15/bin": str(postgres_programs()),
            "/var/lib/postgresql/profilesvc": str(host.folder / "data"),
            "/var/lib/postgresql/restore.log": str(host.folder / "restore.log"),
            "'change-me'": f"'{PASSWORD}'",
        }.items():
            script = script.replace(old, new)
        done = subprocess.run(
            [*self.cluster.network.within(host.name), "bash", "-euc", script],
            env=self._variables() | {"PGHOST": str(host.folder), "PGPASSWORD": self.cluster.superuser_password},
            input=answers,
            capture_output=True,
            text=True,
            cwd=host.folder,
            timeout=300,
            check=False,
        )
        assert done.returncode == 0, f"{script}\n{done.stdout}{done.stderr}"
        return done.stdout

    def receive(self) -> None:
        """Start what profilesvc-wal.service starts."""
        words = ["--slot=profilesvc_backup", "--synchronous", "--no-password", f"--directory={self.folder}/wal"]
        program = str(postgres_programs() / "pg_receivewal")
        self.host.run(
            "receiver", [program, f"--dbname={self._primary()}", *words], self._variables(), unprivileged=True
        )

    def make_base_backup(self) -> None:
        """Do what profilesvc-base-backup.service does."""
        script = f"runuser -u postgres -- sh {SCRIPTS}/base-backup"
        variables = {"PRIMARY": self._primary(), "KEEP_DAYS": "14"}
        self.on(
            self.host, "".join(f"export {name}={shlex.quote(value)}\n" for name, value in variables.items()) + script
        )

    def _primary(self) -> str:
        (assignment,) = shlex.split(self.place.replace("10.0.0.", self.cluster.network.prefix))
        return f"{assignment.partition('=')[2]} password={PASSWORD}"

    def _variables(self) -> dict[str, str]:
        path = f"{self.folder}/bin:{postgres_programs()}:{os.environ['PATH']}:/usr/sbin"
        return {"PATH": path, "FOLDER": str(self.folder), "PGUSER": "postgres", "LC_ALL": "C.UTF-8"}

    def _stub(self, name: str, script: str) -> None:
        file = self.folder / "bin" / name
        file.write_text(f"#!/bin/sh\n{script}\n")
        file.chmod(0o755)


@pytest.fixture
def backup(cluster: Cluster) -> Iterator[BackupHost]:
    if not cluster.network.can_be_cut:
        pytest.skip("pg_hba has the address of the backup host, which is one only in a network namespace")
    host = BackupHost(cluster, cluster.hosts["backup"].folder)
    yield host
    host.host.kill()
    with contextlib.suppress(AssertionError):  # without a primary the test has failed
        cluster.configure(slots=None)


def test_the_backup_follows_a_failover_and_restores_the_cluster(
    cluster: Cluster, load: Load, backup: BackupHost
) -> None:
    before = cluster.primary()
    backup.on(before, backup.role)
    backup.on(before, backup.configuration)
    until(lambda: all(cluster.sql(host, SLOTS) == "1" for host in cluster.databases), "not all hosts have the slot")
    stored = before.folder / "data" / "patroni.dynamic.json"  # Patroni writes it after it has made the slot
    until(lambda: "profilesvc_backup" in stored.read_text("utf-8"), "the configuration is not in the data folder")
    backup.receive()
    backup.make_base_backup()
    load.harm(lambda: kill_postgres(before))
    load.recover(WELL_SECONDS)
    cluster.restore()
    load.stop()
    assert load.record.lost == []
    time.sleep(RECEIVED_SECONDS)
    destroy(cluster, backup)
    first = before  # the base backup has the paths of this host, which are its own only in the tests
    backup.on(first, backup.restoration)
    until(lambda: cluster.sql(first, "SELECT pg_is_in_recovery()") == "f", "the log is not applied")
    backup.on(first, backup.adoption, "profilesvc\nYes I am aware\n")
    first.start("patroni")
    until(lambda: cluster.answers(first, "primary"), "the restored host is not the primary")
    cluster.restore()
    load.check()
    assert load.record.lost == []
    assert load.record.wrong == []
    until(lambda: cluster.sql(cluster.primary(), SLOTS) == "1", "the primary does not have the slot")


def destroy(cluster: Cluster, backup: BackupHost) -> None:
    """End the services and the databases, and delete the data of all of them."""
    for host in cluster.apps:
        host.stop("profilesvc")
    for host in cluster.databases:
        host.stop("patroni")
        shutil.rmtree(host.folder / "data")
    backup.host.kill()
