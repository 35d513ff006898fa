"""asyncpg as this service uses it: the URL and arguments of a connection, and how a connection ends."""

import asyncio
import contextlib
import inspect
from collections.abc import Iterator

import asyncpg
from sqlalchemy import URL, make_url
from sqlalchemy.exc import ArgumentError

BUSY_SECONDS = 4.5  # the limit of a unit of work, which leaves room for the response within 6 s
_CLOSE_SECONDS = 0.1
_OF_SQLALCHEMY = ("prepared_statement_cache_size", "prepared_statement_name_func")
_NAME = "application_name"


class DriverConnection(asyncpg.Connection):  # type: ignore[misc]  # the driver has no types
    """A connection that closes without waiting for the server, because a broken link never responds.

    After a cancelled command asyncpg waits until the server has confirmed the cancellation, and so does a ROLLBACK that
    follows, such as SQLAlchemy's after a failed ping. Here that ROLLBACK is skipped, because the connection is closed.
    """

    _is_cancelled = False

    async def execute(self, query: str, *args: object, **options: object) -> object:
        """Execute as the driver does, but skip a ROLLBACK on a connection that is about to be closed."""
        if self._is_cancelled and query.startswith("ROLLBACK"):
            return "ROLLBACK"
        with self._note_cancellation():
            return await super().execute(query, *args, **options)

    async def fetchrow(self, query: str, *args: object, **options: object) -> object:
        """Fetch as the driver does."""
        with self._note_cancellation():
            return await super().fetchrow(query, *args, **options)

    async def executemany(self, command: str, args: object, **options: object) -> object:
        """Execute as the driver does."""
        with self._note_cancellation():
            return await super().executemany(command, args, **options)

    async def close(self, *, timeout: float | None = None) -> None:  # noqa: ASYNC109  as the driver has it
        """Close the connection in order if the server responds at once, else cut it."""
        if self._is_cancelled:
            self.terminate()
        with contextlib.suppress(OSError):  # a timeout, or a server that is gone: it is cut all the same
            await super().close(timeout=min(timeout or _CLOSE_SECONDS, _CLOSE_SECONDS))

    @contextlib.contextmanager
    def _note_cancellation(self) -> Iterator[None]:
        try:
            yield
        except (TimeoutError, asyncio.CancelledError):
            self._is_cancelled = True
            raise


async def connect(*args: object, **arguments: object) -> asyncpg.Connection:
    """Connect as the driver does. PostgreSQL shows the name with the connection.

    The name is the only start-up parameter, because every pooler accepts it, and no other one. The server's time limits
    belong to the role instead (`time_limits.py`).

    Raises:
        ConnectionError: the socket is missing; the message names its folder.
    """
    name = arguments.pop(_NAME, "profilesvc")
    try:
        return await asyncpg.connect(*args, server_settings={"application_name": name}, **arguments)
    except FileNotFoundError as error:
        where = arguments.get("host") or "the default folder"
        raise ConnectionError(f"no server has its socket in {where}") from error


def connect_args(*, patient: bool = False) -> dict[str, object]:
    """Return the arguments of asyncpg.connect; `patient` sets no time limit on statements, for migrations.

    The unit of work limits the time of its commands and closes their connection. The driver's own limit is longer,
    because after it the connection waits until the server has confirmed the cancellation.
    """
    return {
        "timeout": BUSY_SECONDS,
        "command_timeout": None if patient else 2 * BUSY_SECONDS,
        "connection_class": DriverConnection,
    }


def parsed_url(text: str) -> URL:
    """Parse the URL of a database.

    Raises:
        ArgumentError: it is not a URL, or has a parameter that asyncpg does not accept.
    """
    url = make_url(text)
    accepted = (*inspect.signature(asyncpg.connect).parameters, *_OF_SQLALCHEMY, _NAME)
    for name in () if url.get_backend_name() == "sqlite" else url.query:
        if name not in accepted:
            hint = "; for TLS write ssl=require or ssl=verify-full" if name.startswith("ssl") else ""
            raise ArgumentError(f"{name} is not a parameter of the driver{hint}")
    return _for_several(url, "read-write")


def named(text: str, role: str) -> str:
    """Return the URL of a database with the name of its connections, unless the URL has one; none for no URL.

    The role is that of the process, and processes of one role have the same name: a pooler that gives a session to a
    client with another name sets the name first, which is one more round trip for each transaction (D-121).
    """
    url = make_url(text) if text else None
    if url is None or url.get_backend_name() == "sqlite" or _NAME in url.query:
        return text
    return url.update_query_dict({_NAME: f"profilesvc {role}"}).render_as_string(hide_password=False)


def standby_url(text: str) -> str:
    """Return the URL of a replica, which is the standby of several hosts unless the URL asks for another."""
    return _for_several(make_url(text), "standby").render_as_string(hide_password=False)


def _for_several(url: URL, attributes: str) -> URL:
    """Connect to the one of several hosts that has these attributes, unless the URL asks for another."""
    has_several = isinstance(url.query.get("host"), tuple) and "target_session_attrs" not in url.query
    return url.update_query_dict({"target_session_attrs": attributes}) if has_several else url
