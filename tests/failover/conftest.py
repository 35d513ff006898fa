"""A cluster for all tests of this folder, whole and synchronous before each."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from failover.callers import Load
from support.database.cluster import Cluster, missing, running


@pytest.fixture(scope="session")
def started() -> Iterator[Cluster]:
    absent = missing()
    if absent:
        pytest.skip(f"not here: {', '.join(absent)} (`make failover` installs the programs)")
    with running() as cluster:
        yield cluster


@pytest.fixture(scope="session")
def alice(started: Cluster) -> str:
    return started.user_token("alice@example.com")


@pytest.fixture
def cluster(started: Cluster) -> Cluster:
    started.restore()
    return started


@pytest.fixture
def direct(cluster: Cluster) -> Iterator[None]:
    """The services reach the databases by a URL with several hosts instead of HAProxy."""
    cluster.reach_databases(directly=True)
    yield
    cluster.reach_databases(directly=False)


@pytest.fixture
def load(cluster: Cluster, alice: str, request: pytest.FixtureRequest) -> Iterator[Load]:
    """The callers, at work; the figures of the test go to build/failover.txt."""
    callers = Load(cluster.url, [f"http://{host.address}:8000" for host in cluster.apps], alice)
    callers.start()
    yield callers
    callers.close()
    with Path(__file__).parents[2].joinpath("build", "failover.txt").open("a", encoding="utf-8") as report:
        report.write(f"{request.node.name}: {callers.record.summary}\n")
