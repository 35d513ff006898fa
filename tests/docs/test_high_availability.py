"""The commands of docs/high-availability.md: run in an empty folder, they write the files of the hosts."""

import re
import subprocess
from pathlib import Path

import pytest

from conftest import Postgres
from support.page_blocks import proven_by
from support.repository import ROOT

PAGE = "docs/high-availability.md"
REPLACED = ("apt-get", "systemctl", "chown", "pip", "patronictl")
FOLDERS = ("bin", "etc/default", "etc/haproxy", "etc/systemd/system", "opt/patroni/bin")


def test_the_commands_write_the_files(tmp_path: Path) -> None:
    for folder in FOLDERS:
        (tmp_path / folder).mkdir(parents=True)
    for place in (tmp_path / "bin", tmp_path / "opt/patroni/bin"):
        for name in (*REPLACED, "python3"):
            (place / name).write_text("#!/bin/sh\n")
            (place / name).chmod(0o755)
    for block in proven_by(PAGE, "test_the_commands_write_the_files"):
        script = re.sub(r"(?<![\w.])/(etc|opt)/", rf"{tmp_path}/\1/", block.text)
        script = f"set -euo pipefail\nPATH={tmp_path}/bin:$PATH\n{script}"
        done = subprocess.run(["bash", "-c", script], cwd=ROOT, capture_output=True, text=True, check=False)
        assert (done.returncode, done.stderr) == (0, ""), script
    etc, files = tmp_path / "etc", ROOT / "deploy" / "cluster"
    settings = (etc / "default/etcd").read_text("utf-8")
    assert "\nETCD_NAME=db1\n" in settings
    assert "\nETCD_LISTEN_PEER_URLS=http://10.0.0.11:2380\n" in settings
    patroni = (etc / "patroni.yml").read_text("utf-8")
    assert "\nname: db1\n" in patroni
    assert patroni.count("10.0.0.11:") == 5  # four lines of its own, and one of etcd's hosts
    assert "ADDRESS:" not in patroni
    assert (etc / "haproxy/haproxy.cfg").read_bytes() == (files / "haproxy-front.cfg").read_bytes()
    assert (etc / "haproxy/unavailable.http").exists()
    assert (etc / "systemd/system/patroni.service").exists()


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
