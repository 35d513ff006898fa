"""`profilesvc db distribute`: on a cluster, and what it says without one."""

import asyncio
import json
import os
from collections.abc import Iterator
from typing import TYPE_CHECKING

import asyncpg
import pytest
from sqlalchemy import text

from profilesvc.database import engine
from profilesvc.database.nodes import Node, first_problem
from profilesvc.domain.time import SystemClock, month_start
from profilesvc.storage.tables import distribution, metadata, partitions
from support.command_line import Run, refused
from support.database.citus import CITUS, on_a_cluster

if TYPE_CHECKING:
    from conftest import Cluster, Postgres

pytestmark = pytest.mark.postgres
FOREIGN_KEYS = "SELECT count(*) FROM pg_constraint WHERE contype = 'f' AND conrelid = ANY ($1::text[]::regclass[])"


def test_distribute_refuses_sqlite(run: Run) -> None:
    assert "SQLite cannot be distributed" in refused(run("db", "distribute"))


@pytest.mark.skipif(CITUS in os.environ, reason="its server has the extension")
def test_distribute_refuses_postgres_without_the_extension(
    run: Run, postgres: "Postgres", monkeypatch: pytest.MonkeyPatch
) -> None:
    postgres.create("plain")
    try:
        monkeypatch.setenv("PROFILESVC_DATABASE_URL", postgres.url("plain"))
        assert run("db", "upgrade").exit_code == 0
        assert "CREATE EXTENSION citus" in refused(run("db", "distribute"))
    finally:
        postgres.drop("plain")


FINE = Node("a:1", True, "14.0-1", True, "")


@pytest.mark.parametrize(
    ("node", "problem"),
    [
        (Node("b:2", False, "failed to connect to b:2", True, ""), "b:2 does not respond or rejects the login: failed"),
        (Node("b:2", False, None, True, ""), "b:2 does not respond"),
        (Node("b:2", True, "", True, ""), "b:2 has no extension citus"),
        (Node("b:2", True, "14.0-1", False, "SELECT start_metadata_sync_to_node('b', 2)"), "run SELECT start_metadata"),
        (Node("b:2", True, "13.2-1", True, ""), "13.2-1 at b:2, 14.0-1 at a:1"),
    ],
)
def test_a_problem_with_a_node_is_named(node: Node, problem: str) -> None:
    assert first_problem([FINE, FINE]) is None
    assert problem in (first_problem([FINE, node]) or "")


def test_every_table_has_a_step() -> None:
    steps = {step.table: step.statement for step in distribution.steps(8)}
    assert set(steps) == {"alembic_version", *metadata.tables}
    assert "'owner_id', colocate_with => 'users'" in steps["keys"]
    assert "'subject'" in steps["identities"], "all users may have the same issuer"


@on_a_cluster
class TestOnACluster:
    @pytest.fixture
    def cluster(self, postgres: "Cluster", monkeypatch: pytest.MonkeyPatch) -> Iterator["Cluster"]:
        postgres.create("fresh")
        monkeypatch.setenv("PROFILESVC_DATABASE_URL", postgres.url("fresh"))
        yield postgres
        postgres.drop("fresh")

    def test_distribute_does_what_its_dry_run_shows_and_then_nothing(self, run: Run, cluster: "Cluster") -> None:
        assert "Run `profilesvc db upgrade`" in refused(run("db", "distribute", "--dry-run"))
        assert run("db", "upgrade").exit_code == 0
        assert run("db", "seed").exit_code == 0
        before = run("users", "list").stdout
        shown = json.loads(run("db", "distribute", "--shards", "4", "--dry-run", "--json").stdout)
        assert json.loads(run("db", "distribute", "--shards", "4", "--dry-run", "--json").stdout) == shown
        ran = run("db", "distribute", "--shards", "4", "--json")
        done = json.loads(ran.stdout)
        assert ran.stderr.splitlines() == [f"profilesvc: {step['table']}: {step['action']}" for step in done]
        assert done[: len(shown)] == shown
        assert {step["action"] for step in done[len(shown) :]} == {"delete the copied rows"}
        again = run("db", "distribute", "--json")
        assert (json.loads(again.stdout), again.stderr) == ([], "profilesvc: all tables are distributed\n")
        assert run("users", "list").stdout == before
        rows = {row["name"]: row["status"] for row in json.loads(run("doctor", "--json").stdout)}
        assert (rows["nodes"], rows["readiness"]) == ("ok", "ok")

    def test_foreign_keys_hold_on_the_shards(self, run: Run, cluster: "Cluster") -> None:
        assert run("db", "upgrade").exit_code == 0
        expected = sum(len(table.foreign_key_constraints) for table in metadata.tables.values())
        assert run("db", "distribute", "--shards", "4").exit_code == 0

        async def check() -> None:
            for node in range(len(cluster.nodes.addresses)):
                connection = await cluster.nodes.connect("fresh", node)
                assert await connection.fetchval(FOREIGN_KEYS, list(metadata.tables)) == expected
                with pytest.raises(asyncpg.ForeignKeyViolationError):
                    await connection.execute("INSERT INTO businesses VALUES (1, 1, 'Of no user', 0)")
                await connection.close()

        asyncio.run(check())

    def test_a_distribution_that_was_interrupted_is_completed(self, run: Run, cluster: "Cluster") -> None:
        assert run("db", "upgrade").exit_code == 0
        for step in distribution.steps(4)[:7]:
            cluster.run(step.statement, "fresh")
        rows = {row["name"]: row for row in json.loads(run("doctor", "--json").stdout)}
        assert rows["nodes"]["message"] == f"one node has all rows of {len(distribution.steps(4)) - 7} tables"
        assert run("db", "distribute", "--shards", "4").exit_code == 0
        assert json.loads(run("db", "distribute", "--json").stdout) == []

    def test_a_worker_refuses_to_distribute_or_upgrade_but_serves(
        self, run: Run, cluster: "Cluster", monkeypatch: pytest.MonkeyPatch
    ) -> None:
        assert run("db", "upgrade").exit_code == 0
        assert run("db", "distribute", "--shards", "4").exit_code == 0
        monkeypatch.setenv("PROFILESVC_DATABASE_URL", cluster.url("fresh", 1))
        for command in ("distribute", "upgrade"):
            assert "set PROFILESVC_DATABASE_URL to the coordinator" in refused(run("db", command))
        assert run("users", "list").exit_code == 0
        assert run("db", "current").exit_code == 0

    def test_a_worker_with_tables_of_its_own_is_named(
        self, run: Run, cluster: "Cluster", monkeypatch: pytest.MonkeyPatch
    ) -> None:
        assert run("db", "upgrade").exit_code == 0

        async def create() -> None:
            connection = await cluster.nodes.connect("fresh", 1)
            await connection.execute("SET citus.enable_ddl_propagation = off; CREATE TABLE alembic_version (x text)")
            await connection.close()

        asyncio.run(create())
        host, port = cluster.nodes.addresses[1]
        assert f"{host}:{port} has its own" in refused(run("db", "distribute"))

    def test_sessions_on_all_nodes_plan_each_execution(
        self, run: Run, cluster: "Cluster", monkeypatch: pytest.MonkeyPatch
    ) -> None:
        assert run("db", "upgrade").exit_code == 0
        name = cluster.url("fresh").rpartition("/")[2]
        cluster.run(f"ALTER ROLE CURRENT_USER IN DATABASE {name} RESET plan_cache_mode", "fresh")
        rows = {row["name"]: row for row in json.loads(run("doctor", "--json").stdout)}
        assert "SET plan_cache_mode = force_custom_plan" in rows["plans"]["hint"]
        assert "time limits" not in rows
        assert run("db", "distribute", "--shards", "4").exit_code == 0
        for node in range(len(cluster.nodes.addresses)):
            monkeypatch.setenv("PROFILESVC_DATABASE_URL", cluster.url("fresh", node))
            rows = {row["name"]: row["status"] for row in json.loads(run("doctor", "--json").stdout)}
            assert "plans" not in rows, node
            assert rows["nodes"] == "ok"

    def test_partitions_of_months_are_distributed_too_and_left_to_the_coordinator(
        self, run: Run, cluster: "Cluster"
    ) -> None:
        assert run("db", "upgrade").exit_code == 0
        assert run("db", "distribute", "--shards", "4").exit_code == 0

        async def renewed(node: int, now: int, before: dict[str, int]) -> list[str]:
            database = engine.create_engine(cluster.url("fresh", node), 1)
            problems = await partitions.renew(database, now, before=before)
            await database.dispose()
            return problems

        async def names() -> set[str]:
            connection = await cluster.nodes.connect("fresh", 1)
            query = "SELECT CAST(CAST(logicalrelid AS regclass) AS text) FROM pg_dist_partition"
            found = {name for (name,) in await connection.fetch(query)}
            await connection.close()
            return {name for name in found if partitions.is_partition(name)}

        async def check() -> None:
            months, later = await names(), month_start(SystemClock().now(), 3)
            assert await renewed(1, later, {}) == [partitions.ON_A_WORKER]
            assert await names() == months
            assert await renewed(0, later, {"audit": later}) == []
            assert len(await names() - months) == len(partitions.MONTHLY) * 3
            assert len(months - await names()) == 3

        asyncio.run(check())

    def test_a_cluster_that_is_not_complete_is_refused(self, run: Run, cluster: "Cluster") -> None:
        assert run("db", "upgrade").exit_code == 0
        for remove, remedy in (
            ("groupid > 0", "citus_add_node('HOST', PORT)"),
            ("groupid = 0", "citus_set_coordinator_host('HOST', PORT)"),
        ):
            cluster.run(f"SELECT citus_remove_node(nodename, nodeport) FROM pg_dist_node WHERE {remove}", "fresh")
            assert remedy in refused(run("db", "distribute"))

    def test_the_table_of_a_new_migration_is_distributed_by_the_upgrade(self, run: Run, cluster: "Cluster") -> None:
        assert run("db", "upgrade").exit_code == 0
        assert run("db", "distribute", "--shards", "4").exit_code == 0

        async def undo() -> None:
            database = engine.create_engine(cluster.url("fresh"), 1)
            async with database.begin() as connection:
                await connection.execute(text("SELECT undistribute_table('idempotency')"))
            assert [step.table for step in await distribution.missing(database)] == ["idempotency"]
            await database.dispose()

        asyncio.run(undo())
        assert run("db", "upgrade").exit_code == 0
        assert json.loads(run("db", "distribute", "--json").stdout) == []
