"""The units of deploy/backup/ as systemd reads them: their exposure, and Litestream with the calls that they allow."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from conftest import Postgres
from support.repository import ROOT
from support.systemd.machine import ANALYZE, SystemdMachine, missing
from support.waiting import until

pytestmark = pytest.mark.thorough

BACKUP = ROOT / "deploy" / "backup"
DATABASE = "/var/lib/profilesvc/profilesvc.db"
CREATE = f"""import sqlite3
connection = sqlite3.connect("{DATABASE}")
connection.execute("PRAGMA journal_mode=WAL")
connection.execute("CREATE TABLE rows AS SELECT 'written' AS text")
connection.commit()
"""


@pytest.mark.skipif(ANALYZE is None, reason="systemd is not installed")
@pytest.mark.parametrize("unit", sorted(path.name for path in BACKUP.glob("*.service")))
def test_the_exposure_is_at_most_two(unit: str) -> None:
    words = [str(ANALYZE), "security", "--offline=true", "--threshold=20", "--no-pager", str(BACKUP / unit)]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout


def test_the_base_backup_finds_the_programs_that_debian_has_elsewhere(tmp_path: Path) -> None:
    """Debian has all programs below /usr/lib/postgresql, and pg_verifybackup is not in /usr/bin."""
    label = "START WAL LOCATION: 0/2000028 (file 000000010000000000000002)"
    for name, script in {
        "bin/pg_basebackup": f'mkdir "{tmp_path}/unfinished" && echo "{label}" >"{tmp_path}/unfinished/backup_label"',
        "bin/pg_archivecleanup": 'echo "$2"',
        "postgresql/15/bin/pg_verifybackup": "echo verified",
    }.items():
        file = tmp_path / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(f"#!/bin/sh\n{script}\n")
        file.chmod(0o755)
    script = (BACKUP / "base-backup").read_text("utf-8").replace("/usr/lib/postgresql", f"{tmp_path}/postgresql")
    places = {"PATH": f"{tmp_path}/bin:/usr/bin:/bin", "FOLDER": str(tmp_path), "KEEP_DAYS": "14", "PRIMARY": ""}
    done = subprocess.run(["sh", "-c", script], env=places, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.split()[:2] == ["verified", "000000010000000000000002"]


@pytest.mark.postgres
@pytest.mark.skipif(bool(missing()), reason=f"{missing()}")
def test_litestream_works_with_the_rights_of_its_unit(tmp_path: Path, postgres: Postgres) -> None:
    etc = tmp_path / "etc"
    (etc / "systemd/system").mkdir(parents=True)
    shutil.copy(BACKUP / "profilesvc-litestream.service", etc / "systemd/system")
    shutil.copy(BACKUP / "litestream.yml", etc)
    shutil.copy(Path(sys.executable).with_name("litestream"), etc / "litestream")
    (etc / "create.py").write_text(CREATE)
    with SystemdMachine(tmp_path, etc, postgres.host) as machine:
        machine.run("ln", "-s", "/etc/litestream", "/opt/profilesvc/bin/litestream")
        for folder in ("/var/lib/profilesvc", "/var/backups/profilesvc"):
            machine.run("install", "-d", "-m", "700", "-o", "profilesvc", "-g", "profilesvc", folder)
        as_user = ("setpriv", "--reuid=profilesvc", "--regid=profilesvc", "--clear-groups")
        machine.run(*as_user, "env", "LD_LIBRARY_PATH=/opt/python/lib", "/opt/profilesvc/bin/python", "/etc/create.py")
        machine.run("systemctl", "start", "profilesvc-litestream")
        restore = ("/etc/litestream", "restore", "-o", "/var/lib/profilesvc/copy.db", "-if-replica-exists", DATABASE)

        def is_restored() -> bool:
            machine.run(*as_user, *restore)
            return "copy.db" in machine.run("ls", "/var/lib/profilesvc")

        until(
            is_restored, lambda: "a copy: " + machine.run("journalctl", "--no-pager", "-n", "40"), seconds=60, every=0.5
        )
        state = machine.run("systemctl", "show", "-p", "ActiveState,NRestarts", "profilesvc-litestream")
        assert set(state.split()) == {"ActiveState=active", "NRestarts=0"}
        machine.run("systemctl", "stop", "profilesvc-litestream")
