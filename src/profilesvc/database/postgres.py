"""PostgreSQL's driver as this service uses it: what it is told when it connects, and how a connection ends."""

import asyncio
import contextlib
from collections.abc import Iterator
from typing import Any

import asyncpg

BUSY_SECONDS = 4.5  # what a unit of work may take; room for the answer in the 6 s that a caller may wait (A104)
_CLOSE_SECONDS = 0.1


class DriverConnection(asyncpg.Connection):  # type: ignore[misc]  # the driver has no types
    """A connection that nobody waits for at its end, for a broken link does not tell of one.

    After a command that was given up the driver waits until the server has heard of that. So would whoever then rolls
    back, as SQLAlchemy does when it looks whether a connection is good: here that is left to the end that follows.
    """

    _is_given_up = False

    async def execute(self, query: str, *args: Any, **options: Any) -> Any:
        """As the driver, but for what is to be rolled back on a connection that is about to be closed."""
        if self._is_given_up and query.startswith("ROLLBACK"):
            return "ROLLBACK"
        with self._noticing():
            return await super().execute(query, *args, **options)

    async def fetchrow(self, query: str, *args: Any, **options: Any) -> Any:
        """As the driver."""
        with self._noticing():
            return await super().fetchrow(query, *args, **options)

    async def executemany(self, command: str, args: Any, **options: Any) -> Any:
        """As the driver."""
        with self._noticing():
            return await super().executemany(command, args, **options)

    async def close(self, *, timeout: float | None = None) -> None:  # noqa: ASYNC109  as the driver has it
        """Close in order if that can be done at once."""
        if self._is_given_up:
            self.terminate()
        with contextlib.suppress(TimeoutError):
            await super().close(timeout=min(timeout or _CLOSE_SECONDS, _CLOSE_SECONDS))

    @contextlib.contextmanager
    def _noticing(self) -> Iterator[None]:
        try:
            yield
        except (TimeoutError, asyncio.CancelledError):
            self._is_given_up = True
            raise


async def connect(*words: Any, **arguments: Any) -> Any:
    """Connect as the driver does. ConnectionError with the folder if the socket is missing."""
    try:
        return await asyncpg.connect(*words, **arguments)
    except FileNotFoundError as error:
        where = arguments.get("host") or "the default folder"
        raise ConnectionError(f"no server has its socket in {where}") from error


def connect_args(*, patient: bool = False) -> dict[str, Any]:
    """What asyncpg is told; who is `patient` lets a statement take as long as it takes, as a migration does.

    The unit of work watches over the time of its commands, and ends their connection: were the driver's own clock as
    short, it would leave the connection waiting for the end of what it gave up. The server ends what a lost connection
    has begun: it would keep its locks until the network tells of the loss.
    """
    in_time = {"lock_timeout": "4000", "statement_timeout": "4000", "idle_in_transaction_session_timeout": "5000"}
    return {
        "timeout": BUSY_SECONDS,
        "command_timeout": None if patient else 2 * BUSY_SECONDS,
        "connection_class": DriverConnection,
        "server_settings": {"application_name": "profilesvc", **({} if patient else in_time)},
    }
