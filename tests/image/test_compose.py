"""deploy/compose/: the form of the file, what the containers get, and the commands of docs/deploy.md."""

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from profilesvc.settings import load
from support.page_blocks import proven_by
from support.repository import ROOT
from support.tls import certificate

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


@pytest.mark.skipif(HAPROXY is None, reason="HAProxy is not installed")
def test_haproxy_accepts_its_file(deployed: Path, tmp_path: Path) -> None:
    text = (deployed / "haproxy.cfg").read_text("utf-8")
    for inside, outside in (
        ("/run/secrets", deployed / "secrets"),
        ("/usr/local/etc/haproxy", ROOT / "deploy/cluster"),
    ):
        text = text.replace(inside, str(outside))
    (tmp_path / "haproxy.cfg").write_text(text)
    checked(str(HAPROXY), "-c", "-f", tmp_path / "haproxy.cfg")
