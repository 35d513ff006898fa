"""The nodes of a Citus cluster, as the node that the service is connected to knows them."""

from collections.abc import Iterable
from typing import NamedTuple

from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

_CONNECT_SECONDS = 1  # a node that was frozen or cut off does not reject connections
CONNECTION = "that it runs, its pg_hba.conf and log, and .pgpass on the node that PROFILESVC_DATABASE_URL names"
_IS_CITUS = text("SELECT count(*) > 0 FROM pg_extension WHERE extname = 'citus'")
_IS_COORDINATOR = text("SELECT groupid = 0 FROM pg_dist_local_group")
_HAS_COORDINATOR = text("SELECT count(*) > 0 FROM pg_dist_node WHERE groupid = 0")
_HAS_SHARDS = text("SELECT count(*) > 0 FROM pg_dist_node WHERE shouldhaveshards AND isactive")
_OTHERS = "noderole = 'primary' AND isactive AND groupid <> (SELECT groupid FROM pg_dist_local_group)"
_WITHOUT_RESPONSE = text(
    f"SELECT format('%s:%s', nodename, nodeport) FROM pg_dist_node WHERE {_OTHERS} "  # noqa: S608  constants
    "AND NOT citus_check_connection_to_node(nodename, nodeport) ORDER BY 1"
)
_INACTIVE = text("SELECT format('%s:%s', nodename, nodeport) FROM pg_dist_node WHERE NOT isactive ORDER BY 1")
_EVERY = text(
    "SELECT format('%s:%s', nodename, nodeport) AS name, success, result, metadatasynced AS is_synced, "
    "format('SELECT start_metadata_sync_to_node(%L, %s)', nodename, nodeport) AS syncing "
    "FROM run_command_on_all_nodes('SELECT extversion FROM pg_extension WHERE extname = ''citus''', "
    "give_warning_for_connection_errors => true) JOIN pg_dist_node USING (nodeid) ORDER BY 1"
)


class Node(NamedTuple):
    """A node: whether it responded, the version of the extension there or an error, and whether it knows the tables."""

    name: str
    success: bool
    result: str | None
    is_synced: bool
    syncing: str


async def is_citus(engine: AsyncEngine) -> bool:
    """Return whether the database has the extension."""
    if engine.dialect.name != "postgresql":
        return False
    async with engine.connect() as connection:
        return await _is(connection, _IS_CITUS)


async def is_worker(engine: AsyncEngine) -> bool:
    """Return whether the database is a worker of a cluster, where tables cannot be changed."""
    if not await is_citus(engine):
        return False
    async with engine.connect() as connection:
        return not await _is(connection, _IS_COORDINATOR)


async def without_response(engine: AsyncEngine) -> list[str] | None:
    """Return the other nodes that do not respond, as `host:port`; None if this is no cluster."""
    if not await is_citus(engine):
        return None
    async with engine.begin() as connection:
        await connection.exec_driver_sql(f"SET LOCAL citus.node_connection_timeout = '{_CONNECT_SECONDS}s'")
        return list((await connection.execute(_WITHOUT_RESPONSE)).scalars())


async def inactive(engine: AsyncEngine) -> list[str]:
    """Return the nodes of a cluster that get no shards because they are not active, as `host:port`."""
    async with engine.connect() as connection:
        return list((await connection.execute(_INACTIVE)).scalars())


async def problem(engine: AsyncEngine) -> str | None:
    """Return why this connection cannot change the tables of a cluster, with the remedy; None if it can."""
    async with engine.connect() as connection:
        if not await _is(connection, _IS_CITUS):
            return (
                "the database has no extension citus: on each node run CREATE DATABASE, and in that database "
                "CREATE EXTENSION citus"
            )
        if not await _is(connection, _IS_COORDINATOR):
            return "this node is a worker: set PROFILESVC_DATABASE_URL to the coordinator"
        if not await _is(connection, _HAS_COORDINATOR):
            return "the workers do not know the coordinator: run SELECT citus_set_coordinator_host('HOST', PORT) in it"
        if not await _is(connection, _HAS_SHARDS):
            return "there is no worker: run SELECT citus_add_node('HOST', PORT) for each, in this database"
        return first_problem(Node(*row) for row in await connection.execute(_EVERY))


def first_problem(nodes: Iterable[Node]) -> str | None:
    """Return the first problem with the nodes."""
    versions: dict[str, str] = {}
    for node in nodes:
        if not node.success:
            why = (node.result or "no reason given").splitlines()[0]
            return f"the node {node.name} does not respond or rejects the login: {why}; check {CONNECTION}"
        if not node.result:
            return f"the node {node.name} has no extension citus: run CREATE EXTENSION citus in its database"
        if not node.is_synced:
            return f"the node {node.name} does not know the tables: run {node.syncing}"
        versions[node.result] = node.name
    if len(versions) > 1:
        listed = ", ".join(f"{version} at {name}" for version, name in sorted(versions.items()))
        return f"the versions of the extension differ ({listed}): run ALTER EXTENSION citus UPDATE on each node"
    return None


async def _is(connection: AsyncConnection, query: object) -> bool:
    return bool((await connection.execute(query)).scalar_one())  # type: ignore[call-overload]
