"""The units of deploy/backup/ as systemd reads them: their exposure, and Litestream with the calls that they allow."""

import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

from conftest import Postgres
from support.repository import ROOT
from support.systemd_machine import ANALYZE, SystemdMachine, missing

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
        until = time.monotonic() + 60
        while "copy.db" not in machine.run("ls", "/var/lib/profilesvc"):
            assert time.monotonic() < until, machine.run("journalctl", "--no-pager", "-n", "40")
            machine.run(*as_user, *restore)
            time.sleep(0.5)
        state = machine.run("systemctl", "show", "-p", "ActiveState,NRestarts", "profilesvc-litestream")
        assert set(state.split()) == {"ActiveState=active", "NRestarts=0"}
        machine.run("systemctl", "stop", "profilesvc-litestream")
