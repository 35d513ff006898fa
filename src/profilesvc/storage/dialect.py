"""Where the two databases spell a statement differently."""

from typing import Any

from sqlalchemy import Table
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.ext.asyncio import AsyncSession


def insert_into(session: AsyncSession, table: Table) -> Any:
    """The dialect's INSERT, which knows ON CONFLICT."""
    return (postgresql if session.get_bind().dialect.name == "postgresql" else sqlite).insert(table)
