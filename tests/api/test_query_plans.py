"""Every statement of a request finds its rows by an index, on both databases, however many rows there are."""

import json
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import replace

import httpx
import pytest
from benchmarks import bulk, generate
from benchmarks.generate import Amounts
from quart import Quart
from sqlalchemy import select

from conftest import START, AsService
from profilesvc.domain.permissions import ALL
from profilesvc.domain.time import DAY, FrozenClock
from profilesvc.operations import census, publishing
from profilesvc.operations.feed import feed, readings
from profilesvc.operations.notify import sweep
from profilesvc.services import keys
from profilesvc.services.context import Caller, Services
from profilesvc.services.feed import feed as receiving
from profilesvc.services.jobs import run_once
from profilesvc.storage import tables
from profilesvc.storage.tables import insight as log_tables
from support.api import assert_ok
from support.database.citus import on_one_server
from support.database.query_plans import postgres_scans, sqlite_scans, statements
from support.every_operation import beside_the_api, every_operation, of_the_dashboard
from support.jobs import job_named
from support.provider.feed import FEED, message
from support.surface import Record, Surface

pytestmark = on_one_server
Scans = Callable[[str], Awaitable[set[str]]]
# Tables without generated rows, because their rows are short-lived: the first column is the primary key.
_DRAFT = "id owner_id location_name state fields document due_at zone next_at updated_at"
LATER = START + 365 * DAY
TRANSIENT = [
    (tables.idempotency, "scope owner_id fingerprint fence lease_until created_at", (1, "f", 1, START, START)),
    (tables.revocations, "id owner_id kind revoked_at expires_at", (1, "token", START, START + DAY)),
    (tables.exchanges, "digest expires_at", (START + DAY,)),
    (tables.sessions, "id owner_id created_at used_at expires_at epoch", (1, START, START, START + DAY, 0)),
    (tables.notifications, "message_id received_at", (START,)),
    (tables.mirrors, "query owner_id location_name read_at document", (1, "locations/111", START, "{}")),
    (tables.photos, "id owner_id media_type content expires_at", (2, "image/png", b"x", START + 100 * DAY)),
    (tables.drafts, _DRAFT, (2, "locations/211", "scheduled", "{}", "{}", LATER, "UTC", LATER, START)),
    (tables.changed_locations, "location_name what owner_id due_at times", ("profile", 1, START + 60_000, 1)),
]


@pytest.fixture
async def scans(services: Services, request: pytest.FixtureRequest) -> AsyncIterator[Scans]:
    """Over some thousands of rows."""
    for table, columns, values in TRANSIENT:
        rows = ((f"row-{number}", *values) for number in range(1_000))
        await bulk.load(services.storage, table, columns.split(), rows)
    channel = ((1, number, "email", "a@example.com", str(number), "n", START) for number in range(1_000_000, 1_000_010))
    columns = "owner_id id kind target target_digest nonce created_at"
    await bulk.load(services.storage, tables.channels, columns.split(), channel)
    due = (
        (1, 1_000_000 + number, 1_000_000 + number % 10, START, START + number, "pending") for number in range(1, 1_001)
    )
    columns = "owner_id id channel_id created_at next_at state"
    await bulk.load(services.storage, tables.deliveries, columns.split(), due)
    events = ((1, 1_000_000 + number, START, "key.created", "{}") for number in range(1_000))
    await bulk.load(services.storage, tables.events, ["owner_id", "id", "created_at", "type", "data"], events)
    await generate.load(services, Amounts(keys=500, posts=3_000, history=3_000), seed=1)
    async with services.storage.read() as session:
        some = (await session.execute(select(tables.keys.c.owner_id, tables.keys.c.id).limit(300))).all()
    families = ((f"family-{number}", *some[number % len(some)], 1, START, START + DAY, "{}") for number in range(1_000))
    names = ["id", "owner_id", "key_id", "generation", "rotated_at", "expires_at", "successor"]
    await bulk.load(services.storage, tables.families, names, families)
    of_requests = "owner_id key_id at id method route status duration_ms"
    requests = ((*some[number % len(some)], START + number, "1", "GET", "/", 200, 1) for number in range(3_000))
    await bulk.load(services.storage, log_tables.request_log, of_requests.split(), requests)
    of_days = "owner_id key_id day requests client_errors server_errors"
    days = ((*some[number % len(some)], START + number * DAY, 1, 0, 0) for number in range(3_000))
    await bulk.load(services.storage, log_tables.key_usage, of_days.split(), days)
    path = services.storage.engine.url.database or ""
    if services.storage.is_sqlite:
        await bulk.settle(services.storage, [])

        async def of_sqlite(statement: str) -> set[str]:
            return sqlite_scans(path, statement)

        yield of_sqlite
        return
    database = await request.getfixturevalue("postgres").connect(path)
    # Rows that earlier tests deleted still fill the tables and indexes, which changes the plans.
    await database.execute("VACUUM FULL ANALYZE")
    yield lambda statement: postgres_scans(database, statement)
    await database.close()


async def found(scans: Scans, seen: set[str]) -> dict[str, set[str]]:
    """The tables that are read whole, by statement."""
    return {statement: whole for statement in sorted(seen) if (whole := await scans(statement))}


async def test_a_statement_without_an_index_is_seen(scans: Scans) -> None:
    assert await scans("SELECT id FROM users WHERE name = 'x'") == {"users"}
    assert await scans("SELECT count(*) FROM posts") != set()
    assert await scans("SELECT id FROM users WHERE id = 1") == set()


@pytest.mark.in_process("records the statements of the process")
@pytest.mark.slow
async def test_no_request_reads_a_whole_table(
    app: Quart,
    services: Services,
    http: httpx.AsyncClient,
    alice: httpx.AsyncClient,
    as_service: AsService,
    emulator: httpx.AsyncClient,
    scans: Scans,
) -> None:
    record = Record(app.extensions["QUART_SCHEMA"].openapi_provider.schema())
    with statements(services) as seen:
        sites = {name: await as_service() for name in ("good", "other")}
        await beside_the_api(http, sites["other"].tokens, sites["other"].credentials)
        await every_operation(Surface(http, record, alice, sites, emulator))
    assert len(seen) > 60
    assert await found(scans, seen) == {}


@pytest.mark.in_process("records the statements of the process")
@pytest.mark.slow
async def test_no_page_of_the_dashboard_reads_a_whole_table(
    services: Services, as_service: AsService, scans: Scans
) -> None:
    owner = Caller(1, services.plans["pro"], frozenset(ALL))
    with statements(services) as seen:
        await of_the_dashboard(services, owner, await as_service())
    assert any(" contacts" in statement for statement in seen)
    assert await found(scans, seen) == {}


async def test_background_work_reads_no_whole_table(services: Services, as_service: AsService, scans: Scans) -> None:
    site = await as_service()
    with statements(services) as seen:
        await keys.deactivate(services, site.key["client_id"], "billing_issue")
        await keys.reactivate(services, site.key["client_id"])
        await run_once(services, job_named("housekeeping"))
        await census.count(services)
    assert len(seen) > 30
    assert await found(scans, seen) == {}


@pytest.mark.slow
@pytest.mark.in_process("records the statements of the process")
async def test_the_sweep_and_the_readings_read_no_whole_table(
    services: Services, as_service: AsService, alice: httpx.AsyncClient, clock: FrozenClock, scans: Scans
) -> None:
    """They are about all owners, so they read pages by a primary key."""
    site = await as_service()
    with_feed = replace(services, settings=services.settings.model_copy(update={"notifications": FEED}))
    assert_ok(await alice.post("/api/v1/alerts", json={}), 201)
    with statements(services) as seen:
        assert_ok(await site.http.post("/api/v1/api-keys/heartbeat", json={}))
        for hours in (0, 3, 30):
            clock.advance(hours=hours)
            await sweep.catch_up(services)
            await sweep.run_once(services)
            await readings.run_once(services)
            await publishing.run_once(services)
            await receiving.receive(with_feed, json.dumps(message(str(hours))).encode())
            clock.advance(seconds=10)
            await feed.run_once(with_feed)
    for table in ("watches", "readings", "channels", "events", "connections", "changed_locations", "notifications"):
        assert any(f" {table} " in statement or f" {table}\n" in statement for statement in seen), table
    assert await found(scans, seen) == {}
