"""The distribution of tables on Citus: those of tenants by owner, directories by what they are asked by (D-101).

Every step can be repeated: what is missing is read from the metadata of Citus, so that the next run completes one that
was interrupted, and distributes the tables of new migrations.
"""

import math
from collections.abc import Callable
from typing import NamedTuple

from sqlalchemy import bindparam, text
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from profilesvc.contract.errors import CONFLICT
from profilesvc.database import nodes
from profilesvc.database.leases import in_database
from profilesvc.database.migrate import LIMITS
from profilesvc.domain.errors import ServiceError
from profilesvc.storage.tables import metadata
from profilesvc.storage.tables.directories import DIRECTORIES, REFERENCES

SHARDS = 32
_FIRST = "users"
_REVISION = "alembic_version"  # every process reads it, whichever node it is connected to
_DISTRIBUTED = text("SELECT CAST(CAST(logicalrelid AS regclass) AS text) FROM pg_dist_partition")
_WITH_OWN_TABLES = text(
    "SELECT format('%s:%s', nodename, nodeport) FROM run_command_on_workers("  # noqa: S608  a constant
    f"'SELECT to_regclass(''{_REVISION}'') IS NOT NULL') WHERE success AND result = 't' ORDER BY 1"
)
# What is left of the rows in the table itself, which were copied to shards and are hidden. A table may have partitions.
_HIDDEN = text(
    "SELECT relname FROM pg_class WHERE oid IN (SELECT CAST(logicalrelid AS oid) FROM pg_dist_partition) "
    "AND relname IN :names AND pg_relation_size(oid) + COALESCE((SELECT sum(pg_relation_size(part.relid)) "
    "FROM pg_partition_tree(oid) AS part), 0) > 0 ORDER BY relname"
).bindparams(bindparam("names", expanding=True))


class Step(NamedTuple):
    """A change of a table, and its statement."""

    table: str
    action: str
    statement: str


def steps(shards: int) -> list[Step]:
    """Return the steps of an empty cluster; users first, because the tables of tenants are placed with that table."""
    rows = [
        Step(name, "copy to every node", f"SELECT create_reference_table('{name}')")
        for name in (_REVISION, *sorted(REFERENCES))
    ]
    names = [table.name for table in metadata.sorted_tables if table.name not in REFERENCES]
    for name in sorted(names, key=lambda name: name != _FIRST):
        column = "id" if name == _FIRST else DIRECTORIES.get(name, "owner_id")
        alone = name == _FIRST or name in DIRECTORIES
        where = f"colocate_with => 'none', shard_count => {shards}" if alone else f"colocate_with => '{_FIRST}'"
        statement = f"SELECT create_distributed_table('{name}', '{column}', {where})"
        rows.append(Step(name, f"distribute by {column}", statement))
    return rows


async def missing(engine: AsyncEngine, shards: int = SHARDS) -> list[Step]:
    """Return the steps that are not done yet.

    Raises:
        ServiceError: CONFLICT if the database is not the coordinator of a cluster whose nodes all respond.
    """
    if engine.dialect.name != "postgresql":
        raise ServiceError(CONFLICT, "SQLite cannot be distributed: set PROFILESVC_DATABASE_URL to a Citus cluster.")
    if (problem := await nodes.problem(engine)) is not None:
        raise ServiceError(CONFLICT, f"The tables cannot be distributed: {problem}.")
    async with engine.connect() as connection:
        done = await _distributed(connection)
        if not done and (own := list((await connection.execute(_WITH_OWN_TABLES)).scalars())):
            what = "`db upgrade` ran on it. Delete its tables"
            raise ServiceError(CONFLICT, f"The tables cannot be distributed: {own[0]} has its own, because {what}.")
    return [step for step in steps(shards) if step.table not in done]


async def is_distributed(engine: AsyncEngine) -> bool:
    """Return whether the tables of tenants are distributed."""
    if not await nodes.is_citus(engine):
        return False
    async with engine.connect() as connection:
        return _FIRST in await _distributed(connection)


async def left(engine: AsyncEngine) -> int:
    """Return how many tables of a cluster are not distributed, as any node knows it."""
    async with engine.connect() as connection:
        done = await _distributed(connection)
    return sum(step.table not in done for step in steps(SHARDS))


async def _distributed(connection: AsyncConnection) -> set[str]:
    return set((await connection.execute(_DISTRIBUTED)).scalars())


async def distribute(
    engine: AsyncEngine, shards: int = SHARDS, report: Callable[[Step], None] = lambda _step: None
) -> list[Step]:
    """Do the missing steps, each in its own transaction, and return them. Rows that are there are copied to shards.

    `report` is called after each step.

    Raises:
        ServiceError: CONFLICT as `missing` does, SERVICE_UNAVAILABLE.
    """
    await missing(engine, shards)  # before a lease of a database that cannot be distributed
    async with in_database(engine) as leases, leases.hold("migration", math.inf):
        created = await missing(engine, shards)
        for step in created:
            await _do(engine, step)
            report(step)
        async with engine.connect() as connection:
            names = [table.name for table in metadata.sorted_tables]
            hidden = list((await connection.execute(_HIDDEN, {"names": names})).scalars())
        copies = [
            Step(name, "delete the copied rows", f"SELECT truncate_local_data_after_distributing_table('{name}')")
            for name in hidden
        ]
        for step in copies:
            await _do(engine, step)
            report(step)
    return [*created, *copies]


async def _do(engine: AsyncEngine, step: Step) -> None:
    async with engine.begin() as connection:
        for setting in (*LIMITS, "SET LOCAL lock_timeout = 0"):  # copying a large table takes long
            await connection.exec_driver_sql(setting)
        await connection.exec_driver_sql(step.statement)
