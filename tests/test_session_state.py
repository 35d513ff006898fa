"""Nothing depends on a session of PostgreSQL, because a pooler gives each transaction another one."""

from pathlib import Path

import pytest
from sqlalchemy.dialects import postgresql
from sqlalchemy.schema import CreateTable

import profilesvc
from profilesvc.storage.tables import metadata
from support.database.query_plans import prepared
from support.database.session_state import of_source, of_statement

ROOT = Path(profilesvc.__file__).parent
# Whether a pooler supports named statements is found out by one, in a connection that ends at once.
MEANT = {("database/pooler.py", "a prepared statement with a name")}


@pytest.mark.slow
def test_no_module_leaves_anything_in_a_session() -> None:
    found = {
        (str(path.relative_to(ROOT)), finding.kind): finding.line
        for path in ROOT.rglob("*.py")
        for finding in of_source(path.read_text("utf-8"))
    }
    assert set(found) == MEANT, found


def test_no_compiled_statement_leaves_anything_in_a_session() -> None:
    dialect = postgresql.dialect()  # type: ignore[no-untyped-call]
    tables = [str(CreateTable(table).compile(dialect=dialect)) for table in metadata.sorted_tables]
    statements = {*prepared("postgresql"), *tables}
    assert len(statements) > 50 > len(tables) > 20
    assert {statement: kinds for statement in statements if (kinds := of_statement(statement))} == {}


@pytest.mark.parametrize(
    "line",
    [
        'text("SELECT pg_advisory_lock(1)")',
        'text("SELECT pg_try_advisory_lock(1)")',
        'text("SELECT pg_advisory_xact_lock(1)")',
        "select(func.pg_advisory_lock(1))",
        'text("LISTEN keys")',
        'text("NOTIFY keys")',
        "func.pg_notify('keys', '')",
        "await connection.add_listener('keys', called)",
        'text("SET statement_timeout = 0")',
        'text(f"SET {name} = 0")',
        'text("SELECT 1; SET search_path TO x")',
        'text("SET SESSION CHARACTERISTICS AS TRANSACTION READ ONLY")',
        'text("RESET ALL")',
        "text(\"SELECT set_config('role', 'x', false)\")",
        "func.set_config('role', 'x', False)",
        'text("CREATE TEMP TABLE x (id int)")',
        'text(f"CREATE TEMPORARY TABLE {name} (id int)")',
        'Table("x", metadata, prefixes=["TEMPORARY"])',
        'text("DECLARE x CURSOR WITH HOLD FOR SELECT 1")',
        'text("PREPARE x AS SELECT 1")',
        'text("DEALLOCATE ALL")',
        "await connection.prepare(query, name='x')",
        "text(\"SELECT currval('keys_id_seq')\")",
        "func.lastval()",
        "connect(server_settings={'application_name': 'x', 'statement_timeout': '4s'})",
        "arguments = {'server_settings': {'jit': 'off'}}",
        "connect(server_settings=given)",
    ],
)
def test_the_scan_finds_state_of_a_session(line: str) -> None:
    """The control: each of these lines in a module would fail the first test."""
    module = (ROOT / "database" / "leases.py").read_text("utf-8")
    assert of_source(module) == []
    assert len(of_source(f"{module}\n\nasync def mutated():\n    {line}\n")) == 1


@pytest.mark.parametrize(
    "line",
    [
        'text("SET LOCAL lock_timeout = 0")',
        'text("SET TRANSACTION ISOLATION LEVEL SERIALIZABLE")',
        'text("UPDATE keys SET name = 1")',
        'text("ALTER ROLE x SET lock_timeout = 1")',
        'log.info("Set the variable")',
        '"""SET x = 1 in a docstring"""',
        "connect(server_settings={'application_name': 'x'})",
        "await connection.prepare(query)",
    ],
)
def test_the_scan_accepts_state_of_a_transaction(line: str) -> None:
    assert of_source(f"async def works():\n    {line}\n") == []
