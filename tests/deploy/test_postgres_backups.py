"""docs/backups.md on PostgreSQL: base backups and the log, a service under load, and a server that is destroyed."""

import contextlib
import os
import shutil
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from conftest import Postgres
from support.database.citus import on_one_server
from support.pages.blocks import proven_by
from support.program import command
from support.systemd.backups import PAGE, Load, Machine, assert_granted, provide_verify, served
from support.waiting import until

pytestmark = [pytest.mark.thorough, on_one_server, pytest.mark.postgres]
SET_UP = "test_the_backup_is_set_up_by_the_page"
SYNCHRONOUS = "test_a_synchronous_backup_has_every_acknowledged_write"
RESTORE = "test_a_destroyed_server_is_restored_to_its_last_second"
UNDO = "test_a_mistake_is_undone_by_a_restore_to_the_moment_before"
UNIT = """[Service]
Type=exec
User=postgres
ExecStart={programs}/postgres -D {data} -k {socket} -h '' -c fsync=off
KillSignal=SIGINT
"""


class DatabaseMachine(Machine):
    """The primary and the backup host as one machine. As root, PostgreSQL runs as another user."""

    def __init__(self, postgres: Postgres) -> None:
        server: Any = postgres._server
        super().__init__(server.system_user or "", server.bin_path, PGUSER="postgres")
        self.socket, self.data = self.root / "socket", self.root / "var/lib/postgresql/15/main"
        self.variables["PGHOST"] = str(self.socket)
        provide_verify(self.root / "bin", self.programs)
        for folder in (self.socket, self.data.parent):
            folder.mkdir(parents=True)
            self.own(folder)
        unit = UNIT.format(programs=self.programs, data=self.data, socket=self.socket)
        (self.root / "etc/systemd/system/postgresql.service").write_text(unit)
        self.settings = {"DATABASE_URL": f"postgresql+asyncpg://postgres@/profilesvc?host={self.socket}"}

    def sql(self, statement: str, database: str = "profilesvc") -> str:
        words = [f"{self.programs}/psql", "-XAtc", statement, database]
        done = subprocess.run(words, env=self.variables, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr + self.logs()
        return done.stdout.strip()

    def until(self, statement: str, wanted: str, database: str = "postgres") -> None:
        """Wait until a statement returns this, also while the server starts."""

        def is_returned() -> bool:
            with contextlib.suppress(AssertionError):
                return self.sql(statement, database) == wanted
            return False

        until(is_returned, lambda: f"{wanted} of {statement}: {self.logs()}", seconds=120, every=0.05)

    def start(self) -> None:
        self.run("systemctl start postgresql")
        self.until("SELECT pg_is_in_recovery()", "f")

    def destroy(self) -> float:
        """Kill the server without a warning, and delete its data; return when."""
        at = self.kill("postgresql")
        shutil.rmtree(self.data)
        return at

    def keys(self) -> set[str]:
        return set(self.sql("SELECT client_id FROM keys").splitlines())


@pytest.fixture(scope="module")
def template(postgres: Postgres) -> Iterator[Path]:
    """A stopped server with the service's tables. Its segments have 1 MB, so that the log has many of them."""
    with contextlib.closing(DatabaseMachine(postgres)) as machine:
        initdb = "runuser -u postgres -- initdb --auth=trust --username=postgres --wal-segsize=1"
        machine.run(f"{initdb} -D {machine.data}")
        machine.start()
        machine.sql("CREATE DATABASE profilesvc", "postgres")
        assert command(machine.root, "db", "upgrade", **machine.settings).returncode == 0
        machine.run("systemctl stop postgresql")
        yield machine.data


@pytest.fixture
def machine(postgres: Postgres, template: Path) -> Iterator[DatabaseMachine]:
    """A running server with the backup of the page."""
    with contextlib.closing(DatabaseMachine(postgres)) as machine:
        machine.run(f"cp -a {template} {machine.data}")
        machine.start()
        settings = machine.root / "deploy/backup/backup.env"
        text = settings.read_text("utf-8")
        assert "host=10.0.0.11 " in text
        settings.write_text(text.replace("host=10.0.0.11 ", f"host={machine.socket} "), "utf-8")
        machine.run_blocks(proven_by(PAGE, SET_UP))
        yield machine


@contextlib.contextmanager
def loaded(machine: DatabaseMachine) -> Iterator[Load]:
    """Callers of a service on the database; both end with the block."""
    with served(machine.root, **machine.settings) as (server, token), Load(server, token) as load:
        yield load


def test_the_backup_is_set_up_by_the_page(machine: DatabaseMachine) -> None:
    state = "SELECT state FROM pg_stat_replication WHERE application_name = 'profilesvc_backup'"
    machine.until(state, "streaming")
    folder = machine.root / "var/backups/profilesvc"
    (first,) = folder.glob("base-*Z")
    assert (folder / "wal").stat().st_mode & 0o077 == 0
    before = {file.name for file in (folder / "wal").iterdir()}
    january = [folder / f"base-2026010{day}T000000Z" for day in (1, 2, 3)]
    for path in january:
        machine.run(f"cp -a {first} {path}")
    for _ in range(3):
        machine.sql("SELECT pg_switch_wal()", "postgres")
        machine.sql("CREATE TABLE more AS SELECT 1; DROP TABLE more")
    time.sleep(1)  # the name of a base backup has its second
    machine.run("systemctl start profilesvc-base-backup")
    kept = sorted(folder.glob("base-*Z"))
    assert kept[:2] == [january[-1], first], "the last one before KEEP_DAYS is needed for the first of these days"
    assert len(kept) == 3
    for path in kept[:2]:
        shutil.rmtree(path)
    time.sleep(1)
    machine.run("systemctl start profilesvc-base-backup")
    after = {file.name for file in (folder / "wal").iterdir()}
    assert min(after) > min(before), "the log before the oldest base backup is deleted"


def test_a_synchronous_backup_has_every_acknowledged_write(
    machine: DatabaseMachine, record_testsuite_property: Callable[[str, object], None]
) -> None:
    machine.run_blocks(proven_by(PAGE, SYNCHRONOUS))
    machine.until("SELECT sync_state FROM pg_stat_replication", "sync")
    with loaded(machine) as load:
        load.during(3)
        machine.destroy()
    restore(machine)
    record_testsuite_property("acknowledged", len(load.acknowledged))
    assert {key.client_id for key in load.acknowledged} <= machine.keys()


def restore(machine: DatabaseMachine) -> None:
    machine.run_blocks(proven_by(PAGE, RESTORE)[:1])
    machine.until("SELECT pg_is_in_recovery()", "f")


def test_a_destroyed_server_is_restored_to_its_last_second(
    machine: DatabaseMachine, record_testsuite_property: Callable[[str, object], None]
) -> None:
    with loaded(machine) as load:
        load.during(5)
        destroyed = machine.destroy()
    restore(machine)
    restored = machine.keys()
    lost = [destroyed - key.at for key in load.acknowledged if key.client_id not in restored and key.at < destroyed]
    record_testsuite_property(
        "lost", f"{len(lost)} of {len(load.acknowledged)}, the oldest {max(lost, default=0):.3f} s old"
    )
    assert max(lost, default=0) < 1
    old = [key for key in load.acknowledged if key.at < destroyed - 1]
    with served(machine.root, **machine.settings) as (server, _):
        assert_granted(server, old[-1])
    machine.run_blocks(proven_by(PAGE, RESTORE)[1:])  # a new log and a new base backup
    machine.sql("CREATE TABLE after_the_first_restore AS SELECT 1")
    machine.until(
        "SELECT count(*) FROM pg_stat_replication WHERE replay_lsn IS NULL AND flush_lsn >= pg_current_wal_lsn()", "1"
    )
    machine.destroy()
    restore(machine)
    assert machine.sql("SELECT count(*) FROM after_the_first_restore") == "1"
    assert restored <= machine.keys()


@pytest.mark.parametrize(
    "mistake",
    [
        "SET session_replication_role = replica; DELETE FROM keys",
        "DROP TABLE keys CASCADE",
        "DROP DATABASE profilesvc WITH (FORCE)",
    ],
)
def test_a_mistake_is_undone_by_a_restore_to_the_moment_before(machine: DatabaseMachine, mistake: str) -> None:
    with loaded(machine) as load:
        load.during(1)
    everything = machine.keys()
    before = machine.sql("SELECT clock_timestamp()")
    time.sleep(0.2)
    machine.sql("CREATE TABLE a_commit AS SELECT 1")  # DROP DATABASE takes effect before its own commit
    machine.sql(mistake, "postgres" if "DATABASE" in mistake else "profilesvc")
    machine.sql("CREATE TABLE written_afterwards AS SELECT 1", "postgres")
    machine.until("SELECT flush_lsn >= pg_current_wal_lsn() FROM pg_stat_replication", "t")
    machine.run_blocks(proven_by(PAGE, UNDO), **{"2026-11-23 10:15:00.000+00": before})
    machine.until("SELECT pg_is_in_recovery()", "f")
    assert machine.keys() == everything
    assert {key.client_id for key in load.acknowledged} <= everything
    assert machine.sql("SELECT to_regclass('written_afterwards') IS NULL", "postgres") == "t"


def test_a_damaged_base_backup_is_not_kept(machine: DatabaseMachine) -> None:
    """Verification fails if a file has changed, and only a verified base backup gets its name."""
    (base,) = (machine.root / "var/backups/profilesvc").glob("base-*Z")
    verify = f"runuser -u postgres -- pg_verifybackup --quiet {base}"
    machine.run(verify)
    file = base / "global/pg_control"
    file.write_bytes(file.read_bytes()[::-1])
    with pytest.raises(AssertionError, match="global/pg_control"):
        machine.run(verify)


def test_a_restore_needs_an_empty_place_and_a_base_backup(machine: DatabaseMachine) -> None:
    program = machine.root / "usr/local/bin/profilesvc-restore"
    for words, problem in [((machine.data,), "move it away"), (("new", "2020-01-01 00:00:00+00"), "no base backup")]:
        done = subprocess.run([program, *words], cwd=machine.root, capture_output=True, text=True, check=False)
        assert done.returncode == 1
        assert problem in done.stderr
    assert not os.path.exists(machine.root / "new")
