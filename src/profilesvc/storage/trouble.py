"""What breaks underneath as one refusal: a database that is down, locked, slow or full answers 503."""

import contextlib
import sqlite3
from collections.abc import Iterator

import asyncpg
import sqlalchemy.exc

from profilesvc.contract.errors import SERVICE_UNAVAILABLE
from profilesvc.domain.errors import ServiceError

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


def refusal(error: Exception) -> ServiceError | None:
    """SERVICE_UNAVAILABLE with Retry-After for a database in trouble; None for a defect, such as a broken statement."""
    if isinstance(error, _UNAVAILABLE):
        return None if _is_wrong_statement(error) else _unavailable()
    is_database = isinstance(error, sqlalchemy.exc.DBAPIError | asyncpg.PostgresError)
    if is_database and (getattr(error, "connection_invalidated", False) or _is_timeout(error)):
        return _unavailable()
    return None


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


def _is_wrong_statement(error: Exception) -> bool:
    """SQLite calls a table that is not there an operational error too (SQLITE_ERROR); waiting would not help."""
    return getattr(getattr(error, "orig", error), "sqlite_errorcode", None) == sqlite3.SQLITE_ERROR


def _is_timeout(error: Exception) -> bool:
    """PostgreSQL: deadlock, lock not available, statement cancelled, out of resources, shutting down."""
    code = str(getattr(getattr(error, "orig", error), "sqlstate", "") or "")
    return code[:2] in {"08", "40", "53", "55", "57"}
