"""The kinds of columns that recur, and the bases of the tables.

A field's annotation decides the type of its column and whether it can be null. The classes only declare tables: no row
is an object of one, so the fields have no defaults in Python, only those of the database.
"""

import re
from typing import Any

from sqlalchemy import BigInteger, ForeignKeyConstraint, Index, Integer, text
from sqlalchemy.orm import registry
from sqlmodel import Field, SQLModel

from profilesvc.database.schema import metadata

LARGEST = 2**63 - 1
ZERO = {"server_default": "0"}
_ID = BigInteger().with_variant(Integer, "sqlite")  # SQLite generates ids only for INTEGER PRIMARY KEY
_NUMBER = re.compile(f"[1-9][0-9]{{0,{len(str(LARGEST)) - 1}}}")  # Python converts no text of any length


def number() -> Any:
    """A number that the database generates. On SQLite only a primary key of one column can be one (the migration)."""
    return Field(primary_key=True, sa_type=_ID, sa_column_kwargs={"autoincrement": True})


def reference(*, primary_key: bool = False, index: bool = False) -> Any:
    """The number of a row in another table."""
    return Field(primary_key=primary_key, index=index, sa_type=_ID, sa_column_kwargs={"autoincrement": False})


def instant(*, primary_key: bool = False, index: bool = False, server_default: str | None = None) -> Any:
    """An instant in milliseconds."""
    kwargs = {"autoincrement": False, "server_default": server_default}
    return Field(primary_key=primary_key, index=index, sa_type=BigInteger, sa_column_kwargs=kwargs)


def counter(start: int = 0) -> Any:
    """A number that is raised."""
    return Field(sa_type=BigInteger, sa_column_kwargs={"server_default": str(start)})


class Table(SQLModel, registry=registry(metadata=metadata)):
    """The service's tables, apart from the emulator's."""


class Tenant(Table):
    """A table whose rows have an owner."""

    owner_id: int = reference(primary_key=True)


def of_owner(column: str, target: str) -> ForeignKeyConstraint:
    """A reference to another table of the same owner, such as `keys.id`."""
    return ForeignKeyConstraint(["owner_id", column], [f"{target.partition('.')[0]}.owner_id", target])


def partial_index(name: str, *columns: str, where: str, unique: bool = False) -> Index:
    """An index of the rows that fulfil a condition, which stays small however many others there are."""
    condition = text(where)
    return Index(name, *columns, unique=unique, sqlite_where=condition, postgresql_where=condition)


def number_of(text: str) -> int:
    """Return the number of a row in a path or a link; 0, which no row has, for any other string, such as `01`."""
    if not _NUMBER.fullmatch(text):
        return 0
    number = int(text)
    return number if number <= LARGEST else 0
