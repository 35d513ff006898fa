"""Columns and references that the tables of all tenants share."""

from sqlalchemy import Column, ForeignKeyConstraint

from profilesvc.storage.directories import ID


def owner() -> "Column[int]":
    """The first column of the primary key of a tenant's table."""
    return Column(ID, primary_key=True, autoincrement=False)


def number() -> "Column[int]":
    """A number that the database generates. On SQLite only a primary key of one column can be one (the migration)."""
    return Column(ID, primary_key=True, autoincrement=True)


def of_owner(column: str, target: str) -> ForeignKeyConstraint:
    """A reference to another table of the same owner, such as `keys.id`."""
    return ForeignKeyConstraint(["owner_id", column], [f"{target.partition('.')[0]}.owner_id", target])
