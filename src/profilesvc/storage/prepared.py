"""Reads of the hot paths: written as Core statements, compiled once, run on the database's own driver.

Building and compiling a statement costs several times what SQLite or PostgreSQL need to answer it. A `Prepared` is
built at import; each database's SQL and order of parameters are worked out at its first use.
"""

from collections.abc import Sequence
from typing import Any, cast

from sqlalchemy import Select
from sqlalchemy.dialects.postgresql import asyncpg as postgresql
from sqlalchemy.dialects.sqlite import aiosqlite as sqlite

from profilesvc.storage.engine import Executor

_DIALECTS = {"sqlite": sqlite.dialect(), "postgresql": postgresql.dialect()}  # type: ignore[no-untyped-call]


class Prepared:
    """A read with named parameters (`bindparam`); its columns are texts and integers, as both drivers give them."""

    def __init__(self, statement: Select[Any]) -> None:
        self.statement = statement
        self._compiled: dict[str, tuple[str, list[tuple[str, Any]]]] = {}

    def sql(self, dialect: str, parameters: dict[str, Any]) -> tuple[str, list[Any]]:
        """The text and the positional values for a database."""
        known = self._compiled.get(dialect)
        if known is None:
            known = self._compiled[dialect] = self._compile(dialect)
        text, places = known
        return text, [parameters.get(name, default) for name, default in places]

    def _compile(self, dialect: str) -> tuple[str, list[tuple[str, Any]]]:
        compiled: Any = self.statement.compile(dialect=_DIALECTS[dialect])
        return str(compiled), [(name, compiled.params[name]) for name in compiled.positiontup or []]


async def fetch(session: Executor, query: Prepared, **parameters: Any) -> Sequence[Any]:
    """The rows as tuples: by the driver where the unit of work has one at hand, by the session in a transaction."""
    driver: Any = getattr(session, "fetch", None)
    if driver is not None:
        return cast(Sequence[Any], await driver(*query.sql(session.dialect, parameters)))  # type: ignore[attr-defined]
    return (await session.execute(query.statement, parameters)).all()
