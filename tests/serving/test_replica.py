"""Reads that may be old run on a standby. Whatever happens to it, the primary does its work (D-105)."""

import asyncio
import contextlib
import re
import signal
from collections.abc import AsyncIterator, Iterator, Sequence
from pathlib import Path
from typing import Any

import asyncpg
import httpx
import psutil
import pytest
from pydantic import ValidationError
from quart import Quart
from sqlalchemy import Executable, Result

from conftest import ON_POSTGRES, AsService, Postgres, make_settings
from profilesvc.cli.doctor import checks
from profilesvc.database import replica
from profilesvc.database.postgres import parsed_url, standby_url
from profilesvc.database.replica import Replica
from profilesvc.database.statements import FastReader, Parameters, Readers, Row
from profilesvc.operations import census
from profilesvc.services.context import Services
from profilesvc.settings import Settings
from support.api import Site, assert_ok
from support.database.citus import on_one_server
from support.database.login import Login, standby, start_standby, stop_standby
from support.every_operation import every_operation
from support.surface import Record, Surface
from support.waiting import deadline, until_async

pytestmark = [
    pytest.mark.thorough,
    on_one_server,
    pytest.mark.in_process("stops the standby"),
    ON_POSTGRES,
]
LOCATIONS = "/api/v1/external-business/locations"
_NEVER = re.compile(r"\b(secrets|revocations|families|exchanges|signing_keys|idempotency)\b")


@pytest.fixture(scope="module")
def folder(postgres: Postgres) -> Iterator[Path]:
    with standby(postgres) as folder:
        yield folder


@pytest.fixture
def settings(database: str, postgres: Postgres, folder: Path, tmp_path: Path) -> Settings:
    postgres.restored("work")
    url = postgres.url("work")
    return make_settings(tmp_path, url, database_replica_url=url.replace(postgres.host, str(folder)))


@pytest.fixture(autouse=True)
def always_checked(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each unit checks the standby, so that no test waits for the next check, and a busy machine may take its time."""
    monkeypatch.setattr(replica, "CHECK_SECONDS", 0.0)
    monkeypatch.setattr(replica, "RESPONSE_SECONDS", 60.0)


@contextlib.asynccontextmanager
async def paused(folder: Path) -> AsyncIterator[None]:
    """The standby receives what is committed, and does not apply it."""
    database = await asyncpg.connect(user="postgres", database="work", host=str(folder))
    await database.execute("SELECT pg_wal_replay_pause()")

    async def is_paused() -> bool:
        return bool(await database.fetchval("SELECT pg_get_wal_replay_pause_state() = 'paused'"))

    await until_async(is_paused, "the standby to pause")
    try:
        yield
    finally:
        await database.execute("SELECT pg_wal_replay_resume()")
        await database.close()


async def is_on(alice: httpx.AsyncClient) -> bool:
    """Whether the list shows that the first location is synced."""
    (found,) = [row for row in assert_ok(await alice.get(LOCATIONS))["locations"] if row["name"] == "locations/111"]
    return bool(found["syncEnabled"])


async def switch(alice: httpx.AsyncClient, on: bool) -> None:
    assert_ok(await alice.patch(f"{LOCATIONS}/111/sync", json={"syncEnabled": on}))


def standby_of(services: Services) -> Replica:
    assert services.storage.replica is not None
    return services.storage.replica


async def test_a_list_may_be_old_and_a_revocation_is_not(
    alice: httpx.AsyncClient, plugin: Site, services: Services, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(replica, "MAX_LAG_SECONDS", 3600.0)
    await switch(alice, True)
    await until_async(lambda: is_on(alice), "the row on the standby")
    async with paused(folder):
        await switch(alice, False)
        assert await is_on(alice), "the standby has the older row"
        assert_ok(await plugin.http.get(LOCATIONS))
        assert_ok(await alice.delete(f"/api/v1/developer/credentials/{plugin.key['client_id']}"))
        assert (await plugin.http.get(LOCATIONS)).status_code == 401
        lag = assert_ok_health(await alice.get("/readyz"))["replica_lag_seconds"]
        assert lag > 0

    async def is_off() -> bool:
        return not await is_on(alice)

    async def is_counted() -> bool:
        return b"profilesvc_keys" in await census.exposition(services)

    await until_async(is_off, "the newer row")
    await census.count(services)
    await until_async(is_counted, "the counts on the standby")


def assert_ok_health(response: httpx.Response) -> dict[str, Any]:
    assert response.status_code == 200
    found: dict[str, Any] = response.json()
    return found


async def test_a_standby_that_is_too_old_is_not_used(
    alice: httpx.AsyncClient, services: Services, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    await switch(alice, True)
    await until_async(lambda: is_on(alice), "the row on the standby")
    monkeypatch.setattr(replica, "MAX_LAG_SECONDS", 0.0)
    async with paused(folder):
        await switch(alice, False)
        assert not await is_on(alice), "the primary has the newer row"
        ready = assert_ok_health(await alice.get("/readyz"))
        assert (ready["status"], ready["checks"]["replica"]) == ("degraded", False)
        assert re.fullmatch(r"it is \d+ s behind", standby_of(services).state.problem)
        found = {check.name: check async for check in checks.inside(services.settings)}
        assert (found["replica"].status, found["readiness"].status) == ("warn", "ok")
    monkeypatch.setattr(replica, "MAX_LAG_SECONDS", 3600.0)

    async def is_used() -> bool:
        return (await standby_of(services).check()) == (0.0, "")

    await until_async(is_used, "the standby to be used")
    found = {check.name: check async for check in checks.inside(services.settings)}
    assert (found["replica"].status, found["replica"].message) == ("ok", "0.0 s behind")


async def test_a_standby_that_is_down_is_not_used_until_it_is_back(
    alice: httpx.AsyncClient, services: Services, postgres: Postgres, folder: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async def is_used() -> bool:
        return not (await standby_of(services).check()).problem

    await until_async(is_used, "the standby to be used")
    caplog.clear()
    await asyncio.to_thread(stop_standby, postgres, folder)
    try:
        for on in (True, False):
            await switch(alice, on)
            assert await is_on(alice) is on
    finally:
        await asyncio.to_thread(start_standby, postgres, folder)
    await until_async(is_used, "the standby to be used")
    lines = [record.getMessage().partition(":")[0] for record in caplog.records if record.name == "profilesvc"]
    assert lines == ["replica not used"], "the second line is not a warning"
    assert (await alice.get("/readyz")).json()["checks"]["replica"]


async def test_without_a_standby_that_confirms_writes_the_service_is_degraded(
    alice: httpx.AsyncClient, postgres: Postgres, folder: Path
) -> None:
    async def found() -> tuple[str, bool | None]:
        body = assert_ok_health(await alice.get("/readyz"))
        return body["status"], body["checks"].get("standby")

    def replicate(change: str) -> None:
        Login(postgres, "work").run(f"ALTER SYSTEM {change}", "SELECT pg_reload_conf()")

    async def is_in(wanted: tuple[str, bool | None]) -> None:
        async def is_found() -> bool:
            return await found() == wanted

        await until_async(is_found, f"{wanted} in the readiness")

    await is_in(("ok", None))
    await asyncio.to_thread(replicate, "SET synchronous_standby_names = '*'")
    try:
        await is_in(("ok", True))
        await switch(alice, True)
        await asyncio.to_thread(stop_standby, postgres, folder)
        try:
            await is_in(("degraded", False))
            assert_ok(await alice.get(LOCATIONS))
            assert (await alice.patch(f"{LOCATIONS}/111/sync", json={"syncEnabled": False})).status_code == 503
        finally:
            await asyncio.to_thread(start_standby, postgres, folder)
        await is_in(("ok", True))
    finally:
        await asyncio.to_thread(replicate, "RESET synchronous_standby_names")


async def test_a_frozen_standby_costs_one_request_some_seconds(
    alice: httpx.AsyncClient, services: Services, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def is_used() -> bool:
        return not (await standby_of(services).check()).problem

    monkeypatch.setattr(replica, "CHECK_SECONDS", 3600.0)
    await until_async(is_used, "the standby to be used")
    monkeypatch.setattr(replica, "RESPONSE_SECONDS", 1.5)
    server = psutil.Process(int((folder / "postmaster.pid").read_text().splitlines()[0]))
    frozen = [server, *server.children()]
    for process in frozen:
        process.send_signal(signal.SIGSTOP)
    try:
        async with deadline(6, "a response although the standby is frozen"):
            await is_on(alice)
        assert standby_of(services).state.problem == "no response in time"
        with monkeypatch.context() as patch:
            patch.setattr(standby_of(services), "readers", None)  # not asked again before the next check
            await is_on(alice)
    finally:
        for process in frozen:
            process.send_signal(signal.SIGCONT)


async def test_a_server_that_takes_writes_is_no_replica(services: Services, postgres: Postgres) -> None:
    """It may be a former primary, which has no changes any more."""
    storage = type(services.storage)(postgres.url("work"), 1, postgres.url("work"))
    try:
        async with storage.read(may_be_old=True) as session:
            await session.fetch("SELECT 1", [])
        assert storage.replica is not None
        assert storage.replica.state.problem == "it is not a standby"
    finally:
        await storage.close()


async def test_reads_that_may_be_old_decide_nothing(
    app: Quart,
    services: Services,
    http: httpx.AsyncClient,
    alice: httpx.AsyncClient,
    as_service: AsService,
    emulator: httpx.AsyncClient,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Of all operations, none reads tokens, secrets or revocations there."""
    seen = Seen(services.storage.readers)
    record = Record(app.extensions["QUART_SCHEMA"].openapi_provider.schema())
    sites = {name: await as_service() for name in ("good", "other")}
    with monkeypatch.context() as patch:
        patch.setattr(services.storage, "replica", seen)
        await every_operation(Surface(http, record, alice, sites, emulator))
    assert any("FROM syncs" in statement for statement in seen.statements), "the lists are read there"
    assert [statement for statement in seen.statements if _NEVER.search(statement)] == []


class SeenReader:
    """A reader that notes the statements."""

    dialect = "postgresql"

    def __init__(self, reader: FastReader, seen: set[str]) -> None:
        self._reader, self._seen = reader, seen

    async def fetch(self, sql: str, values: list[object], /) -> Sequence[Row]:
        self._seen.add(sql)
        return await self._reader.fetch(sql, values)

    async def execute(self, statement: Executable, parameters: Parameters | None = None, /) -> Result[Any]:
        self._seen.add(str(statement))
        return await self._reader.execute(statement, parameters)


class Seen:
    """Readers that note the statements."""

    def __init__(self, readers: Readers) -> None:
        self._readers, self.statements, self.usage = readers, set[str](), readers.usage

    @contextlib.asynccontextmanager
    async def open(self, seconds: float) -> AsyncIterator[SeenReader]:
        async with self._readers.open(seconds) as reader:
            yield SeenReader(reader, self.statements)


def test_one_of_several_hosts_is_a_standby(database: str) -> None:
    url = "postgresql+asyncpg://user:secret@/name?host=a:5432&host=b:5432"
    for chosen, expected in (("", "standby"), ("&target_session_attrs=any", "any")):
        parsed = parsed_url(standby_url(f"{url}{chosen}"))
        assert (parsed.query["target_session_attrs"], parsed.query["host"]) == (expected, ("a:5432", "b:5432"))
        assert parsed.password == "secret"


def test_a_replica_needs_postgres(database: str, tmp_path: Path) -> None:
    with pytest.raises(ValidationError, match="must both be URLs of PostgreSQL"):
        make_settings(tmp_path, "", database_replica_url="postgresql+asyncpg://user@host/name")
