"""Statements that the two databases spell differently."""

from typing import Any

from sqlalchemy import Table
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.ext.asyncio import AsyncSession


def insert_into(session: AsyncSession, table: Table) -> Any:
    """Return the dialect's INSERT, which has ON CONFLICT."""
    return insert_by(session.get_bind().dialect.name, table)


def insert_by(dialect: str, table: Table) -> Any:
    """Return the same, by the name of the dialect."""
    return (postgresql if dialect == "postgresql" else sqlite).insert(table)
