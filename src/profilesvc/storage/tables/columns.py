"""Columns and references that the tables of all tenants share."""

import re

from sqlalchemy import Column, ForeignKeyConstraint

from profilesvc.storage.tables.directories import ID

LARGEST = 2**63 - 1
_NUMBER = re.compile(f"[1-9][0-9]{{0,{len(str(LARGEST)) - 1}}}")  # Python converts no text of any length


def owner() -> "Column[int]":
    """The first column of the primary key of a tenant's table."""
    return Column(ID, primary_key=True, autoincrement=False)


def number() -> "Column[int]":
    """A number that the database generates. On SQLite only a primary key of one column can be one (the migration)."""
    return Column(ID, primary_key=True, autoincrement=True)


def number_of(text: str) -> int:
    """Return the number of a row in a path or a link; 0, which no row has, for any other string.

    A number has one spelling, so that it is in one address only: `01` is none.
    """
    if not _NUMBER.fullmatch(text):
        return 0
    number = int(text)
    return number if number <= LARGEST else 0


def of_owner(column: str, target: str) -> ForeignKeyConstraint:
    """A reference to another table of the same owner, such as `keys.id`."""
    return ForeignKeyConstraint(["owner_id", column], [f"{target.partition('.')[0]}.owner_id", target])
