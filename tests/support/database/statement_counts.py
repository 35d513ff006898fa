"""The statements of a request, and the number of its transactions that write."""

import contextlib
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from sqlalchemy import Connection, Engine, Executable, Result, event

from profilesvc.database.pool_usage import PoolUsage
from profilesvc.database.statements import FastReader, Readers
from profilesvc.services.context import Services

_ROWS = re.compile(r"\s*(SELECT|INSERT|UPDATE|DELETE|WITH)\b")
_WRITES = re.compile(r"\s*(INSERT|UPDATE|DELETE)\b")


@dataclass
class Sent:
    """The statements in their order, and the transactions that were committed after a write."""

    statements: list[str] = field(default_factory=list)
    transactions: int = 0

    @property
    def reads(self) -> list[str]:
        """The statements that change nothing."""
        return [each for each in self.statements if not _WRITES.match(each)]


@contextlib.contextmanager
def sent_by(services: Services) -> Iterator[Sent]:
    """Record what the service sends to its database during the block, on the driver and through SQLAlchemy."""
    sent, storage = Sent(), services.storage
    name, readers = storage.engine.url.database, storage.readers
    writing: set[Connection] = set()

    def executed(connection: Connection, _cursor: Any, statement: str, *_rest: Any) -> None:
        if connection.engine.url.database == name and _ROWS.match(statement):
            sent.statements.append(statement)
            if _WRITES.match(statement):
                writing.add(connection)

    def committed(connection: Connection) -> None:
        if connection in writing:
            sent.transactions += 1
            writing.discard(connection)

    event.listen(Engine, "before_cursor_execute", executed)
    event.listen(Engine, "commit", committed)
    storage.readers = _Recorded(readers, sent.statements)
    try:
        yield sent
    finally:
        storage.readers = readers
        event.remove(Engine, "before_cursor_execute", executed)
        event.remove(Engine, "commit", committed)


class _Recorded:
    """Readers that record the prepared statements, which do not pass through SQLAlchemy."""

    def __init__(self, readers: Readers, statements: list[str]) -> None:
        self._readers, self._statements = readers, statements

    @contextlib.asynccontextmanager
    async def open(self, seconds: float) -> Any:
        async with self._readers.open(seconds) as reader:
            yield _RecordedReader(reader, self._statements)

    def usage(self) -> PoolUsage | None:
        return self._readers.usage()

    async def close(self) -> None:
        await self._readers.close()


class _RecordedReader:
    def __init__(self, reader: FastReader, statements: list[str]) -> None:
        self._reader, self._statements = reader, statements
        self.dialect = reader.dialect

    async def fetch(self, sql: str, values: list[Any], /) -> Sequence[Any]:
        self._statements.append(sql)
        return await self._reader.fetch(sql, values)

    async def execute(self, statement: Executable, parameters: Any = None, /) -> Result[Any]:
        return await self._reader.execute(statement, parameters)
