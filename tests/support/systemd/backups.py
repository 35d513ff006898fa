"""Machines on which the commands of docs/backups.md run, with their system folders below a folder of the test."""

import contextlib
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import httpx
import psutil

from support.pages.blocks import Block
from support.program import Server, command, serving
from support.repository import ROOT
from support.systemd.plain_units import PlainUnit
from support.waiting import until

PAGE = "docs/backups.md"
KEYS = "/api/v1/developer/credentials"
NEW_KEY = {"name": "Backup", "business_id": 10, "assigned_location_id": "locations/111"}
_SYSTEM = re.compile(r"(?<![\w.])/(etc|opt|var|usr/local)/")
_FOLDERS = ("bin", "etc/default", "etc/systemd/system", "opt/profilesvc/bin", "usr/local/bin", "var/backups", "var/lib")

# pg_verifybackup of the PostgreSQL that pip installs crashes at once. This compares the same checksums.
_VERIFY = r"""#!/bin/sh
cd "$2" && sed -n 's/^{ "Path": "\([^"]*\)", .*"Checksum": "\([0-9a-f]*\)" }.*/\2  \1/p' backup_manifest |
  sha256sum --check --quiet
"""


def provide_verify(folder: Path, programs: Path | None) -> None:
    """Write a pg_verifybackup that works into a folder, if that of the programs does not."""
    if subprocess.run([f"{programs}/pg_verifybackup", "--version"], capture_output=True, check=False).returncode:
        script = folder / "pg_verifybackup"
        script.write_text(_VERIFY)
        script.chmod(0o755)


class Key(NamedTuple):
    """An API key, and when the service has acknowledged it."""

    client_id: str
    secret: str
    at: float


class Machine:
    """A machine. `user` runs its database, and is empty if the tests do not run as root."""

    def __init__(self, user: str = "", programs: Path | None = None, **variables: str) -> None:
        self.root = Path(tempfile.mkdtemp(prefix="backup-"))
        self.root.chmod(0o755)
        for folder in _FOLDERS:
            (self.root / folder).mkdir(parents=True)
        systemctl = self.root / "bin" / "systemctl"
        systemctl.write_text(
            f'#!/bin/sh\nexec {sys.executable} {ROOT}/tests/support/systemd/plain_units.py {self.root} "$@"\n'
        )
        systemctl.chmod(0o755)
        self.user, self.programs = user, programs
        clean = {name: value for name, value in os.environ.items() if not name.startswith("PROFILESVC_")}
        places = [f"{self.root}/bin", f"{self.root}/usr/local/bin", str(programs or ""), clean["PATH"], "/usr/sbin"]
        self.variables = clean | {"PATH": ":".join(filter(None, places))} | variables
        if user:
            self.variables["SERVER_USER"] = user
        (self.root / "deploy").mkdir()
        shutil.copytree(ROOT / "deploy" / "backup", self.root / "deploy" / "backup")
        for file in (self.root / "deploy" / "backup").iterdir():
            file.write_text(self.here(file.read_text("utf-8")), "utf-8")

    def close(self) -> None:
        """Kill the services and delete everything."""
        for file in (self.root / "run").glob("*.pid"):
            self.kill(file.stem)
        shutil.rmtree(self.root)

    def own(self, folder: Path) -> None:
        """Give a folder to the user of the database."""
        if self.user:
            shutil.chown(folder, self.user, self.user)

    def here(self, text: str) -> str:
        """Return a text of the page or of deploy/backup/ with the folders, programs and users of this machine."""
        for name in ("postgres", "profilesvc"):
            user = self.user if name == "postgres" else ""
            runs = f"setpriv --reuid={user} --regid={user} --clear-groups " if user else ""
            text = text.replace(f"runuser -u {name} -- ", runs)
            text = text.replace(f"-o {name} -g {name} ", f"-o {user} -g {user} " if user else "")
        text = _SYSTEM.sub(lambda found: f"{self.root}/{found[1]}/", text)
        return text.replace("/usr/bin/pg_", f"{self.programs}/pg_") if self.programs else text

    def run_blocks(self, found: list[Block], **changes: str) -> str:
        """Run blocks of the page, one after the other. Replace what an operator would edit."""
        return "".join(self.run(block.text, **changes) for block in found)

    def run(self, script: str, **changes: str) -> str:
        """Run a block. The files of deploy/backup/ that it installs have the folders of this machine."""
        for old, new in changes.items():
            assert old
            script = script.replace(old, new)
        done = subprocess.run(
            ["bash", "-c", f"set -euo pipefail\n{self.here(script)}"],
            cwd=self.root,
            env=self.variables,
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
        )
        assert done.returncode == 0, f"{script}\n{done.stdout}{done.stderr}{self.logs()}"
        return done.stdout + done.stderr

    def logs(self) -> str:
        return "".join(f"\n{file.name}: {file.read_text()[-2000:]}" for file in self.root.glob("*.log"))

    def kill(self, name: str) -> float:
        """End a service and its processes without a warning. Return the time just before that."""
        unit, at = PlainUnit(self.root, name), time.time()
        with contextlib.suppress(psutil.NoSuchProcess):
            process = psutil.Process(int(unit.pid_file.read_text()))
            children = process.children(recursive=True)
            at = time.time()
            for each in (process, *children):
                with contextlib.suppress(psutil.NoSuchProcess):
                    each.send_signal(signal.SIGKILL)
            psutil.wait_procs([process, *children], timeout=30)
        unit.pid_file.unlink()
        return at


class Load:
    """Callers that create API keys, and remember each one that was acknowledged."""

    def __init__(self, server: Server, token: str, callers: int = 2, pause_seconds: float = 0) -> None:
        self._server, self._token, self._pause_seconds = server, token, pause_seconds
        self.acknowledged: list[Key] = []
        self._ended = threading.Event()
        self._threads = [threading.Thread(target=self._create) for _ in range(callers)]

    def _create(self) -> None:
        bearer = {"Authorization": f"Bearer {self._token}"}
        with httpx.Client(base_url=self._server.url, headers=bearer, timeout=30, trust_env=False) as http:
            while not self._ended.is_set():
                try:
                    response = http.post(KEYS, json=NEW_KEY)
                except httpx.HTTPError:
                    continue
                time.sleep(self._pause_seconds)
                if response.status_code == 201:
                    data = response.json()["data"]
                    self.acknowledged.append(Key(data["client_id"], data["client_secret"], time.time()))
                else:  # the database is gone
                    assert response.status_code == 503, response.text
                    time.sleep(0.05)

    def during(self, seconds: float) -> None:
        """Wait while the callers work, and until one of at least ten keys was acknowledged a moment ago."""
        time.sleep(seconds)

        def are_fresh() -> bool:
            return len(self.acknowledged) >= 10 and time.time() - self.acknowledged[-1].at < 0.2

        until(are_fresh, "a key that was created a moment ago", 120, every=0.01)

    def __enter__(self) -> "Load":
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        for thread in self._threads:
            thread.join()


@contextlib.contextmanager
def served(folder: Path, **settings: str) -> Iterator[tuple[Server, str]]:
    """Serve the demo data with plans that allow any number of keys, and return a user token of Alice."""
    plans = (ROOT / "src/profilesvc/plans.toml").read_text("utf-8")
    (folder / "plans.toml").write_text(plans.replace("live_keys_per_location = 20", "live_keys_per_location = 100000"))
    variables = {"LIMITS__ENABLED": "false", "PLANS_FILE": str(folder / "plans.toml"), **settings}
    with serving(folder, "serve", "--demo", "--port", "0", **variables) as server:
        done = command(folder, "users", "token", "alice@example.com", **variables)
        assert done.returncode == 0, done.stderr
        yield server, done.stdout.strip()


def assert_granted(server: Server, key: Key) -> None:
    """The secret of a key is exchanged for a token."""
    grant = {"grant_type": "client_credentials", "client_id": key.client_id, "client_secret": key.secret}
    response = httpx.post(f"{server.url}/api/v1/auth/token", json=grant, timeout=30, trust_env=False)
    assert response.status_code == 200, response.text
