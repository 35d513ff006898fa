"""Hosts that fail under load: nothing that was acknowledged is lost, and the service recovers by itself."""

import os
import signal
from collections.abc import Callable
from functools import partial

import pytest

from failover.callers import Load
from support.database.cluster import Cluster, kill_postgres
from support.database.hosts import Host

pytestmark = pytest.mark.failover
ROUNDS = range(int(os.environ.get("PROFILESVC_FAILOVER_ROUNDS", "1")))
# CI shares its processors, and six hosts run on them: there the times may be twice as long. What is lost may not.
SLOWER = 2.0 if "CI" in os.environ else 1.0
TTL_SECONDS = 20  # of deploy/cluster/patroni.yml
DEAD_SECONDS = 8.0 * SLOWER  # for a process that has died on a host that is well
STALLED_SECONDS = 1.0  # in which a primary cannot confirm anything, before it dies
CUT_SECONDS = (TTL_SECONDS + 5) * SLOWER
WELL_SECONDS = 30.0 * SLOWER
ROLLING_SECONDS = 240.0 * SLOWER
AWAKE_SECONDS = 3.0  # in which a primary that wakes up could serve old data
NO_ETCD_SECONDS = 30.0  # longer than the lock of the primary is valid


Heal = Callable[[], None]


def fail_over(
    cluster: Cluster, load: Load, harm: Callable[[Host], Heal | None], within: float, *, leads_etcd: bool = False
) -> None:
    """Harm the primary, and heal it once another host has taken over; check everything when the cluster is whole.

    If it also leads etcd, the next leader starts all locks again.
    """
    before = cluster.primary()
    if leads_etcd:
        cluster.lead_etcd(before)
    heal = load.harm(lambda: harm(before))
    try:
        load.recover(WELL_SECONDS)
    finally:
        if heal is not None:
            heal()
    load.wait(AWAKE_SECONDS if heal else 0)
    assert cluster.primary().name != before.name
    finish(cluster, load, within)


def finish(cluster: Cluster, load: Load, within: float) -> None:
    """Check everything when the cluster is whole again."""
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
    fail_over(cluster, load, Host.kill, CUT_SECONDS, leads_etcd=turn % 2 == 0)


def kill_without_replication(cluster: Cluster, load: Load, host: Host) -> None:
    """Kill PostgreSQL a while after it has last sent something to its standbys."""
    for process in host.processes("postgres"):
        if "walsender" in " ".join(process.cmdline()):
            process.suspend()
    load.wait(STALLED_SECONDS)
    kill_postgres(host)


@pytest.mark.parametrize("turn", ROUNDS)
def test_writes_that_the_standby_lacks_were_not_acknowledged(cluster: Cluster, load: Load, turn: int) -> None:
    within = STALLED_SECONDS + DEAD_SECONDS
    fail_over(cluster, load, lambda host: kill_without_replication(cluster, load, host), within)


def test_a_failover_that_is_delayed_exceeds_the_limit(cluster: Cluster, load: Load) -> None:
    """The control: the test before this one fails if Patroni does nothing for as long as the limit allows."""
    before, within = cluster.primary(), STALLED_SECONDS + DEAD_SECONDS

    def harm() -> list[Heal]:
        delayed = [host.freeze("patroni") for host in cluster.databases]
        kill_without_replication(cluster, load, before)
        return delayed

    delayed = load.harm(harm)
    load.wait(within)
    for heal in delayed:
        heal()
    load.recover(within + WELL_SECONDS)
    with pytest.raises(AssertionError, match="without writes"):
        finish(cluster, load, within)
    assert load.record.lost == []


def test_asynchronous_replication_loses_writes(cluster: Cluster, load: Load) -> None:
    """The control: the test of writes that the standby lacks fails on a cluster that does not wait for it."""
    cluster.replicate(synchronous=False)
    try:
        before = cluster.primary()
        load.harm(lambda: kill_without_replication(cluster, load, before))
        load.recover(WELL_SECONDS, "heartbeat")  # other callers end because what they rely on is lost
        load.stop()
        assert load.record.lost
    finally:
        cluster.replicate(synchronous=True)


def cut(cluster: Cluster, host: Host) -> Heal:
    """Cut a host off."""
    cluster.network.cut(host.name)
    return partial(cluster.network.heal, host.name)


@pytest.mark.parametrize("turn", ROUNDS)
def test_a_host_that_is_cut_off_loses_nothing(cluster: Cluster, load: Load, turn: int) -> None:
    if not cluster.network.can_be_cut:
        pytest.skip("the network of a host can be cut only where the tests may create network namespaces")
    fail_over(cluster, load, partial(cut, cluster), CUT_SECONDS, leads_etcd=turn % 2 == 0)


@pytest.mark.parametrize("programs", [("postgres",), ("postgres", "patroni"), ()], ids=["server", "database", "host"])
@pytest.mark.parametrize("turn", ROUNDS)
def test_a_primary_that_was_frozen_serves_no_old_data(
    cluster: Cluster, load: Load, turn: int, programs: tuple[str, ...]
) -> None:
    fail_over(cluster, load, lambda host: host.freeze(*programs), CUT_SECONDS, leads_etcd=turn % 2 == 0)


@pytest.mark.parametrize("turn", ROUNDS)
def test_the_primary_continues_without_etcd(cluster: Cluster, load: Load, turn: int) -> None:
    before = cluster.primary()

    def stop_all() -> None:
        for host in cluster.databases:
            host.stop("etcd", signal.SIGKILL)

    load.harm(stop_all)
    load.wait(NO_ETCD_SECONDS)
    load.recover(NO_ETCD_SECONDS + WELL_SECONDS)
    assert cluster.primary().name == before.name
    finish(cluster, load, DEAD_SECONDS)


@pytest.mark.parametrize("turn", ROUNDS)
def test_a_lost_leader_of_etcd_changes_nothing(cluster: Cluster, load: Load, turn: int) -> None:
    """The other two elect one."""
    before = cluster.primary()
    leader = cluster.etcd_leader()
    load.harm(lambda: leader.stop("etcd", signal.SIGKILL))
    load.wait(NO_ETCD_SECONDS)
    load.recover(NO_ETCD_SECONDS + WELL_SECONDS)
    assert cluster.primary().name == before.name
    finish(cluster, load, DEAD_SECONDS)


@pytest.mark.parametrize("turn", ROUNDS)
def test_a_lost_standby_is_left_out(cluster: Cluster, load: Load, turn: int) -> None:
    primary, (lost, other) = cluster.primary(), cluster.synchronous()
    load.harm(lost.kill)
    load.recover(WELL_SECONDS)
    assert cluster.synchronous() == [other]
    assert cluster.primary().name == primary.name
    finish(cluster, load, DEAD_SECONDS)


@pytest.mark.parametrize("turn", ROUNDS)
def test_a_lost_app_host_loses_nothing(cluster: Cluster, load: Load, turn: int) -> None:
    """HAProxy repeats reads. It closes the connection of a write without a response, and the caller repeats that."""
    load.record.may_lose_connections = True
    load.harm(cluster.apps[0].kill)
    load.recover(WELL_SECONDS)
    finish(cluster, load, DEAD_SECONDS)


@pytest.mark.usefixtures("direct")
@pytest.mark.parametrize("turn", ROUNDS)
def test_a_url_with_several_hosts_finds_the_new_primary(cluster: Cluster, load: Load, turn: int) -> None:
    fail_over(cluster, load, kill_postgres, DEAD_SECONDS)


@pytest.mark.parametrize("turn", ROUNDS)
def test_everything_restarts_one_after_the_other(cluster: Cluster, load: Load, turn: int) -> None:
    load.harm(cluster.restart_everything)
    load.recover(ROLLING_SECONDS)
    finish(cluster, load, DEAD_SECONDS)
