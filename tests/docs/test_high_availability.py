"""The commands of docs/high-availability.md: run in an empty folder, they write the files of the hosts."""

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from conftest import Postgres
from support.network.tls import certificate
from support.pages.blocks import proven_by
from support.repository import ROOT

PAGE = "docs/high-availability.md"
CLUSTER = ROOT / "deploy" / "cluster"
HAPROXY = shutil.which("haproxy") or shutil.which("haproxy", path="/usr/sbin")
REPLACED = ("apt-get", "systemctl", "chown", "pip", "patronictl", "runuser", "curl", "profilesvc-admin")
FOLDERS = (
    "bin",
    "etc/default",
    "etc/haproxy",
    "etc/nginx/conf.d",
    "etc/redis",
    "etc/systemd/system",
    "opt/patroni/bin",
)


def test_the_commands_write_the_files(tmp_path: Path) -> None:
    for folder in FOLDERS:
        (tmp_path / folder).mkdir(parents=True)
    for place in (tmp_path / "bin", tmp_path / "opt/patroni/bin"):
        for name in (*REPLACED, "python3"):
            (place / name).write_text("#!/bin/sh\n")
            (place / name).chmod(0o755)
    shutil.copytree(ROOT / "deploy", tmp_path / "deploy")
    for name in ("fullchain", "privkey"):
        (tmp_path / f"{name}.pem").write_text(f"{name}\n")
    etc, files = tmp_path / "etc", tmp_path / "opt" / "cluster"
    shutil.copy(ROOT / "deploy" / "profilesvc.env", etc)
    for block in proven_by(PAGE, "test_the_commands_write_the_files"):
        script = re.sub(r"(?<![\w.])/(etc|opt)/", rf"{tmp_path}/\1/", block.text.replace(" -o redis -g redis", ""))
        script = f"set -euo pipefail\nPATH={tmp_path}/bin:$PATH\n{script}"
        done = subprocess.run(["bash", "-c", script], cwd=tmp_path, capture_output=True, text=True, check=False)
        assert (done.returncode, done.stderr) == (0, ""), script
        if "haproxy-database.cfg" in block.text:
            assert (etc / "haproxy/haproxy.cfg").read_bytes() == (files / "haproxy-database.cfg").read_bytes()
    settings = (etc / "default/etcd").read_text("utf-8")
    assert "\nETCD_NAME=db1\n" in settings
    assert "\nETCD_LISTEN_PEER_URLS=http://10.0.0.11:2380\n" in settings
    patroni = (etc / "patroni.yml").read_text("utf-8")
    assert "\nname: db1\n" in patroni
    assert patroni.count("10.0.0.11:") == 5  # four lines of its own, and one of etcd's hosts
    assert "ADDRESS:" not in patroni
    assert (etc / "haproxy/haproxy.cfg").read_bytes() == (files / "haproxy-front.cfg").read_bytes()
    assert (etc / "haproxy/profiles.example.com.pem").read_text("utf-8") == "fullchain\nprivkey\n"
    for name in ("haproxy/unavailable.http", "nginx/conf.d/front.conf", "systemd/system/patroni.service"):
        assert (etc / name).exists(), name
    assert (etc / "redis/redis.conf").read_text("utf-8") == f"include {etc}/redis/profilesvc.conf\n"


def test_each_password_is_replaced_by_the_same_one_in_all_files(tmp_path: Path) -> None:
    (first, *_) = proven_by(PAGE, "test_the_commands_write_the_files")
    shutil.copytree(ROOT / "deploy", tmp_path / "deploy")
    subprocess.run(["bash", "-ec", first.text.replace("/opt/", f"{tmp_path}/")], cwd=tmp_path, check=True)
    texts = {path.name: path.read_text("utf-8") for path in (tmp_path / "cluster").iterdir()}
    assert not [name for name, text in texts.items() if "change-me" in text]
    (password,) = re.findall(r"^requirepass (\w+)$", texts["redis.conf"], re.MULTILINE)
    assert f"redis://:{password}@10.0.0.31" in texts["app.env"]


def test_the_settings_of_an_app_host_are_accepted_once(tmp_path: Path) -> None:
    """The file of one machine has none of the lines that app.env replaces, whichever of them systemd would read."""
    lines = (ROOT / "deploy" / "profilesvc.env").read_text("utf-8")
    (block,) = (each for each in proven_by(PAGE, "test_the_commands_write_the_files") if "app.env >>" in each.text)
    (tmp_path / "settings").write_text(lines, "utf-8")
    script = block.text.replace("/etc/profilesvc.env", "settings").replace("/opt/", f"{ROOT}/deploy/")
    subprocess.run(["bash", "-ec", script], cwd=tmp_path, check=True)
    names = re.findall(r"^(\w+)=", (tmp_path / "settings").read_text("utf-8"), re.MULTILINE)
    assert len(names) == len(set(names))
    assert set(re.findall(r"^(\w+)=", lines, re.MULTILINE)) < set(names)


@pytest.mark.skipif(HAPROXY is None, reason="HAProxy is not installed")
@pytest.mark.parametrize("name", ["haproxy-database.cfg", "haproxy-front.cfg"])
def test_haproxy_accepts_its_files_and_gives_up_the_rights_of_root(name: str, tmp_path: Path) -> None:
    text = (CLUSTER / name).read_text("utf-8")
    assert "\n    user haproxy\n    group haproxy\n    chroot /var/lib/haproxy\n" in text
    certificate(tmp_path, days=1).rename(tmp_path / "profiles.example.com.pem")
    shutil.copy(CLUSTER / "unavailable.http", tmp_path)
    (tmp_path / name).write_text(text.replace("/etc/haproxy", str(tmp_path)), "utf-8")
    done = subprocess.run([str(HAPROXY), "-c", "-f", tmp_path / name], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


@pytest.mark.postgres
def test_the_role_owns_its_database(postgres: Postgres) -> None:
    """The cluster of tests/failover runs these statements, too."""
    (block,) = proven_by(PAGE, "test_the_role_owns_its_database")
    try:
        for statement in block.text.splitlines():
            postgres.run(statement)
        postgres.run("SET ROLE profilesvc; CREATE TABLE public.theirs (id integer)", "profilesvc")
    finally:
        postgres.run("DROP DATABASE IF EXISTS profilesvc")
        postgres.run("DROP ROLE IF EXISTS profilesvc")
