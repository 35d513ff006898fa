"""Migrations on both databases: they say what the tables say, and run twice, down and up again."""

import asyncio
import shutil
import uuid
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from pathlib import Path

import pytest
from alembic import command
from alembic.config import Config
from sqlalchemy import Connection, MetaData, PrimaryKeyConstraint, UniqueConstraint, inspect
from sqlalchemy.ext.asyncio import AsyncEngine
from sqlalchemy.schema import CreateIndex, CreateTable

from conftest import Postgres
from profilesvc.database import migrate
from profilesvc.database.engine import create_engine
from profilesvc.storage.tables import TENANTS, metadata, users
from profilesvc.storage.tables.partitions import is_partition

TABLES = set(metadata.tables)
STEP = """
import sqlalchemy as sa
from alembic import op

revision, down_revision, branch_labels, depends_on = "{revision}", "{before}", None, None


def upgrade() -> None:
    {work}


def downgrade() -> None:
    pass
"""
WORKS = 'op.add_column("keys", sa.Column("later", sa.Integer(), nullable=True))'
BREAKS = [
    ('op.drop_column("users", "unpaid_since")', "unpaid_since"),
    ('op.add_column("users", sa.Column("later", sa.Integer(), nullable=False))', "later"),
]
NextStep = Callable[[str], None]


@pytest.fixture
def url(database: str, tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[str]:
    """An empty database: what is broken here must not meet the other tests."""
    if database == "sqlite":
        yield f"sqlite+aiosqlite:///{tmp_path}/empty.db"
        return
    server: Postgres = request.getfixturevalue("postgres")
    name = f"migrations_{uuid.uuid4().hex}"
    server.create(name)
    yield server.url(name)
    server.drop(name)


@pytest.fixture
async def engine(url: str) -> AsyncIterator[AsyncEngine]:
    made = create_engine(url, 3)
    await migrate.upgrade(made)
    yield made
    await made.dispose()


@pytest.fixture
def next_step(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[NextStep]:
    """Adds a migration of the next version, and forgets it afterwards."""

    def add(work: str) -> None:
        before = migrate.head()
        copy = tmp_path / "migrations"
        shutil.copytree(migrate.MIGRATIONS, copy, ignore=shutil.ignore_patterns("__pycache__"))
        revision = f"{int(before) + 1:04}"
        (copy / "versions" / f"{revision}_next.py").write_text(STEP.format(revision=revision, before=before, work=work))
        monkeypatch.setattr(migrate, "MIGRATIONS", copy)
        migrate.head.cache_clear()

    yield add
    monkeypatch.undo()
    migrate.head.cache_clear()


def _own_tables(connection: Connection) -> list[str]:
    """The tables, without the partitions of a month."""
    return [name for name in inspect(connection).get_table_names() if not is_partition(name)]


async def tables(engine: AsyncEngine) -> set[str]:
    async with engine.connect() as connection:
        return set(await connection.run_sync(_own_tables))


async def downgrade(engine: AsyncEngine) -> None:
    await _alembic(engine, lambda config: command.downgrade(config, "base"))


async def step_to(engine: AsyncEngine, revision: str) -> None:
    await _alembic(engine, lambda config: command.upgrade(config, revision))


async def _alembic(engine: AsyncEngine, action: Callable[[Config], None]) -> None:
    def act(connection: Connection) -> None:
        config = Config()
        config.set_main_option("script_location", str(migrate.MIGRATIONS))
        config.attributes["connection"] = connection
        action(config)

    async with engine.execution_options(sqlite_begin="IMMEDIATE").begin() as connection:
        await connection.run_sync(act)


async def test_the_migrations_match_the_tables(engine: AsyncEngine) -> None:
    await migrate.check(engine)
    assert await tables(engine) == TABLES | {"alembic_version"}


def ddl(connection: Connection) -> set[str]:
    """The statements that would create the database, line by line, because `ADD COLUMN` adds only at the end.

    Options of storage are left out: only migrations name them.
    """
    reflected = MetaData()
    reflected.reflect(connection)
    own = [table for table in reflected.sorted_tables if table.name in TABLES]
    lines = {
        f"{table.name}: {line.strip(' ,' + chr(9))}"
        for table in own
        for line in str(CreateTable(table).compile(connection)).splitlines()
        if "fillfactor" not in line
    }
    return lines | {str(CreateIndex(index).compile(connection)) for table in own for index in table.indexes}


def creatable(dialect: str) -> MetaData:
    """The tables. SQLite numbers rows only if the number is the whole primary key, as in the first migration."""
    copy = MetaData(naming_convention=metadata.naming_convention)
    for table in [each.to_metadata(copy) for each in metadata.sorted_tables]:
        key = table.primary_key.columns.keys()
        if dialect == "sqlite" and "id" in key and key != ["id"] and table.c.id.autoincrement is True:
            for name in key:
                table.c[name].primary_key = False
            table.append_constraint(PrimaryKeyConstraint("id"))
            table.append_constraint(UniqueConstraint(*key, name=f"uq_{table.name}_{'_'.join(key)}"))
    return copy


async def test_create_what_the_tables_describe(engine: AsyncEngine, database: str) -> None:
    """Columns with types and defaults, keys, constraints and indexes; `check` does not compare all of them."""
    async with engine.begin() as connection:
        migrated = await connection.run_sync(ddl)
        await connection.run_sync(metadata.drop_all)
        await connection.run_sync(creatable(database).create_all)
        assert await connection.run_sync(ddl) == migrated


async def test_every_key_of_a_tenant_starts_with_its_owner(engine: AsyncEngine) -> None:
    """Primary keys, unique constraints and foreign keys (D-101); the number of a row is SQLite's own key."""

    def without_owner(connection: Connection) -> list[str]:
        inspector, found = inspect(connection), list[str]()
        for table in sorted(TENANTS - {"users"}):
            own: list[Sequence[str | None]] = [inspector.get_pk_constraint(table)["constrained_columns"]]
            own += [unique["column_names"] for unique in inspector.get_unique_constraints(table)]
            own += [index["column_names"] for index in inspector.get_indexes(table) if index["unique"]]
            if connection.dialect.name == "sqlite" and own[0] == ["id"]:
                assert list(metadata.tables[table].primary_key.columns.keys()) in own[1:]
                del own[0]
            own += [key["constrained_columns"] for key in inspector.get_foreign_keys(table)]
            found += [f"{table}: {key}" for key in own if key[0] != "owner_id"]
            theirs = [key["referred_columns"] for key in inspector.get_foreign_keys(table)]
            found += [f"{table}: {key}" for key in theirs if key[0] != "owner_id" and key != ["id"]]
        return found

    async with engine.connect() as connection:
        assert await connection.run_sync(without_owner) == []


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


async def test_an_upgrade_twice_is_harmless(engine: AsyncEngine) -> None:
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
async def test_one_that_must_wait_pauses_for_other_statements(engine: AsyncEngine, next_step: NextStep) -> None:
    next_step(WORKS)
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


def columns(connection: Connection) -> dict[tuple[str, str], bool]:
    """(table, column): whether a row can be written without it."""
    inspector = inspect(connection)
    return {
        (table, column["name"]): column["nullable"] or column["default"] is not None
        for table in inspector.get_table_names()
        for column in inspector.get_columns(table)
    }


async def broken_for_the_version_before(engine: AsyncEngine) -> list[tuple[str, str]]:
    """The columns that the newest migration takes away, or without which older processes cannot write."""
    await downgrade(engine)
    steps = sorted(path.name[:4] for path in (migrate.MIGRATIONS / "versions").glob("[0-9]*.py"))
    broken: list[tuple[str, str]] = []
    before: dict[tuple[str, str], bool] = {}
    for step in steps:
        await step_to(engine, step)
        async with engine.connect() as connection:
            after = await connection.run_sync(columns)
        old_tables = {table for table, _ in before}
        broken += [name for name, free in before.items() if after.get(name) != free]
        broken += [name for name, free in after.items() if name[0] in old_tables and name not in before and not free]
        before = after
    return broken


async def test_remain_usable_by_the_previous_version(engine: AsyncEngine) -> None:
    """So that its processes go on while the next version's come up (docs/operations.md)."""
    assert await broken_for_the_version_before(engine) == []


@pytest.mark.thorough
@pytest.mark.parametrize(("work", "broken"), [(WORKS, []), *((work, [("users", name)]) for work, name in BREAKS)])
async def test_a_step_that_breaks_the_previous_version_is_seen(
    engine: AsyncEngine, next_step: NextStep, work: str, broken: list[tuple[str, str]]
) -> None:
    next_step(work)
    assert await broken_for_the_version_before(engine) == broken
