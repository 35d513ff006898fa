"""Queries that delete expired and old rows, a batch at a time."""

from typing import Any

from sqlalchemy import Column, ColumnElement, delete, literal_column, or_, select, tuple_
from sqlalchemy.ext.asyncio import AsyncSession

from profilesvc.storage import tables
from profilesvc.storage.tables import insight as log_tables

# The column with the time that decides when a row of the table is old.
_AGES: dict[str, Column[int]] = {
    "audit": tables.audit.c.at,
    "syncs": tables.syncs.c.created_at,
    "revocations": tables.revocations.c.expires_at,
    "families": tables.families.c.expires_at,
    "exchanges": tables.exchanges.c.expires_at,
    "idempotency": tables.idempotency.c.created_at,
    "contacts": tables.contacts.c.started_at,
    "secrets": tables.secrets.c.expires_at,
    "key_domains": tables.key_domains.c.until,
    "leases": tables.leases.c.until,
    "deliveries": tables.deliveries.c.created_at,
    "events": tables.events.c.created_at,
    "mirrors": tables.mirrors.c.read_at,
    "notifications": tables.notifications.c.received_at,
    "photos": tables.photos.c.expires_at,
    "sessions": tables.sessions.c.expires_at,
    "key_usage": log_tables.key_usage.c.day,
    "request_log": log_tables.request_log.c.at,
}
# These rows are also kept until the time in this column, because an alert can be postponed for months.
_WAITING_UNTIL: dict[str, Column[int]] = {"deliveries": tables.deliveries.c.next_at}
PIECE = 5_000  # rows of one transaction, which take far less than the time limit of a statement


async def prune(session: AsyncSession, table: str, before: int) -> bool:
    """Delete the rows of a table before an instant, at most PIECE of them; return True if there may be more."""
    age = _AGES[table]
    # SQLite 3.40 finds only one row for a list of several columns if an index has them and the last is the rowid.
    is_sqlite = session.get_bind().dialect.name == "sqlite"
    columns: list[ColumnElement[Any]] = [literal_column("rowid")] if is_sqlite else list(age.table.primary_key)
    key, old = tuple_(*columns), select(*columns).select_from(age.table).where(age < before).limit(PIECE)
    if (until := _WAITING_UNTIL.get(table)) is not None:
        old = old.where(or_(until.is_(None), until < before))
    return len((await session.execute(delete(age.table).where(key.in_(old)).returning(age))).all()) == PIECE
