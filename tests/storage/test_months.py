"""Partitions of a month on PostgreSQL: created before their time, dropped after it, and never missed by an insert."""

import asyncio
import json
import logging
import uuid
from collections.abc import AsyncIterator, Iterator
from typing import Any

import asyncpg
import pytest
from sqlalchemy import Connection, inspect, make_url, text
from sqlalchemy.exc import IntegrityError
from sqlalchemy.ext.asyncio import AsyncEngine

from conftest import ON_POSTGRES, START, Postgres
from profilesvc.contract.audit import AuditQuery
from profilesvc.database import migrate, nodes
from profilesvc.database.engine import create_engine
from profilesvc.domain.time import DAY, HOUR, month_start, parse_iso
from profilesvc.operations import housekeeping
from profilesvc.services import audit
from profilesvc.services.audit import PendingEvents
from profilesvc.services.context import Services
from profilesvc.storage import sync
from profilesvc.storage.tables import partitions
from profilesvc.storage.tables.partitions import MONTHLY, is_partition
from support.api import Site
from support.database.citus import on_one_server
from support.database.partitions import Recorded, recorded

pytestmark = [on_one_server, ON_POSTGRES]
NOW = parse_iso("2026-11-23T12:00:00Z")
COMING = ("2026_11", "2026_12", "2027_01")
LOCATION = "locations/111"


@pytest.fixture
def url(database: str, postgres: Postgres) -> Iterator[str]:
    """A database of its own, because the tables change."""
    name = f"months_{uuid.uuid4().hex}"
    postgres.create(name)
    yield postgres.url(name)
    postgres.drop(name)


@pytest.fixture
async def engine(url: str) -> AsyncIterator[AsyncEngine]:
    made = create_engine(url, 3)
    await migrate.upgrade(made)
    yield made
    await made.dispose()


async def months_of(engine: AsyncEngine, table: str) -> set[str]:
    def names(connection: Connection) -> list[str]:
        return [name for name in inspect(connection).get_table_names() if is_partition(name)]

    async with engine.connect() as connection:
        found = await connection.run_sync(names)
    return {name.removeprefix(f"{table}_") for name in found if name.startswith(f"{table}_")}


async def ran(engine: AsyncEngine, *statements: str) -> None:
    async with engine.begin() as connection:
        for statement in statements:
            await connection.execute(text(statement))


def an_event(at: int, once: str = "NULL") -> str:
    """The statement that inserts an event; foreign keys are off, because there is no user."""
    return (
        "INSERT INTO audit (owner_id, at, month, event, actor, once) "
        f"VALUES (1, {at}, {month_start(at)}, 'user.login', 'user', {once})"
    )


NO_FOREIGN_KEYS = "SET LOCAL session_replication_role = replica"


async def test_the_current_and_two_coming_months_are_created_once(engine: AsyncEngine) -> None:
    assert await months_of(engine, "audit") == {"default"}
    for _ in range(2):
        assert await partitions.renew(engine, NOW) == []
        for table in MONTHLY:
            assert await months_of(engine, table) == {"default", *COMING}
    await migrate.check(engine)


async def test_an_insert_of_another_month_does_not_fail(engine: AsyncEngine) -> None:
    await partitions.renew(engine, NOW)
    for at in (0, NOW, NOW + 1000 * DAY):
        await ran(engine, NO_FOREIGN_KEYS, an_event(at))
    async with engine.connect() as connection:
        query = text("SELECT at, CAST(tableoid::regclass AS text) FROM audit ORDER BY at")
        rows = [tuple(row) for row in await connection.execute(query)]
    assert rows == [(0, "audit_default"), (NOW, "audit_2026_11"), (NOW + 1000 * DAY, "audit_default")]


async def test_a_month_with_rows_elsewhere_gets_no_partition(engine: AsyncEngine) -> None:
    """Its rows stay in the default partition, and the next month has a partition again."""
    await ran(engine, NO_FOREIGN_KEYS, an_event(NOW))
    problem = "the partition audit_2026_11 was not created: the default partition has rows of that month"
    assert await partitions.renew(engine, NOW) == [problem]
    assert await months_of(engine, "audit") == {"default", *COMING[1:]}
    assert await months_of(engine, "syncs") == {"default", *COMING}


async def test_old_months_are_dropped(engine: AsyncEngine) -> None:
    await partitions.renew(engine, NOW, since=NOW - 450 * DAY)
    assert await partitions.renew(engine, NOW, before={"audit": NOW - 400 * DAY}) == []
    assert min(await months_of(engine, "audit")) == "2025_10"
    assert min(await months_of(engine, "syncs")) == "2025_08"


async def test_a_locked_table_is_left_for_the_next_round(engine: AsyncEngine) -> None:
    async with engine.begin() as connection:
        await connection.execute(text("LOCK TABLE audit IN ROW EXCLUSIVE MODE"))
        problems = await partitions.renew(engine, NOW)
    assert problems == [f"the partition audit_{month} was not created: the table was locked" for month in COMING]
    assert await partitions.renew(engine, NOW) == []


async def test_a_role_that_does_not_own_the_tables_is_refused(engine: AsyncEngine) -> None:
    role = f"clerk_{uuid.uuid4().hex}"
    await ran(engine, f"CREATE ROLE {role} LOGIN", f"GRANT CREATE ON SCHEMA public TO {role}")
    clerk = create_engine(make_url(engine.url).set(username=role).render_as_string(hide_password=False), 1)
    try:
        problems = await partitions.renew(clerk, NOW)
    finally:
        await clerk.dispose()
        await ran(engine, f"DROP OWNED BY {role}", f"DROP ROLE {role}")
    assert len(problems) == len(COMING) * len(MONTHLY)
    assert problems[0] == "the partition audit_2026_11 was not created: the role does not own the table"


async def test_two_processes_may_create_them_at_once(engine: AsyncEngine) -> None:
    for month in range(5):
        now = month_start(NOW, 3 * month)
        assert await asyncio.gather(*(partitions.renew(engine, now) for _ in range(3))) == [[], [], []]
    assert len(await months_of(engine, "audit")) == 1 + 5 * len(COMING)


async def test_an_event_is_counted_once_a_month(engine: AsyncEngine) -> None:
    await partitions.renew(engine, NOW)
    await ran(engine, NO_FOREIGN_KEYS, an_event(NOW, "'x'"))
    with pytest.raises(IntegrityError, match="once"):
        await ran(engine, NO_FOREIGN_KEYS, an_event(NOW + HOUR, "'x'"))


async def test_housekeeping_drops_a_month_with_its_rows(services: Services) -> None:
    engine, old = services.storage.engine, START - 500 * DAY
    assert await partitions.renew(engine, old) == []
    created = await months_of(engine, "audit")
    await ran(engine, an_event(old))
    await housekeeping.run_once(services)
    assert created - await months_of(engine, "audit") == {"2024_08", "2024_09", "2024_10"}
    assert (await audit.user_trail(services, None, AuditQuery())).events == []


async def test_housekeeping_leaves_partitions_to_the_coordinator(
    services: Services, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Old rows are deleted all the same. A cluster of the machine runs this for real (test_distribute.py)."""

    async def is_worker(_engine: AsyncEngine) -> bool:
        return True

    await ran(services.storage.engine, an_event(START - 500 * DAY))
    before = await months_of(services.storage.engine, "audit")
    monkeypatch.setattr(nodes, "is_worker", is_worker)
    with caplog.at_level(logging.INFO, "profilesvc"):
        await housekeeping.run_once(services)
    assert [record.message for record in caplog.records] == [f"housekeeping: {partitions.ON_A_WORKER}"]
    assert await months_of(services.storage.engine, "audit") == before
    assert (await audit.user_trail(services, None, AuditQuery())).events == []


def nodes_of(plan: dict[str, Any]) -> Iterator[dict[str, Any]]:
    yield plan
    for child in plan.get("Plans", []):
        yield from nodes_of(child)


async def test_lists_read_months_by_index_and_in_order(services: Services, plugin: Site) -> None:
    """Without a sort, a page does not read a whole history."""
    owner = 1
    with recorded(services) as seen:
        await services.part(PendingEvents).write(services)
        async with services.storage.read() as session:
            await sync.history(session, owner, LOCATION, 0, 10)
        await audit.key_trail(services, None, plugin.key["client_id"], AuditQuery())
        await audit.user_trail(services, owner, AuditQuery())
        await audit.user_trail(services, None, AuditQuery())
    pages = {query: values for query, values in seen.items() if "FROM audit" in query or "FROM syncs" in query}
    plans = await plans_of(services, pages)
    assert len(plans) == 4
    for found in plans:
        kinds = {node["Node Type"] for node in found}
        assert kinds & {"Append", "Merge Append"}, kinds
        assert not kinds & {"Sort", "Seq Scan"}, kinds


async def plans_of(services: Services, statements: Recorded) -> list[list[dict[str, Any]]]:
    """The nodes of the plan of each statement."""
    url = services.storage.engine.url
    database = await asyncpg.connect(user="postgres", database=url.database, host=url.query["host"])
    try:
        await database.execute("SET enable_seqscan = off; SET enable_bitmapscan = off; SET enable_sort = off")
        found = [await database.fetchval(f"EXPLAIN (FORMAT JSON) {query}", *statements[query]) for query in statements]
    finally:
        await database.close()
    return [list(nodes_of(json.loads(plan)[0]["Plan"])) for plan in found]
