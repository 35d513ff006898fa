"""Where the two databases spell a statement differently."""

from typing import Any

from sqlalchemy import Table
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.ext.asyncio import AsyncSession


def insert_into(session: AsyncSession, table: Table) -> Any:
    """The dialect's INSERT, which knows ON CONFLICT."""
    return insert_by(session.get_bind().dialect.name, table)


def insert_by(dialect: str, table: Table) -> Any:
    """The same, by the dialect's name."""
    return (postgresql if dialect == "postgresql" else sqlite).insert(table)
