"""PostgreSQL behind PgBouncer: by session with any version, by transaction from 1.21."""

import asyncio
import contextlib
from collections.abc import Iterator
from pathlib import Path

import pytest
from sqlalchemy import text, update

from conftest import Postgres, make_settings
from profilesvc.bootstrap import Runtime, create_app, open_services
from profilesvc.database import migrate, time_limits
from profilesvc.database.engine import create_engine
from profilesvc.database.postgres import named
from profilesvc.operations import census, housekeeping, readiness
from profilesvc.services.context import Services
from profilesvc.storage import locations, posts
from profilesvc.storage.tables import users
from profilesvc.storage.users import list_users
from support.database.pgbouncer import pooling

pytestmark = pytest.mark.postgres
# Fewer servers than clients, each used in turn, so that hardly two transactions of a client share one.
FEW = "max_prepared_statements = 50\ndefault_pool_size = 3"
WORKS = [("session", False), ("session", True), ("transaction", True)]


@pytest.fixture
def restored(postgres: Postgres) -> Postgres:
    postgres.restored("work")
    return postgres


@contextlib.contextmanager
def pooled(postgres: Postgres, mode: str, newer: bool, database: str = "work") -> Iterator[str]:
    more = FEW if mode == "transaction" else "default_pool_size = 50"
    with pooling(postgres, mode, newer=newer, robin=1, more=more, database=database) as url:
        yield url


@pytest.mark.parametrize(("mode", "newer"), WORKS)
async def test_two_processes_work_behind_it(restored: Postgres, tmp_path: Path, mode: str, newer: bool) -> None:
    running = most = 0

    async def work(services: Services, number: int) -> None:
        nonlocal running, most
        for _ in range(5):
            async with services.storage.read() as session:
                assert await list_users(session)
                assert await locations.state(session, 1, "locations/111")
                await posts.first_page(session, 1, "locations/111", 10)
            async with services.storage.write() as session:
                await session.execute(update(users).where(users.c.id == 1).values(name=f"N{number}"))
            async with services.storage.leases.hold("turn"):
                running += 1
                most = max(most, running)
                await asyncio.sleep(0)
                running -= 1

    with pooled(restored, mode, newer) as url:
        settings = make_settings(tmp_path, url)
        async with open_services(settings, Runtime()) as one, open_services(settings, Runtime()) as two:
            await asyncio.gather(*(work(services, number) for number in range(6) for services in (one, two)))
            await housekeeping.run_once(one)
            await census.renew(two)
            assert all((await readiness.checks(one)).values())
    assert most == 1


@pytest.mark.parametrize(("mode", "newer"), WORKS)
async def test_migrations_run_behind_it(postgres: Postgres, mode: str, newer: bool) -> None:
    await asyncio.to_thread(postgres.create, "pooled")
    try:
        with pooled(postgres, mode, newer, "pooled") as url:
            engines = [create_engine(url, 1, patient=True) for _ in range(3)]
            await asyncio.gather(*(migrate.upgrade(engine) for engine in engines))
            await migrate.check(engines[0])
            for engine in engines:
                await engine.dispose()
    finally:
        await asyncio.to_thread(postgres.drop, "pooled")


class TestTimeLimits:
    @pytest.fixture
    def unlimited(self, postgres: Postgres) -> Iterator[str]:
        postgres.create("unlimited")
        yield postgres.url("unlimited")
        postgres.drop("unlimited")

    async def test_time_limits_are_set_for_the_role_by_several_at_once(self, unlimited: str) -> None:
        engines = [create_engine(unlimited, 1, patient=True) for _ in range(3)]
        assert set(await time_limits.missing(engines[0])) == set(time_limits.LIMITS)
        assert await asyncio.gather(*(time_limits.ensure(engine) for engine in engines)) == [[], [], []]
        for engine in engines:
            assert await time_limits.missing(engine) == {}
            await engine.dispose()

    async def test_a_lower_limit_of_the_operator_stays(self, unlimited: str, postgres: Postgres) -> None:
        own = "ALTER ROLE postgres IN DATABASE unlimited SET lock_timeout = '1s'"
        await asyncio.to_thread(postgres.run, own)
        engine = create_engine(unlimited, 1, patient=True)
        assert set(await time_limits.missing(engine)) == set(time_limits.LIMITS) - {"lock_timeout"}
        await engine.dispose()

    async def test_time_limits_behind_a_pooler_need_a_reconnect(self, unlimited: str, postgres: Postgres) -> None:
        with pooling(postgres, "session", database="unlimited") as url:
            engine = create_engine(url, 1, patient=True)
            [line] = await time_limits.ensure(engine)
            await engine.dispose()
        assert "RECONNECT" in line


class TestName:
    """PostgreSQL shows the role of a process with its connections, behind every pooler."""

    NAMES = "SELECT DISTINCT application_name FROM pg_stat_activity WHERE application_name LIKE $1 ORDER BY 1"

    async def shown(self, postgres: Postgres, tmp_path: Path, url: str, pattern: str = "profilesvc%") -> list[str]:
        """The names while an app and a command use the database."""
        settings = make_settings(tmp_path, url)
        app = create_app(settings, Runtime())
        async with app.test_app(), open_services(settings, Runtime()) as other:
            for services in (app.extensions["profilesvc"], other):
                async with services.storage.read() as session, services.storage.write() as writing:
                    await list_users(session)
                    await writing.execute(text("SELECT 1"))
                    await posts.first_page(session, 1, "locations/111", 10)
            database = await postgres.connect("work")
            names = [row[0] for row in await database.fetch(self.NAMES, pattern)]
            await database.close()
            return names

    async def test_the_name_of_a_connection_is_the_role_of_its_process(
        self, restored: Postgres, tmp_path: Path
    ) -> None:
        names = await self.shown(restored, tmp_path, restored.url("work"))
        assert names == ["profilesvc command", "profilesvc serve"]

    @pytest.mark.parametrize(("mode", "newer"), WORKS)
    async def test_the_name_of_a_connection_passes_a_pooler(
        self, restored: Postgres, tmp_path: Path, mode: str, newer: bool
    ) -> None:
        with pooled(restored, mode, newer) as url:
            names = await self.shown(restored, tmp_path, url)
        assert set(names) & {"profilesvc command", "profilesvc serve"}
        assert set(names) <= {"profilesvc command", "profilesvc serve"}

    async def test_the_name_of_a_connection_can_be_the_operators_own(self, restored: Postgres, tmp_path: Path) -> None:
        url = f"{restored.url('work')}&application_name=profilesvc-on-app1"
        assert await self.shown(restored, tmp_path, url) == ["profilesvc-on-app1"]

    async def test_a_connection_of_a_command_on_the_database_is_named_after_it(self, restored: Postgres) -> None:
        engine = create_engine(named(restored.url("work"), "db"), 1, patient=True)
        async with engine.connect() as connection:
            assert await connection.scalar(text("SELECT current_setting('application_name')")) == "profilesvc db"
        await engine.dispose()
