"""Database errors that are not defects: it is down, rejects the login, is locked or full. Callers get a 503."""

import contextlib
import errno
import sqlite3
from collections.abc import Iterator

import asyncpg
import sqlalchemy.exc

from profilesvc.contract.errors import SERVICE_UNAVAILABLE
from profilesvc.database.schema import metadata
from profilesvc.domain.errors import ServiceError

READ_ONLY = "25006"
_NO_PRIVILEGE = "42501"
DISK_FULL = "the disk is full"
_FULL_DISK, _FAILED_DISK = "53100", "58030"  # PostgreSQL's codes
# SQLite's: the disk is full or fails, the file or its folder is read-only, or a file cannot be opened. Reads may work.
_NOT_STORED = {sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR, sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN}
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
# PostgreSQL's codes and classes of codes. Lost: connections fail, the server is read-only, or the role may not use the
# tables (42501) or their schema (3F000), so that every request fails. Busy: lock, deadlock, cancelled, no resources,
# disk full.
_LOST = ("08", "28", "3D000", "3F000", _NO_PRIVILEGE, READ_ONLY, "53300", "57P01", "57P02", "57P03", "57P05")
_BUSY = ("25P03", "25P04", "40", "53", "55", "57", "58")
# Citus reports a node that it lost during a statement or a commit, whose outcome is then unknown, with the code of
# internal errors, and with a message of its own or of PostgreSQL's client library.
_INTERNAL = "XX000"
_LOST_NODE = (
    "could not commit transaction for shard",
    "server closed the connection",
    "could not receive data from server",
    "could not send data to server",
    "no connection to the server",
    "connection not open",
)


def sqlstate(error: BaseException) -> str:
    """Return PostgreSQL's code of an error, or "" if it has none; SQLAlchemy wraps the error that has it."""
    cause: BaseException | None = error
    while cause is not None:
        if code := getattr(cause, "sqlstate", None):
            return str(code)
        cause = getattr(cause, "orig", None) or cause.__cause__
    return ""


def is_for_writing(error: BaseException) -> bool:
    """Return whether only writes fail: the database or the role is read-only, or the disk is full or fails."""
    return sqlstate(error) in (READ_ONLY, _NO_PRIVILEGE) or _is_of_disk(error)


def _sqlite_code(error: BaseException) -> int:
    """Return SQLite's primary code of an error, or 0."""
    return (getattr(getattr(error, "orig", None) or error, "sqlite_errorcode", None) or 0) & 0xFF


def _is_full(error: BaseException) -> bool:
    return (
        _sqlite_code(error) == sqlite3.SQLITE_FULL
        or sqlstate(error) == _FULL_DISK
        or (isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT))
    )


def _is_of_disk(error: BaseException) -> bool:
    return _is_full(error) or _sqlite_code(error) in _NOT_STORED or sqlstate(error) == _FAILED_DISK


def is_of_another_node(error: BaseException) -> bool:
    """Return whether a node of a cluster reports that it lost another one; its own connection is intact."""
    while (wrapped := getattr(error, "orig", None) or error.__cause__) is not None:
        error = wrapped
    return isinstance(error, asyncpg.PostgresConnectionError) and error.severity_en == "ERROR"


def reason(error: BaseException) -> str:
    """Return the message of the database or driver in one line, without statement, parameters or password."""
    if _is_full(error):
        return DISK_FULL
    while (wrapped := getattr(error, "orig", None)) is not None:
        error = wrapped
    if isinstance(error, TimeoutError) and not error.strerror:
        return "no response in time"
    return next(iter(str(error).splitlines()), "") or type(error).__name__


def as_unavailable(error: BaseException) -> ServiceError | None:
    """Return SERVICE_UNAVAILABLE if the database is unavailable, or None for a defect, such as a broken statement."""
    if isinstance(error, _UNAVAILABLE):
        is_wrong = getattr(getattr(error, "orig", error), "sqlite_errorcode", None) == sqlite3.SQLITE_ERROR
        return None if is_wrong else _unavailable()  # a statement with an unknown table, which a retry does not help
    if not isinstance(error, sqlalchemy.exc.DBAPIError | asyncpg.PostgresError):
        return None
    code = sqlstate(error)
    has_lost_node = code == _INTERNAL and any(text in reason(error) for text in _LOST_NODE)
    is_unavailable = code.startswith((*_LOST, *_BUSY)) or has_lost_node or _is_without_schema(error)
    return _unavailable() if is_unavailable or getattr(error, "connection_invalidated", False) else None


def is_lost(error: BaseException) -> bool:
    """Return whether the database cannot be used at all, or not for writing; a busy or locked one can.

    A timeout without a code could be either and counts as busy.
    """
    if is_of_another_node(error):  # which other requests do not need
        return False
    if _is_of_disk(error):
        return True
    if code := sqlstate(error):
        return code.startswith(_LOST) or _is_without_schema(error)
    is_of_sqlite = isinstance(getattr(error, "orig", error), sqlite3.Error)
    return not is_of_sqlite and not isinstance(error, TimeoutError | sqlalchemy.exc.TimeoutError)


def _is_without_schema(error: BaseException) -> bool:
    """Return whether one of the service's tables is missing: the role may not use the schema. Others are a defect."""
    return sqlstate(error) == "42P01" and any(f'"{name}"' in reason(error) for name in metadata.tables)


def _unavailable() -> ServiceError:
    return ServiceError(SERVICE_UNAVAILABLE, retry_after=1)


@contextlib.contextmanager
def raising_unavailable() -> Iterator[None]:
    """Raise the result of `as_unavailable` in place of the error."""
    try:
        yield
    except Exception as error:
        if (unavailable := as_unavailable(error)) is not None:
            raise unavailable from error
        raise
