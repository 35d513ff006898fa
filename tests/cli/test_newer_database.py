"""A database that a newer version has migrated: old processes go on and may be started again, but never guess."""

import asyncio
import json
from typing import TYPE_CHECKING

import pytest

from profilesvc.database import migrate
from profilesvc.database.engine import create_engine
from profilesvc.settings import load
from support.command_line import Run, printed, refused

if TYPE_CHECKING:
    from conftest import Postgres


@pytest.mark.parametrize("lead", [1, 2, 3])
@pytest.mark.parametrize("kind", ["sqlite", "postgres"])
def test_a_database_of_a_newer_version_is_served_two_migrations_on_and_no_further(
    run: Run, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch, kind: str, lead: int
) -> None:
    if kind == "postgres":
        server: Postgres = request.getfixturevalue("postgres")
        server.create("newer")
        request.addfinalizer(lambda: server.drop("newer"))
        monkeypatch.setenv("PROFILESVC_DATABASE_URL", server.url("newer"))
    printed(run("db", "upgrade", "--json"))
    at = f"{int(migrate.head()) + lead:04}"
    asyncio.run(execute(f"UPDATE alembic_version SET version_num = '{at}'"))
    assert printed(run("db", "current", "--json"))["current"] == at
    found = {row["name"]: row for row in json.loads(run("doctor", "--json").stdout)}
    if lead <= 2:
        printed(run("users", "list", "--json"))
        assert printed(run("db", "upgrade", "--json"))["current"] == at
        assert found["migrations"]["status"] == found["readiness"]["status"] == "ok"
    else:
        said = f"is at revision {at}, and this version supports at most 2 after {migrate.head()}. Start a newer"
        assert said in refused(run("serve", "--port", "0"))
        assert (found["migrations"]["status"], found["migrations"]["hint"]) == (
            "fail",
            "run a newer version of profilesvc",
        )


async def execute(statement: str) -> None:
    engine = create_engine(load().effective_database_url, 1)
    async with engine.begin() as connection:
        await connection.exec_driver_sql(statement)
    await engine.dispose()
