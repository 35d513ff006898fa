"""Migrations on both databases: they say what the tables say, and run twice, down and up again."""

import asyncio
import uuid
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
from alembic import command
from alembic.config import Config
from sqlalchemy import Connection, inspect
from sqlalchemy.ext.asyncio import AsyncEngine

from conftest import Postgres
from profilesvc.database import migrate
from profilesvc.database.engine import create_engine
from profilesvc.storage.domains import ANY, NEVER
from profilesvc.storage.tables import businesses, key_domains, keys, locations, metadata, users

TABLES = set(metadata.tables)
LOCATION = {
    "name": "locations/1",
    "user_id": 1,
    "account": "accounts/1",
    "title": "x",
    "profile": "{}",
    "profile_read_at": 0,
    "is_verified": True,
    "verification_state": "VERIFIED",
    "sync_enabled": False,
}
KEY = {
    "user_id": 1,
    "business_id": 1,
    "location_name": "locations/1",
    "name": "a",
    "permissions": "business.read",
    "created_at": 0,
}


@pytest.fixture
def url(database: str, tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[str]:
    """An empty database: what is broken here must not meet the other tests."""
    if database == "sqlite":
        yield f"sqlite+aiosqlite:///{tmp_path}/empty.db"
        return
    server: Postgres = request.getfixturevalue("postgres")
    name = f"migrations_{uuid.uuid4().hex}"
    server.run(f"CREATE DATABASE {name}")
    yield server.url(name)
    server.run(f"DROP DATABASE {name} WITH (FORCE)")


@pytest.fixture
async def engine(url: str) -> AsyncIterator[AsyncEngine]:
    made = create_engine(url, 3)
    await migrate.upgrade(made)
    yield made
    await made.dispose()


async def tables(engine: AsyncEngine) -> set[str]:
    async with engine.connect() as connection:
        return set(await connection.run_sync(lambda sync: inspect(sync).get_table_names()))


async def downgrade(engine: AsyncEngine, to: str = "base") -> None:
    def to_base(connection: Connection) -> None:
        config = Config()
        config.set_main_option("script_location", str(migrate.MIGRATIONS))
        config.attributes["connection"] = connection
        command.downgrade(config, to)

    async with engine.execution_options(sqlite_begin="IMMEDIATE").begin() as connection:
        await connection.run_sync(to_base)


async def test_match_the_tables(engine: AsyncEngine) -> None:
    await migrate.check(engine)
    assert await tables(engine) == TABLES | {"alembic_version"}


async def test_an_empty_database_has_no_revision(engine: AsyncEngine) -> None:
    await downgrade(engine)
    async with engine.begin() as connection:
        await connection.exec_driver_sql("DROP TABLE alembic_version")
    assert await migrate.current(engine) is None


async def test_the_check_sees_a_difference(engine: AsyncEngine) -> None:
    async with engine.begin() as connection:
        await connection.exec_driver_sql("ALTER TABLE users ADD COLUMN surprise INTEGER")
    with pytest.raises(Exception, match="surprise"):
        await migrate.check(engine)


async def test_twice_is_harmless(engine: AsyncEngine) -> None:
    async with engine.begin() as connection:
        await connection.execute(users.insert().values(email="a@example.com", name="A", plan="pro", created_at=0))
    await migrate.upgrade(engine)
    assert await migrate.current(engine) == migrate.head()
    async with engine.connect() as connection:
        assert (await connection.execute(users.select())).one().email == "a@example.com"


async def test_two_that_start_at_once_do_it_once(url: str) -> None:
    engines = [create_engine(url, 1, patient=True) for _ in range(3)]
    await asyncio.gather(*(migrate.upgrade(engine) for engine in engines))
    await migrate.check(engines[0])
    for engine in engines:
        await engine.dispose()


@pytest.mark.parametrize("database", [pytest.param("postgres", marks=pytest.mark.postgres)])
async def test_one_that_must_wait_pauses_for_other_statements(engine: AsyncEngine) -> None:
    await downgrade(engine, "0001")
    async with engine.connect() as reader:
        await reader.exec_driver_sql("SELECT 1 FROM keys")  # and its transaction goes on
        upgrading = asyncio.create_task(migrate.upgrade(engine))
        await asyncio.sleep(1)  # it has given up once
        async with engine.connect() as another:
            await another.exec_driver_sql("SET lock_timeout = 1000")
            await another.exec_driver_sql("SELECT 1 FROM keys")
        assert not upgrading.done()
    await upgrading
    assert await migrate.current(engine) == migrate.head()


async def test_go_down_to_nothing_and_up_again(engine: AsyncEngine) -> None:
    await downgrade(engine)
    assert await tables(engine) == {"alembic_version"}
    assert await migrate.current(engine) is None
    await migrate.upgrade(engine)
    await migrate.check(engine)


async def test_older_keys_are_found_by_their_domains(engine: AsyncEngine) -> None:
    """Preflights look them up (D-30); a key without domains accepts all, a revoked key none."""
    async with engine.begin() as connection:
        user = {"id": 1, "email": "a@example.com", "name": "A", "plan": "pro", "created_at": 0}
        await connection.execute(users.insert().values(user))
        await connection.execute(businesses.insert().values(id=1, user_id=1, name="B", created_at=0))
        await connection.execute(locations.insert().values(LOCATION))
        for number, (domains, expires_at, revoked_at) in enumerate(
            [('["a.example", "www.a.example"]', None, None), ("[]", 5, None), ('["b.example"]', None, 1)], 1
        ):
            ended = {"allowed_domains": domains, "expires_at": expires_at, "revoked_at": revoked_at}
            await connection.execute(keys.insert().values({**KEY, "id": number, "client_id": f"k{number}", **ended}))
    await downgrade(engine, "0001")
    await migrate.upgrade(engine)
    async with engine.connect() as connection:
        rows = {tuple(row) for row in await connection.execute(key_domains.select())}
    assert rows == {("a.example", NEVER, 1), ("www.a.example", NEVER, 1), (ANY, 5, 2)}


async def test_that_fail_are_rolled_back(engine: AsyncEngine) -> None:
    await downgrade(engine)
    async with engine.begin() as connection:
        await connection.exec_driver_sql("CREATE TABLE syncs (in_the_way INTEGER)")
    with pytest.raises(Exception, match="syncs"):
        await migrate.upgrade(engine)
    assert await tables(engine) - {"leases"} == {"alembic_version", "syncs"}


async def test_names_are_the_same_on_both_databases(engine: AsyncEngine) -> None:
    """A constraint without a name could not be changed by a later migration."""

    def unnamed(connection: Connection) -> list[str]:
        inspector, found = inspect(connection), []
        for table in TABLES:
            constraints = [
                *inspector.get_check_constraints(table),
                *inspector.get_unique_constraints(table),
                *inspector.get_foreign_keys(table),
                inspector.get_pk_constraint(table),
            ]
            found += [f"{table}: {constraint}" for constraint in constraints if not constraint["name"]]
        return found

    async with engine.connect() as connection:
        assert await connection.run_sync(unnamed) == []


async def test_remain_usable_by_the_previous_version(engine: AsyncEngine) -> None:
    """So that its processes go on while the next version's come up (docs/operations.md)."""

    def columns(connection: Connection) -> dict[tuple[str, str], bool]:
        """(table, column): whether a row can be written without it."""
        inspector = inspect(connection)
        return {
            (table, column["name"]): column["nullable"] or column["default"] is not None
            for table in inspector.get_table_names()
            for column in inspector.get_columns(table)
        }

    await downgrade(engine, "0001")
    async with engine.connect() as connection:
        before = await connection.run_sync(columns)
    await migrate.upgrade(engine)
    async with engine.connect() as connection:
        after = await connection.run_sync(columns)
    old_tables = {table for table, _ in before}
    assert before.items() <= after.items()
    assert all(free for (table, name), free in after.items() if table in old_tables and (table, name) not in before)
    assert len(after) > len(before)
