"""Statements of the hot paths: written as Core statements, compiled once, run on the database's own driver.

Building and compiling a statement costs several times as much as SQLite or PostgreSQL need to run it. A `Prepared` is
built at import, and compiled for a database at its first use.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, cast

from sqlalchemy import ColumnElement, Select, func, literal_column, select, true
from sqlalchemy.dialects.postgresql import asyncpg as postgresql
from sqlalchemy.dialects.sqlite import aiosqlite as sqlite

from profilesvc.database.engine import Executor
from profilesvc.database.writers import Executions

_DIALECTS = {"sqlite": sqlite.dialect(), "postgresql": postgresql.dialect()}  # type: ignore[no-untyped-call]


Positionals = list[tuple[str, object]]  # name and default of each positional value
Row = Sequence[Any]  # the columns of a row, whose types the statement decides


def _compiled(statement: Any, dialect: str, columns: Sequence[str] | None = None) -> tuple[str, Positionals]:
    compiled: Any = statement.compile(dialect=_DIALECTS[dialect], column_keys=columns)
    return str(compiled), [(name, compiled.params[name]) for name in compiled.positiontup or []]


def separated(text: ColumnElement[Any], separator: str) -> ColumnElement[Any]:
    """Join strings in an aggregate, null if there are none, because fetching rows costs more than finding them."""
    return func.aggregate_strings(text, literal_column(f"'{separator}'"))  # type: ignore[arg-type]  # in the text


def joined(texts: Select[Any], separator: str) -> ColumnElement[Any]:
    """Join the only column of a statement, in its order."""
    return select(separated(texts.subquery().c[0], separator)).scalar_subquery()


class Prepared:
    """A read with named parameters (`bindparam`), whose columns are strings and integers on both drivers."""

    def __init__(self, statement: Select[Any]) -> None:
        self.statement = statement
        self.width = len(statement.selected_columns)
        self._by_dialect: dict[str, tuple[str, dict[str, object], list[str]]] = {}
        self._with_prefetch: dict[Prepared, Prepared] = {}

    def sql(self, dialect: str, parameters: dict[str, object]) -> tuple[str, list[object]]:
        """Return the SQL and the positional values for a database."""
        compiled = self._by_dialect.get(dialect)
        if compiled is None:
            text, positionals = _compiled(self.statement, dialect)
            compiled = self._by_dialect[dialect] = text, dict(positionals), [name for name, _ in positionals]
        text, defaults, names = compiled
        values = defaults | parameters
        return text, [values[name] for name in names]

    def with_prefetch(self, other: "Prepared") -> "Prepared":
        """Return one statement for both: this row, then the first row of the other, or nulls if it has none."""
        if other not in self._with_prefetch:
            first, second = self.statement.subquery(), other.statement.limit(1).subquery()
            both = select(*first.c, *second.c).select_from(first.outerjoin(second, true()))
            self._with_prefetch[other] = Prepared(both)
        return self._with_prefetch[other]


class Prefetch(NamedTuple):
    """A read of one row in the statement that finds the caller.

    A prefetch with a `location` is only for keys of that location, so that timing does not reveal other locations;
    one without is only for users.
    """

    query: Prepared
    parameters: dict[str, object]
    location: str | None = None


class PreparedWrite:
    """A write with named parameters for many rows; `build` returns the statement for a dialect."""

    def __init__(self, build: Callable[[str], Any], columns: Sequence[str] | None = None) -> None:
        self._build, self._columns = build, columns
        self._by_dialect: dict[str, tuple[str, Positionals]] = {}

    def executions(self, dialect: str, rows: Sequence[Mapping[str, object]]) -> Executions:
        compiled = self._by_dialect.get(dialect)
        if compiled is None:
            compiled = self._by_dialect[dialect] = _compiled(self._build(dialect), dialect, self._columns)
        text, positionals = compiled
        return Executions(text, [[row.get(name, default) for name, default in positionals] for row in rows])


async def fetch(session: Executor, query: Prepared, **parameters: object) -> Sequence[Row]:
    """Return the rows as tuples: from the driver in a unit of reading, from the session in a transaction."""
    driver: Any = getattr(session, "fetch", None)
    if driver is not None:
        return cast(Sequence[Row], await driver(*query.sql(session.dialect, parameters)))  # type: ignore[attr-defined]
    return (await session.execute(query.statement, parameters)).all()


async def fetch_one(
    session: Executor, query: Prepared, prefetch: Prefetch | None, **parameters: object
) -> tuple[Row | None, Row]:
    """Return the only row, or None, and the prefetched row, which is empty without a prefetch."""
    if prefetch is None:
        rows = await fetch(session, query, **parameters)
        return (rows[0] if rows else None), ()
    rows = await fetch(session, query.with_prefetch(prefetch.query), **parameters, **prefetch.parameters)
    return (rows[0][: query.width], rows[0][query.width :]) if rows else (None, ())
