"""docs/backups.md on SQLite: Litestream, a service under load, and a file that is destroyed."""

import contextlib
import os
import shutil
import sqlite3
import sys
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from support.pages.blocks import proven_by
from support.systemd.backups import PAGE, Load, Machine, assert_granted, served
from support.waiting import until

pytestmark = pytest.mark.thorough

LITESTREAM = Path(sys.executable).with_name("litestream")
SET_UP = "test_the_replica_is_set_up_by_the_page"
RESTORE = "test_a_destroyed_file_is_restored_to_its_last_second"
UNDO = "test_a_mistake_in_the_file_is_undone"


@pytest.fixture
def machine() -> Iterator[Machine]:
    machine = Machine()
    programs = machine.root / "opt/profilesvc/bin"
    (programs / "pip").symlink_to("/bin/true")
    (programs / "litestream").symlink_to(LITESTREAM)
    (machine.root / "var/lib/profilesvc").mkdir()
    yield machine
    machine.close()


def database(machine: Machine) -> Path:
    return machine.root / "var/lib/profilesvc/profilesvc.db"


def with_config(machine: Machine) -> dict[str, str]:
    """Name the configuration, which is at Litestream's default path on a real machine."""
    return {"litestream restore ": f"litestream restore -config {machine.root}/etc/litestream.yml "}


def keys(file: Path) -> set[str]:
    with contextlib.closing(sqlite3.connect(file)) as connection:
        return {client_id for (client_id,) in connection.execute("SELECT client_id FROM keys")}


def replicated(machine: Machine) -> int:
    """Return the size of what the replica has."""
    return sum(file.stat().st_size for file in (machine.root / "var/backups").rglob("*") if file.is_file())


def until_replicated(machine: Machine) -> None:
    """Wait until the replica has something and no longer grows."""
    sizes = [-1, 0]

    def is_complete() -> bool:
        sizes[:] = sizes[1], replicated(machine)
        return 0 < sizes[0] == sizes[1]

    until(is_complete, lambda: "a replica that no longer grows: " + machine.logs(), seconds=60, every=1)


def test_the_replica_is_set_up_by_the_page(machine: Machine) -> None:
    with served(machine.root, DATA_DIR=str(database(machine).parent)):
        machine.run_blocks(proven_by(PAGE, SET_UP))
        until_replicated(machine)
        machine.run("systemctl stop profilesvc-litestream")
    assert "level=ERROR" not in machine.logs()
    copy = machine.root / "copy.db"
    machine.run(f"{LITESTREAM} restore -o {copy} {database(machine)}", **with_config(machine))
    assert keys(copy) == keys(database(machine))


def test_a_destroyed_file_is_restored_to_its_last_second(
    machine: Machine, record_testsuite_property: Callable[[str, object], None]
) -> None:
    data = {"DATA_DIR": str(database(machine).parent)}
    with served(machine.root, **data) as (server, token):
        machine.run_blocks(proven_by(PAGE, SET_UP))
        with Load(server, token, callers=1, pause_seconds=0.02) as load:
            load.during(5)
            destroyed = machine.kill("profilesvc-litestream")
            server.kill()
    for file in database(machine).parent.glob("*profilesvc.db*"):
        shutil.rmtree(file) if file.is_dir() else file.unlink()
    machine.run_blocks(proven_by(PAGE, RESTORE), **with_config(machine))
    restored = keys(database(machine))
    lost = [destroyed - key.at for key in load.acknowledged if key.client_id not in restored and key.at < destroyed]
    record_testsuite_property(
        "lost", f"{len(lost)} of {len(load.acknowledged)}, the oldest {max(lost, default=0):.2f} s old"
    )
    assert max(lost, default=0) < 1, machine.logs()
    old = [key for key in load.acknowledged if key.at < destroyed - 1]
    assert old
    assert os.stat(database(machine)).st_mode & 0o077 == 0
    with served(machine.root, **data) as (server, _):
        assert_granted(server, old[-1])


def test_a_mistake_in_the_file_is_undone(machine: Machine) -> None:
    with served(machine.root, DATA_DIR=str(database(machine).parent)) as (server, token):
        machine.run_blocks(proven_by(PAGE, SET_UP))
        with Load(server, token, callers=1) as load:
            load.during(1)
        time.sleep(1)
        before = datetime.now(UTC)
        time.sleep(1)
        with contextlib.closing(sqlite3.connect(database(machine), timeout=30)) as connection:
            connection.execute("DELETE FROM keys")
            connection.commit()
        until_replicated(machine)
    assert keys(database(machine)) == set()
    time_of_page = {"2026-11-23T10:15:00Z": before.strftime("%Y-%m-%dT%H:%M:%S.%fZ")}
    machine.run_blocks(proven_by(PAGE, UNDO), **time_of_page, **with_config(machine))
    assert {key.client_id for key in load.acknowledged} <= keys(database(machine).with_name("before.db"))
