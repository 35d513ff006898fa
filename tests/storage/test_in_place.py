"""Heartbeats update their rows in place on PostgreSQL (HOT), without writing an index."""

import asyncpg
import pytest
from benchmarks import generate
from benchmarks.generate import Amounts

from profilesvc.domain.time import HOUR, MINUTE
from profilesvc.services.context import Services
from profilesvc.storage import heartbeats
from profilesvc.storage.heartbeats import Beat
from support.database.citus import on_one_server

_TABLES = ["connections", "contacts"]
# Of a transaction and of earlier ones that PostgreSQL has not yet added to the statistics of all sessions.
_UPDATES = "SELECT relname, n_tup_upd, n_tup_hot_upd FROM pg_stat_xact_all_tables WHERE relid = ANY($1::regclass[])"


async def in_place(database: asyncpg.Connection, beats: list[Beat]) -> dict[str, float]:
    """Record heartbeats in one transaction; the share of updates that were in place, by table."""
    for table in _TABLES:  # packs the rows as closely as the table allows
        await database.execute(f"VACUUM FULL ANALYZE {table}")
    async with database.transaction():
        before = await updates(database)
        for step in heartbeats.recording("postgresql", beats):
            await database.executemany(step.sql, step.rows)
        after = await updates(database)
    return {table: (after[table][1] - before[table][1]) / (after[table][0] - before[table][0]) for table in _TABLES}


async def updates(database: asyncpg.Connection) -> dict[str, tuple[int, int]]:
    """The updates so far and those in place, by table."""
    return {table: (count, hot) for table, count, hot in await database.fetch(_UPDATES, _TABLES)}


@on_one_server
@pytest.mark.parametrize("database", [pytest.param("postgres", marks=pytest.mark.postgres)])
async def test_heartbeats_are_updates_in_place(services: Services, request: pytest.FixtureRequest) -> None:
    await generate.load(services, Amounts(keys=1_000, posts=0, history=0), seed=1)
    name, now = services.storage.engine.url.database, services.clock.now()
    database = await asyncpg.connect(user="postgres", database=name, host=request.getfixturevalue("postgres").host)
    try:
        sites = "SELECT owner_id, key_id FROM connections WHERE last_heartbeat_at > $1 ORDER BY key_id"
        keys = (await database.fetch(sites, now - HOUR))[::8]
        beats = [Beat(owner, key, now, "2.4.1") for owner, key in keys]
        shares = await in_place(database, beats)
        assert min(shares.values()) > 0.95, shares
        await database.execute("CREATE INDEX ix_for_a_moment ON contacts (ended_at)")
        later = [beat._replace(last_heartbeat_at=now + MINUTE) for beat in beats]
        assert (await in_place(database, later))["contacts"] == 0, "the control"
    finally:
        await database.execute("DROP INDEX IF EXISTS ix_for_a_moment")
        await database.close()
