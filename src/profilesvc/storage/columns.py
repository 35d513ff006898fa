"""Columns and references that the tables of all tenants share."""

from sqlalchemy import Column, ForeignKeyConstraint

from profilesvc.storage.directories import ID

LARGEST = 2**63 - 1
_DIGITS = len(str(LARGEST))


def owner() -> "Column[int]":
    """The first column of the primary key of a tenant's table."""
    return Column(ID, primary_key=True, autoincrement=False)


def number() -> "Column[int]":
    """A number that the database generates. On SQLite only a primary key of one column can be one (the migration)."""
    return Column(ID, primary_key=True, autoincrement=True)


def number_of(text: str) -> int:
    """Return the number of a row in a path or a link; 0, which no row has, for one that a database cannot store."""
    if not (text.isascii() and text.isdecimal() and len(text) <= _DIGITS):  # Python converts no text of any length
        return 0
    number = int(text)
    return number if number <= LARGEST else 0


def of_owner(column: str, target: str) -> ForeignKeyConstraint:
    """A reference to another table of the same owner, such as `keys.id`."""
    return ForeignKeyConstraint(["owner_id", column], [f"{target.partition('.')[0]}.owner_id", target])
