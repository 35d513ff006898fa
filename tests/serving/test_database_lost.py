"""A database that the running service may no longer log in to, or not write to, or that was restarted."""

import asyncio
import contextlib
import logging
import re
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from sqlalchemy import update

from conftest import ON_POSTGRES, Postgres, make_settings
from profilesvc.bootstrap import Runtime, open_services
from profilesvc.contract.audit import AuditQuery
from profilesvc.database.outage import Outage
from profilesvc.domain.errors import ServiceError
from profilesvc.domain.time import FrozenClock
from profilesvc.operations import housekeeping, readiness
from profilesvc.services import audit
from profilesvc.services.audit import PendingEvents
from profilesvc.services.context import Services
from profilesvc.services.insight.request_log import RequestLog
from profilesvc.services.jobs import run_once
from profilesvc.settings import Settings
from profilesvc.storage import keys
from profilesvc.storage.heartbeats import Beat
from profilesvc.storage.keys import KeyState
from profilesvc.storage.tables import users
from profilesvc.storage.users import list_users
from support.api import Site, assert_error, assert_ok
from support.database.login import PASSWORD, ROLE, Login, login, restart, standby, switch_over
from support.jobs import job_named
from support.tokens import PATH as TOKEN
from support.tokens import grant
from support.waiting import until_async

pytestmark = [
    pytest.mark.thorough,
    pytest.mark.in_process("reads the log and moves the clock of the outage"),
    ON_POSTGRES,
]
KEYS, POSTS, HEARTBEAT = "/api/v1/developer/credentials", "/api/v1/posts?locationId=111", "/api/v1/api-keys/heartbeat"
NEW_KEY = {"name": "Lost", "business_id": 10, "assigned_location_id": "locations/111"}


@pytest.fixture
def role(postgres: Postgres, database: str) -> Iterator[Login]:
    postgres.restored("work")
    with login(postgres) as made:
        yield made


@pytest.fixture
def settings(role: Login, tmp_path: Any) -> Settings:
    return make_settings(tmp_path, role.url())


@pytest.fixture
def patient_database() -> None:
    """None: these tests are about a database that does not respond in time."""


class Later:
    """A clock of the outage that can be moved."""

    seconds = 0.0

    def __call__(self) -> float:
        return time.monotonic() + self.seconds


@pytest.fixture
def later(services: Services) -> Later:
    clock = Later()
    services.storage.outage = Outage(clock)
    return clock


@pytest.fixture
async def calls(later: Later, alice: httpx.AsyncClient, plugin: Site, http: httpx.AsyncClient) -> Any:
    """Send one request of each kind; their responses."""

    async def send() -> list[httpx.Response]:
        return [
            await alice.get(KEYS),
            await plugin.http.get(POSTS),
            await http.post(TOKEN, json=grant(plugin)),
            *await send_writes(alice, plugin),
        ]

    assert all(response.is_success for response in await send())
    return send


async def send_writes(alice: httpx.AsyncClient, plugin: Site) -> list[httpx.Response]:
    return [
        await plugin.http.post(HEARTBEAT, json={"wp_version": "2"}),
        await alice.post(KEYS, json=NEW_KEY),
        await plugin.http.post(POSTS, json={"summary": "Lost"}),
    ]


def logged(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [record.getMessage() for record in caplog.records if record.levelno >= logging.WARNING]


LOGINS = {
    "password": (f"ALTER ROLE {ROLE} PASSWORD 'another'", f"ALTER ROLE {ROLE} PASSWORD '{PASSWORD}'", "password"),
    "no login": (f"ALTER ROLE {ROLE} NOLOGIN", f"ALTER ROLE {ROLE} LOGIN", "not permitted to log in"),
    "renamed role": (f"ALTER ROLE {ROLE} RENAME TO former", f"ALTER ROLE former RENAME TO {ROLE}", "password"),
    "no privilege": (
        "REVOKE CONNECT ON DATABASE work FROM public",
        "GRANT CONNECT ON DATABASE work TO public",
        "permission denied for database",
    ),
    "too many": (f"ALTER ROLE {ROLE} CONNECTION LIMIT 0", f"ALTER ROLE {ROLE} CONNECTION LIMIT -1", "too many connect"),
}


@pytest.mark.parametrize("kind", LOGINS)
async def test_a_login_that_ends_is_a_503_and_one_line_until_it_is_back(
    calls: Any, http: httpx.AsyncClient, role: Login, caplog: pytest.LogCaptureFixture, later: Later, kind: str
) -> None:
    broken, mended, said = LOGINS[kind]
    await asyncio.to_thread(role.run, broken)
    try:
        await asyncio.to_thread(role.cut)
        for _ in range(3):
            refused = await calls()
            for response in refused:
                assert_error(response, 503, "SERVICE_UNAVAILABLE")
                assert int(response.headers["retry-after"]) >= 1
        ready = await http.get("/readyz")
        assert (ready.status_code, ready.json()["checks"]["database"]) == (503, False)
        lines = logged(caplog)
        assert len(lines) == 1
        assert lines[0].startswith("database lost: ")  # for the reason given, or because a statement was cut
        later.seconds += 61
        await calls()
        assert len(logged(caplog)) == 2  # by the 19th request, or by work in the background just before it
        assert re.fullmatch(r"database still lost after \d+ s: .*; 1[89] requests rejected", logged(caplog)[1])
        assert said in logged(caplog)[1]
    finally:
        await asyncio.to_thread(role.run, mended)
    for _ in range(10):
        later.seconds += 2  # since the last failure: what a round started before can fail in the loop
        assert all(response.is_success for response in await calls())
        assert (await http.get("/readyz")).status_code == 200
        if len(logged(caplog)) > 2:
            break
    assert len(logged(caplog)) == 3
    assert re.fullmatch(r"database back after \d+ s, 24 requests rejected", logged(caplog)[2])


ON, OFF = "SET default_transaction_read_only = on", "RESET default_transaction_read_only"
READ_ONLY = {
    "new connections": (f"ALTER DATABASE work {ON}", f"ALTER DATABASE work {OFF}"),
    "existing connections": (f"ALTER SYSTEM {ON}", f"ALTER SYSTEM {OFF}"),
}


@pytest.mark.parametrize("kind", READ_ONLY)
async def test_a_server_that_became_read_only_is_not_ready_and_is_left(
    calls: Any,
    alice: httpx.AsyncClient,
    plugin: Site,
    http: httpx.AsyncClient,
    role: Login,
    caplog: pytest.LogCaptureFixture,
    later: Later,
    kind: str,
) -> None:
    on, off = READ_ONLY[kind]
    await asyncio.to_thread(role.run, on, "SELECT pg_reload_conf()")
    try:
        if kind == "new connections":
            await asyncio.to_thread(role.cut)
        await asyncio.sleep(0.3)  # until the server's processes have heard of it
        for _ in range(2):
            for response in await send_writes(alice, plugin):
                assert_error(response, 503, "SERVICE_UNAVAILABLE")
                assert int(response.headers["retry-after"]) >= 1
            ready = await http.get("/readyz")
            assert (ready.status_code, ready.json()["checks"]["writable"]) == (503, False)
        assert_ok(await alice.get(KEYS))
        later.seconds += 2
        assert_ok(await alice.get(KEYS))
        assert len(logged(caplog)) == 1, "a read does not bring it back"
        assert "read-only" in logged(caplog)[0]
    finally:
        await asyncio.to_thread(role.run, off, "SELECT pg_reload_conf()")
    later.seconds += 2

    async def is_ready() -> bool:
        return (await http.get("/readyz")).status_code == 200

    await until_async(is_ready, "readiness", every=0.1)
    later.seconds += 2  # since the last failure, which an old connection can have caused in the loop
    assert all(response.is_success for response in await calls())
    assert [line.split(":")[0].split(" after")[0] for line in logged(caplog)] == ["database lost", "database back"]


async def test_a_role_that_may_only_read_is_not_ready(
    alice: httpx.AsyncClient,
    plugin: Site,
    http: httpx.AsyncClient,
    role: Login,
    caplog: pytest.LogCaptureFixture,
    later: Later,
) -> None:
    right = "INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA public"
    await asyncio.to_thread(role.postgres.run, f"REVOKE {right} FROM {ROLE}", role.database)
    for _ in range(3):
        for response in await send_writes(alice, plugin):
            assert_error(response, 503, "SERVICE_UNAVAILABLE")
        ready = await http.get("/readyz")
        assert (ready.status_code, ready.json()["checks"]["writable"]) == (503, False)
        assert int(ready.headers["retry-after"]) >= 1
        assert_ok(await alice.get(KEYS))
        later.seconds += 2
    assert [line.split(":")[0] for line in logged(caplog)] == ["database lost"], "a read does not bring it back"
    await asyncio.to_thread(role.postgres.run, f"GRANT {right} TO {ROLE}", role.database)
    assert (await http.get("/readyz")).status_code == 200
    assert all(response.is_success for response in await send_writes(alice, plugin))


async def test_without_the_schema_every_response_is_a_503(
    calls: Any, http: httpx.AsyncClient, role: Login, caplog: pytest.LogCaptureFixture
) -> None:
    everybody = f"USAGE ON SCHEMA public {{}} public, {ROLE}"
    await asyncio.to_thread(role.postgres.run, f"REVOKE {everybody.format('FROM')}", role.database)
    try:
        for response in await calls():
            assert_error(response, 503, "SERVICE_UNAVAILABLE")
        assert (await http.get("/readyz")).status_code == 503
        assert [line.split(":")[0] for line in logged(caplog)] == ["database lost"]
    finally:
        await asyncio.to_thread(role.postgres.run, f"GRANT {everybody.format('TO')}", role.database)


@pytest.mark.parametrize("noticed", [True, False])
async def test_after_a_restart_of_the_server_the_first_request_of_each_kind_succeeds(
    calls: Any,
    alice: httpx.AsyncClient,
    plugin: Site,
    http: httpx.AsyncClient,
    services: Services,
    role: Login,
    clock: FrozenClock,
    noticed: bool,
) -> None:
    """Whether the event loop had time to see the ends of the connections or not."""

    async def restarted() -> None:
        clock.advance(minutes=2)  # posts are read again
        await (asyncio.to_thread(restart, role.postgres) if noticed else _blocking(role.postgres))

    await restarted()
    assert_ok(await plugin.http.get(POSTS))
    await restarted()
    key = await _key(services, plugin)
    await restarted()
    await services.beats.add(Beat(key.owner_id, key.id, services.clock.now()))
    await restarted()
    services.part(PendingEvents).token_issued(services, key, [])
    await services.part(PendingEvents).write(services)
    await restarted()
    assert (await http.get("/readyz")).status_code == 200
    await restarted()
    await housekeeping.run_once(services)
    await restarted()
    assert all(response.is_success for response in await send_writes(alice, plugin))
    trail = await audit.user_trail(services, None, AuditQuery())
    assert any(event.event == "token.issued" and event.actor == "operator" for event in trail.events)


async def test_requests_of_keys_are_written_when_the_database_is_back(
    role: Login, services: Services, plugin: Site, alice: httpx.AsyncClient, later: Later
) -> None:
    path = f"{KEYS}/{plugin.key['client_id']}/requests"
    before = assert_ok(await alice.get(path))["usage"][0]["requests"]
    for _ in range(3):
        assert_ok(await plugin.http.get(POSTS))
    right = "INSERT ON key_usage"
    await asyncio.to_thread(role.postgres.run, f"REVOKE {right} FROM {ROLE}", role.database)
    for _ in range(2):
        await run_once(services, job_named("request_log"))  # the outage is in the log once
        with pytest.raises(ServiceError):
            await services.part(RequestLog).write(services)
    await asyncio.to_thread(role.postgres.run, f"GRANT {right} TO {ROLE}", role.database)
    later.seconds += 60
    await run_once(services, job_named("request_log"))
    assert assert_ok(await alice.get(path))["usage"][0]["requests"] == before + 3


async def _blocking(postgres: Postgres) -> None:
    restart(postgres)


async def _key(services: Services, site: Site) -> KeyState:
    async with services.storage.read() as session:
        key = await keys.state(session, site.key["client_id"])
    assert key is not None
    return key


@pytest.mark.long
async def test_after_a_switch_over_the_new_primary_is_found(
    role: Login, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Of the hosts in the URL the one that takes writes is used, before and after."""
    with standby(role.postgres) as other:
        url = role.url().replace(f"host={role.postgres.host}", f"host={other}:5432&host={role.postgres.host}:5432")
        settings = make_settings(tmp_path, url)
        async with open_services(settings, Runtime()) as services:
            later = Later()
            services.storage.outage = Outage(later)
            assert await _renamed(services, "Before")
            for unit in (services.storage.leases.hold("x"), services.storage.read()):
                async with unit:
                    pass
            await asyncio.to_thread(switch_over, role, other)
            try:

                async def is_renamed() -> bool:
                    later.seconds += 2
                    return await _renamed(services, "After")

                await until_async(is_renamed, "a write on the other server", every=0.1)
                async with services.storage.read() as session:
                    assert (await list_users(session))[0].name == "After"
                assert (await readiness.checks(services))["writable"]
            finally:
                reset = "ALTER SYSTEM RESET default_transaction_read_only"
                await asyncio.to_thread(role.run, reset, "SELECT pg_reload_conf()")
    assert [line.split(":")[0].split(" after")[0] for line in logged(caplog)] == ["database lost", "database back"]


async def _renamed(services: Services, name: str) -> bool:
    with contextlib.suppress(ServiceError):
        async with services.storage.write() as session:
            await session.execute(update(users).where(users.c.id == 1).values(name=name))
        return True
    return False
