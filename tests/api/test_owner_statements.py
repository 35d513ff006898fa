"""Every statement about a tenant names its owner, so that one shard of a distributed database answers it (D-101)."""

from collections.abc import Iterable

import httpx
import pytest
from quart import Quart

from api.owner_filters import without_owner
from conftest import AsService
from profilesvc.domain.permissions import ALL
from profilesvc.domain.time import FrozenClock
from profilesvc.operations import census, housekeeping, operator, publishing
from profilesvc.operations.feed import readings
from profilesvc.operations.notify import sweep
from profilesvc.services import keys
from profilesvc.services.audit import PendingEvents
from profilesvc.services.context import Caller, Services
from support.api import assert_ok
from support.database.citus import SHARDS, on_a_cluster, on_one_server, tasks
from support.database.partitions import Recorded, partitioned, parts, recorded
from support.database.query_plans import prepared
from support.database.session_state import of_statement
from support.every_operation import beside_the_api, every_operation, first_login, of_the_dashboard
from support.surface import Record, Surface

pytestmark = pytest.mark.in_process("records the statements of the process")


@pytest.fixture
async def seen(
    app: Quart,
    services: Services,
    http: httpx.AsyncClient,
    alice: httpx.AsyncClient,
    as_service: AsService,
    emulator: httpx.AsyncClient,
) -> Recorded:
    """The statements of all operations, of the dashboard and of a first login."""
    record = Record(app.extensions["QUART_SCHEMA"].openapi_provider.schema())
    owner = Caller(1, services.plans["pro"], frozenset(ALL))
    with recorded(services) as statements:
        sites = {name: await as_service() for name in ("good", "other", "page")}
        await beside_the_api(http, sites["other"].tokens, sites["other"].credentials)
        await of_the_dashboard(services, owner, sites["page"])
        await first_login(services)
        await every_operation(Surface(http, record, alice, sites, emulator))
        await services.part(PendingEvents).write(services)
        await services.background.settle()
    assert len(statements) > 60
    return statements


def spanning(statements: Iterable[str], dialect: str) -> dict[str, set[str]]:
    """The tables without an owner, by statement."""
    found = {statement: without_owner(statement, dialect) for statement in statements}
    return {statement: tables for statement, tables in found.items() if tables}


@pytest.mark.slow
async def test_every_statement_of_a_request_names_the_owner(seen: Recorded, services: Services) -> None:
    dialect = services.storage.dialect
    found = spanning({*seen, *prepared(dialect)}, dialect)
    assert found == {}
    assert {sql: kept for sql in seen if (kept := of_statement(sql))} == {}, "it would stay in the session"


async def test_only_background_work_and_the_operator_span_owners(
    services: Services, as_service: AsService, alice: httpx.AsyncClient
) -> None:
    """The control: the same test finds these."""
    site = await as_service()
    dialect = services.storage.dialect
    with recorded(services) as named:
        await keys.deactivate(services, site.key["client_id"], "billing_issue")
        await keys.reactivate(services, site.key["client_id"])
        await operator.assign_plan(services, "alice@example.com", "starter")
        await operator.assign_plan(services, "alice@example.com", "pro")
        await operator.suspend(services, "bob@example.com")
    assert spanning(named, dialect) == {}
    assert_ok(await alice.post("/api/v1/alerts", json={}), 201)
    operators = operator.list_users, operator.list_businesses
    for work in (
        housekeeping.run_once,
        census.count,
        sweep.run_once,
        readings.run_once,
        publishing.run_once,
        *operators,
    ):
        with recorded(services) as statements:
            await work(services)
        assert spanning(statements, dialect) != {}, work.__name__


async def test_the_sweep_and_the_readings_write_to_one_owner_at_a_time(
    services: Services, as_service: AsService, alice: httpx.AsyncClient, clock: FrozenClock
) -> None:
    """They find what to do in pages of all owners, and name the owner of each change."""
    site = await as_service()
    assert_ok(await alice.post("/api/v1/alerts", json={}), 201)
    with recorded(services) as statements:
        assert_ok(await site.http.post("/api/v1/api-keys/heartbeat", json={}))
        for hours in (0, 3, 30):
            clock.advance(hours=hours)
            await sweep.catch_up(services)
            await readings.run_once(services)
    writes = {sql for sql in statements if not sql.lstrip().startswith(("SELECT", "WITH"))}
    for table in ("watches", "readings", "posts", "events"):
        assert any(f"INTO {table} " in sql for sql in writes), table
    assert spanning(writes, services.storage.dialect) == {}


ON_POSTGRES = pytest.mark.parametrize("database", [pytest.param("postgres", marks=pytest.mark.postgres)])


@on_one_server
@ON_POSTGRES
async def test_every_statement_of_a_request_touches_one_partition(
    seen: Recorded, services: Services, request: pytest.FixtureRequest
) -> None:
    name = services.storage.engine.url.database
    database = await request.getfixturevalue("postgres").connect(name)
    try:
        async with partitioned(database):
            touched = {sql: await parts(database, sql, values) for sql, values in seen.items()}
            assert {sql: found for sql, found in touched.items() if len(found) > 1} == {}
            assert sum(len(found) == 1 for found in touched.values()) > 50
            for spanning_owners in ("SELECT id FROM keys", "DELETE FROM posts WHERE location_name = 'locations/111'"):
                assert len(await parts(database, spanning_owners, [])) > 1
    finally:
        await database.close()


@on_a_cluster
@ON_POSTGRES
async def test_every_statement_of_a_request_is_one_task(
    seen: Recorded, services: Services, request: pytest.FixtureRequest
) -> None:
    database = await request.getfixturevalue("postgres").connect(services.storage.engine.url.database)
    try:
        counts = {sql: await tasks(database, sql, values) for sql, values in seen.items()}
        several = {sql: found for sql, found in counts.items() if max(found, default=1) > 1}
        [look_up] = several  # the owners of all locations that a connected login sees, in the directory
        assert "FROM location_owners \nWHERE location_owners.name IN" in look_up
        assert sum(found == [1] for found in counts.values()) > 50
        assert await tasks(database, "SELECT id FROM keys", []) == [SHARDS]
    finally:
        await database.close()
