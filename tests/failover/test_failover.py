"""A primary that is killed under load: nothing that was acknowledged is lost, and the service recovers by itself."""

from collections.abc import Callable

import pytest

from support.database_cluster import Cluster
from support.effort import effort
from support.failover_callers import Load
from support.hosts import Host

pytestmark = pytest.mark.failover
ROUNDS = range(effort(1, 50))
TTL_SECONDS = 20  # of deploy/cluster/patroni.yml
DEAD_SECONDS = 8.0  # for a process that has died on a host that is well
WELL_SECONDS = 30.0


def kill_postgres(host: Host) -> None:
    """End PostgreSQL with all its processes; Patroni goes on."""
    for process in host.processes("postgres"):
        if process.name() == "postgres":
            process.kill()


def fail_over(cluster: Cluster, load: Load, harm: Callable[[Host], None], within: float) -> None:
    """Harm the primary; check everything once another host has taken over and the cluster is whole."""
    before = cluster.primary()
    load.harm(lambda: harm(before))
    load.recover(WELL_SECONDS)
    assert cluster.primary().name != before.name
    cluster.restore()
    load.stop()
    assert load.record.lost == []
    assert load.record.wrong == []
    assert load.gap <= within, load.record.summary


@pytest.mark.parametrize("turn", ROUNDS)
def test_a_killed_primary_loses_nothing(cluster: Cluster, load: Load, turn: int) -> None:
    fail_over(cluster, load, kill_postgres, DEAD_SECONDS)


@pytest.mark.parametrize("turn", ROUNDS)
def test_a_host_without_power_loses_nothing(cluster: Cluster, load: Load, turn: int) -> None:
    fail_over(cluster, load, Host.kill, TTL_SECONDS + 5)


def kill_without_replication(cluster: Cluster, load: Load, host: Host) -> None:
    """Kill PostgreSQL a while after it has last sent something to its standbys."""
    for process in host.processes("postgres"):
        if "walsender" in " ".join(process.cmdline()):
            process.suspend()
    load.wait(1)
    kill_postgres(host)


@pytest.mark.parametrize("turn", ROUNDS)
def test_writes_that_the_standby_lacks_were_not_acknowledged(cluster: Cluster, load: Load, turn: int) -> None:
    fail_over(cluster, load, lambda host: kill_without_replication(cluster, load, host), DEAD_SECONDS + 1)


def test_asynchronous_replication_loses_writes(cluster: Cluster, load: Load) -> None:
    """The control: the test before this one fails on a cluster that does not wait for its standby."""
    cluster.replicate(synchronous=False)
    try:
        before = cluster.primary()
        load.harm(lambda: kill_without_replication(cluster, load, before))
        load.recover(WELL_SECONDS, "heartbeat")  # other callers end because what they rely on is lost
        load.stop()
        assert load.record.lost
    finally:
        cluster.replicate(synchronous=True)
