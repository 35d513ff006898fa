"""A database host whose disk is gone: its successor joins by the commands of docs/high-availability.md."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from failover.callers import Load
from support.database.cluster import FILES, Cluster
from support.pages.blocks import proven_by

pytestmark = pytest.mark.failover
PAGE = "docs/high-availability.md"
WELL_SECONDS = 60.0
DEAD_SECONDS = 8.0 * (2.0 if "CI" in os.environ else 1.0)


def test_a_database_host_that_is_gone_is_replaced(cluster: Cluster, load: Load, tmp_path: Path) -> None:
    removal, state = (block.text for block in proven_by(PAGE, "test_a_database_host_that_is_gone_is_replaced"))
    primary = cluster.primary()
    lost = next(host for host in reversed(cluster.databases) if host is not primary)
    load.harm(lost.kill)
    load.recover(WELL_SECONDS)
    for name in ("data", "etcd"):
        shutil.rmtree(lost.folder / name)
    for old, new in {"10.0.0.11": primary.address, "10.0.0.13": lost.address, "db3": lost.name}.items():
        assert old in removal
        removal = removal.replace(old, new)
    script = f"apt-get() {{ :; }}\n{removal}"
    subprocess.run([*cluster.network.within(primary.name), "bash", "-euc", script], check=True)
    shutil.copy(FILES / "etcd", tmp_path)
    subprocess.run(["bash", "-euc", state.replace("/etc/default/etcd", "etcd")], cwd=tmp_path, check=True)
    cluster.join(lost, tmp_path / "etcd")
    cluster.restore()
    load.stop()
    assert load.record.lost == []
    assert load.record.wrong == []
    assert load.gap <= DEAD_SECONDS, load.record.summary
