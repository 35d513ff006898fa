"""Failures of a database that are no defects: one that is down, refuses the login, is locked or full answers 503."""

import contextlib
import sqlite3
from collections.abc import Iterator

import asyncpg
import sqlalchemy.exc

from profilesvc.contract.errors import SERVICE_UNAVAILABLE
from profilesvc.domain.errors import ServiceError
from profilesvc.storage.tables import metadata

READ_ONLY = "25006"
_NO_PRIVILEGE = "42501"
_UNAVAILABLE = (
    sqlalchemy.exc.OperationalError,
    sqlalchemy.exc.InterfaceError,
    sqlalchemy.exc.TimeoutError,
    sqlite3.OperationalError,
    asyncpg.InterfaceError,
    asyncpg.InternalClientError,
    TimeoutError,
    OSError,
)
# PostgreSQL's codes and classes of codes. Lost: no connection is made or kept, or it is read-only, or the role may not
# use the tables (42501) or their schema (3F000), so that no request can be answered. Busy: lock, deadlock, cancelled,
# out of resources, disk.
_LOST = ("08", "28", "3D000", "3F000", _NO_PRIVILEGE, READ_ONLY, "53300", "57P01", "57P02", "57P03", "57P05")
_BUSY = ("25P03", "25P04", "40", "53", "55", "57", "58")


def sqlstate(error: BaseException) -> str:
    """PostgreSQL's code for a failure, "" for none; SQLAlchemy has it in the error that it wraps."""
    seen: BaseException | None = error
    while seen is not None:
        if code := getattr(seen, "sqlstate", None):
            return str(code)
        seen = getattr(seen, "orig", None) or seen.__cause__
    return ""


def is_for_writing(error: BaseException) -> bool:
    """Whether the database may still be read: it is read-only, or the role is."""
    return sqlstate(error) in (READ_ONLY, _NO_PRIVILEGE)


def reason(error: BaseException) -> str:
    """What the database or the driver reports, in one line; it holds no statement, parameter or password."""
    while (wrapped := getattr(error, "orig", None)) is not None:
        error = wrapped
    if isinstance(error, TimeoutError) and not error.strerror:
        return "no response in time"
    return next(iter(str(error).splitlines()), "") or type(error).__name__


def refusal(error: BaseException) -> ServiceError | None:
    """Return SERVICE_UNAVAILABLE for a database in trouble; None for a defect, such as a broken statement."""
    if isinstance(error, _UNAVAILABLE):
        return None if _is_wrong_statement(error) else _unavailable()
    if not isinstance(error, sqlalchemy.exc.DBAPIError | asyncpg.PostgresError):
        return None
    is_trouble = sqlstate(error).startswith((*_LOST, *_BUSY)) or _is_without_schema(error)
    return _unavailable() if is_trouble or getattr(error, "connection_invalidated", False) else None


def is_lost(error: BaseException) -> bool:
    """Whether the database cannot be used at all, or not for writing, as opposed to one that is busy or locked.

    A timeout alone does not say which.
    """
    if code := sqlstate(error):
        return code.startswith(_LOST) or _is_without_schema(error)
    return not isinstance(error, TimeoutError | sqlalchemy.exc.TimeoutError) and not _is_of_sqlite(error)


def _is_without_schema(error: BaseException) -> bool:
    """A table of ours is not found: the role may not use the schema. Of any other table it is the statement's fault."""
    return sqlstate(error) == "42P01" and any(f'"{name}"' in reason(error) for name in metadata.tables)


def _is_of_sqlite(error: BaseException) -> bool:
    return isinstance(getattr(error, "orig", error), sqlite3.Error)


def _unavailable() -> ServiceError:
    return ServiceError(SERVICE_UNAVAILABLE, retry_after=1)


@contextlib.contextmanager
def unavailable_as_refusal() -> Iterator[None]:
    """Raise `refusal` instead of what it is for."""
    try:
        yield
    except Exception as error:
        if (refused := refusal(error)) is not None:
            raise refused from error
        raise


def _is_wrong_statement(error: BaseException) -> bool:
    """SQLite calls a table that is not there an operational error too (SQLITE_ERROR); waiting would not help."""
    return getattr(getattr(error, "orig", error), "sqlite_errorcode", None) == sqlite3.SQLITE_ERROR
