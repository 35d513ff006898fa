"""Expected failures of commands: one clear line on stderr and exit code 1, never a traceback."""

import os
import socket
import sqlite3
from pathlib import Path
from typing import Any

import typer
from typer.core import TyperGroup

from profilesvc.cli.show import printable

_DAMAGED = (sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_CORRUPT)
_NOT_OPENED = (sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_READONLY, sqlite3.SQLITE_IOERR, sqlite3.SQLITE_FULL)
# By the start of PostgreSQL's error code.
_KINDS = [
    ("28P01", "the database rejects the login", "check the user and the password in PROFILESVC_DATABASE_URL"),
    (
        "28",
        "the database rejects the login",
        "check the user in PROFILESVC_DATABASE_URL and pg_hba.conf; `peer` needs the system user of that name",
    ),
    (
        "3D000",
        "the database rejects the connection",
        "check the database name in PROFILESVC_DATABASE_URL, or create the database",
    ),
    ("42501", "the database denies access", "grant the privilege to the user in PROFILESVC_DATABASE_URL"),
    ("25006", "the database is read-only", "set PROFILESVC_DATABASE_URL to the primary"),
    (
        "53300",
        "the database has no free connection",
        "raise its max_connections or lower PROFILESVC_DATABASE_POOL_SIZE",
    ),
]


class Commands(TyperGroup):
    """The root group of all commands."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Read the words of the command line. Reject bytes that are not UTF-8, because no database stores them."""
        for word in args:
            if any("\ud800" <= char <= "\udfff" for char in word):
                raise typer.BadParameter(f"'{printable(word)}' is not UTF-8", ctx)
        return super().parse_args(ctx, args)

    def invoke(self, ctx: Any) -> object:
        """Run the command. Print an expected failure as one line and exit with 1."""
        try:
            return super().invoke(ctx)
        except BrokenPipeError:  # the reader of the output has ended, such as `head`; Click exits with 1
            raise
        except Exception as error:
            line = expected(error)
            if line is None:
                raise
            typer.echo(f"profilesvc: {printable(line)}", err=True)
            raise typer.Exit(1) from None


def expected(error: Exception) -> str | None:
    """Return one line for an expected failure, or None for a defect."""
    from profilesvc.contract.errors import SERVICE_UNAVAILABLE
    from profilesvc.domain.errors import ServiceError
    from profilesvc.settings import SettingsError

    if isinstance(error, ServiceError):
        if error.kind is SERVICE_UNAVAILABLE and isinstance(error.__cause__, Exception):
            return expected(error.__cause__) or error.message
        return error.message
    if isinstance(error, SettingsError):
        return str(error)
    return _database(error) or (_system(error) if isinstance(error, OSError) else None)


def _system(error: OSError) -> str:
    """Name the setting of a file or of a host that cannot be used."""
    if isinstance(error, socket.gaierror):
        return f"PROFILESVC_DATABASE_URL: the name of the host cannot be resolved: {error.strerror}"
    if not isinstance(error.filename, str | bytes):
        return _one_line(error)
    file = os.fsdecode(error.filename)
    text = f"{file}: {error.strerror}"
    return f"{name}: {text}" if (name := _setting_of(Path(file))) else text


def _setting_of(file: Path) -> str | None:
    """Return the setting whose folder has a file, or would have it."""
    from profilesvc.settings import SettingsError, load

    try:
        folder = load().data_dir.absolute()
    except SettingsError:
        return None
    file = file.absolute()
    return "PROFILESVC_DATA_DIR" if file.is_relative_to(folder) or folder.is_relative_to(file) else None


def _database(error: Exception) -> str | None:
    from sqlalchemy import exc

    from profilesvc.database.unavailable import as_unavailable, reason, sqlstate

    failures = (exc.OperationalError, exc.InterfaceError, exc.TimeoutError, TimeoutError, ConnectionError)
    code = sqlstate(error)
    if isinstance(error, exc.ArgumentError):
        return f"PROFILESVC_DATABASE_URL: {_one_line(error)}"
    if _sqlite_code(error) in _DAMAGED:
        return f"the file of the database is damaged: {reason(error)}; restore a backup as in docs/backups.md"
    if not isinstance(error, failures) and (not code or as_unavailable(error) is None):
        return None
    cause = reason(error)
    for start, failure, hint in _KINDS:
        if code.startswith(start):
            return f"{failure}: {cause}; {hint}"
    if _sqlite_code(error) in _NOT_OPENED:
        return f"the file of the database cannot be used: {cause}; check PROFILESVC_DATA_DIR, its owner and its disk"
    hint = "" if _sqlite_code(error) else "; check PROFILESVC_DATABASE_URL"
    return f"the database does not respond: {cause}{hint}"


def _sqlite_code(error: BaseException) -> int:
    return int(getattr(getattr(error, "orig", error), "sqlite_errorcode", 0)) & 0xFF


def _one_line(error: BaseException) -> str:
    return next(iter(str(error).splitlines()), type(error).__name__)
