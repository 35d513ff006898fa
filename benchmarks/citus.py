"""`python -m benchmarks.citus`: CPU of requests and statements on a Citus cluster, relative to plain PostgreSQL.

PROFILESVC_TEST_CITUS_URL names a database of the coordinator, as for the tests. All nodes must be on this machine. The
plain database is on the coordinator's server, so version, settings and transport are the same. Databases count with the
CPU of their sessions, and not with that of the server's background processes.
"""

import argparse
import asyncio
import os
import statistics
import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import NamedTuple

import asyncpg
import psutil
from sqlalchemy import URL, make_url

from benchmarks import load
from benchmarks.measure import Figures, in_turn, once
from benchmarks.servers import SERVE, Server
from benchmarks.work import TITLES, WORKS, Access, Request, check, request_of
from benchmarks.world import OWNER_ID, prepare_service, service_environment
from profilesvc.database import migrate, time_limits
from profilesvc.database.engine import create_engine
from profilesvc.storage.tables import distribution

PLAIN, DISTRIBUTED = "bench_plain", "bench_citus"
_SHARD = "SELECT get_shard_id_for_distribution_column('users', $1::bigint)"
_PORT = "SELECT nodeport FROM pg_dist_shard_placement WHERE shardid = $1"
# The cheapest statements that there are: a row by its primary key, and the same as a change.
_STATEMENTS = {
    "SELECT by primary key": "SELECT name FROM locations WHERE owner_id = $1::bigint AND name = $2::varchar",
    "UPDATE by primary key": "UPDATE locations SET posts_read_at = posts_read_at "
    "WHERE owner_id = $1::bigint AND name = $2::varchar",
    "SELECT with a join": "SELECT title, plan FROM locations JOIN users ON users.id = locations.owner_id "
    "WHERE locations.owner_id = $1::bigint AND locations.name = $2::varchar",
}
_VALUES = (OWNER_ID, "locations/111")


class Place(NamedTuple):
    """A way to the same data: a name, the URL there, and the databases whose sessions do the work."""

    name: str
    url: URL
    database: str


class Nodes:
    """The servers of the cluster, the coordinator first."""

    def __init__(self, url: URL) -> None:
        self._url = url.set(drivername="postgresql")
        self.addresses: list[tuple[str, int]] = []
        self._folders: list[Path] = []

    def at(self, database: str, node: int = 0) -> URL:
        """Return the URL of a database on a node."""
        host, port = self.addresses[node]
        return self._url.set(host=host, port=port, database=database)

    async def open(self) -> None:
        """Find the nodes and their folders, and create the databases."""
        first = await asyncpg.connect(self._url.render_as_string(hide_password=False))
        rows = await first.fetch("SELECT nodename, nodeport FROM pg_dist_node ORDER BY groupid")
        await first.close()
        self.addresses = [tuple(row) for row in rows]
        for node in range(len(self.addresses)):
            server = await connected(self.at("postgres", node))
            self._folders.append(Path(await server.fetchval("SHOW data_directory")))
            for name in (PLAIN, DISTRIBUTED) if node == 0 else (DISTRIBUTED,):
                await server.execute(f"DROP DATABASE IF EXISTS {name} WITH (FORCE)")
                await server.execute(f"CREATE DATABASE {name}")
            await server.close()
            database = await connected(self.at(DISTRIBUTED, node))
            await database.execute("CREATE EXTENSION citus")
            await database.close()
        coordinator = await connected(self.at(DISTRIBUTED))
        await coordinator.execute("SELECT citus_set_coordinator_host($1, $2)", *self.addresses[0])
        for address in self.addresses[1:]:
            await coordinator.execute("SELECT citus_add_node($1, $2)", *address)
        await coordinator.close()

    async def close(self) -> None:
        """Delete the databases."""
        for node in range(len(self.addresses)):
            server = await connected(self.at("postgres", node))
            for name in (PLAIN, DISTRIBUTED):
                await server.execute(f"DROP DATABASE IF EXISTS {name} WITH (FORCE)")
            await server.close()

    def cpu(self, database: str) -> float:
        """Return the CPU seconds of all sessions of a database, on all nodes."""
        return sum(_seconds(process) for process in self._sessions(database))

    def _sessions(self, database: str) -> Iterator[psutil.Process]:
        for folder in self._folders:
            master = psutil.Process(int((folder / "postmaster.pid").read_text().splitlines()[0]))
            for process in master.children():
                with suppress(psutil.NoSuchProcess):
                    if f" {database} " in " ".join(process.cmdline()):  # the title of a session
                        yield process


async def connected(url: URL) -> asyncpg.Connection:
    """Connect as the tests do."""
    return await asyncpg.connect(url.render_as_string(hide_password=False))


def _seconds(process: psutil.Process) -> float:
    """Return the CPU seconds of a process, more exactly than in ticks of 10 ms."""
    try:
        return int(Path(f"/proc/{process.pid}/schedstat").read_text().split()[0]) / 1e9
    except FileNotFoundError:  # the session has ended
        return 0.0


async def _places(nodes: Nodes, folder: Path) -> tuple[list[Place], Access, Access]:
    """Fill both databases, and return the ways to them and the credentials for each."""
    driver = {"drivername": "postgresql+asyncpg"}
    urls = [nodes.at(name).set(**driver) for name in (PLAIN, DISTRIBUTED)]  # type: ignore[arg-type]
    accesses = []
    for url in urls:
        text = url.render_as_string(hide_password=False)
        engine = create_engine(text, 1, patient=True)
        await migrate.upgrade(engine)
        if url.database == DISTRIBUTED:
            await distribution.distribute(engine)
        assert not await time_limits.ensure(engine)
        await engine.dispose()
        (folder / str(url.database)).mkdir()
        accesses.append(await prepare_service(service_environment(folder / str(url.database), text)))
    database = await connected(nodes.at(DISTRIBUTED))
    port = await database.fetchval(_PORT, await database.fetchval(_SHARD, OWNER_ID))
    await database.close()
    home = [each for _, each in nodes.addresses].index(port)
    places = [
        Place("PostgreSQL", urls[0], PLAIN),
        Place("the coordinator", urls[1], DISTRIBUTED),
        Place("the owner's worker", nodes.at(DISTRIBUTED, home).set(**driver), DISTRIBUTED),  # type: ignore[arg-type]
    ]
    return places, accesses[0], accesses[1]


def _request(nodes: Nodes, place: Place, server: Server, request: Request, seconds: float, connections: int) -> Figures:
    """Measure a run with the databases: `cpu` is together."""
    before = nodes.cpu(place.database)
    figures = once(server, request, seconds, None, connections)
    database = (nodes.cpu(place.database) - before) / max(figures["rate"] * seconds, 1) * 1e6
    return {**figures, "process": figures["cpu"], "database": database, "cpu": figures["cpu"] + database}


def _requests(nodes: Nodes, places: list[Place], accesses: list[Access], options: argparse.Namespace) -> None:
    print("\n| Work | Connected to | The process | The databases | Together | p50, ms |\n|---|---|---|---|---|---|")
    with ExitStack() as stack:
        servers = []
        for place in places:
            folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="bench-")))
            environment = service_environment(folder, place.url.render_as_string(hide_password=False))
            servers.append(stack.enter_context(Server(SERVE, environment, None, folder)))
        for access, server in zip(accesses, servers, strict=True):
            check("heartbeat", server.port, request_of("heartbeat", access))  # then a status is online
        for work in options.works.split(","):
            runs: dict[str, Callable[[], Figures]] = {}
            for place, access, server in zip(places, accesses, servers, strict=True):
                request = request_of(work, access)
                check(work, server.port, request)
                runs[place.name] = partial(
                    _request, nodes, place, server, request, options.seconds, options.connections
                )
            results = in_turn(runs, options.rounds)
            first = results[places[0].name]
            for name, found in results.items():
                parts = ("process", "database", "cpu")
                cells = " | ".join(f"{found[part]:.0f} µs, {found[part] / first[part]:.1f} ×" for part in parts)
                print(f"| {TITLES[work]} | {name} | {cells} | {found['p50']:.1f} |", flush=True)


async def _statement(nodes: Nodes, place: Place, statement: str, count: int) -> float:
    """Return the CPU of the databases for a statement that is prepared once, in µs."""
    connection = await connected(place.url.set(drivername="postgresql"))
    prepared = await connection.prepare(statement)
    for _ in range(20):
        await prepared.fetch(*_VALUES)
    before = nodes.cpu(place.database)
    for _ in range(count):
        await prepared.fetch(*_VALUES)
    spent = nodes.cpu(place.database) - before
    await connection.close()
    return spent / count * 1e6


async def _statements(nodes: Nodes, places: list[Place], options: argparse.Namespace) -> None:
    print(f"\n| Statement, prepared | {' | '.join(place.name for place in places)} |\n|---|---|---|---|")
    for name, statement in _STATEMENTS.items():
        rounds = [
            [await _statement(nodes, place, statement, options.executions) for place in places]
            for _ in range(options.rounds)
        ]
        medians = [statistics.median(found) for found in zip(*rounds, strict=True)]
        cells = [f"{median:.0f} µs, {median / medians[0]:.1f} ×" for median in medians]
        print(f"| {name} | {' | '.join(cells)} |", flush=True)


@contextmanager
def _cluster(url: str) -> Iterator[Nodes]:
    nodes = Nodes(make_url(url))
    try:
        asyncio.run(nodes.open())
        yield nodes
    finally:
        asyncio.run(nodes.close())


def main() -> None:
    """Measure, and print the tables."""
    parser = argparse.ArgumentParser(prog="benchmarks.citus", description=__doc__)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=3)
    parser.add_argument("--connections", type=int, default=1, help="callers that each wait for their response")
    parser.add_argument("--executions", type=int, default=500, help="of each statement in a round")
    parser.add_argument("--works", default=",".join(WORKS))
    options = parser.parse_args()
    print(f"load generator: {load.tool()}")
    url = os.environ.pop("PROFILESVC_TEST_CITUS_URL")  # no setting of the service
    with tempfile.TemporaryDirectory(prefix="bench-") as folder, _cluster(url) as nodes:
        places, plain, distributed = asyncio.run(_places(nodes, Path(folder)))
        asyncio.run(_statements(nodes, places, options))
        _requests(nodes, places, [plain, distributed, distributed], options)


if __name__ == "__main__":
    main()
