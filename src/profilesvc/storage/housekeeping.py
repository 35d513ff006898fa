"""What has had its time is deleted, a piece at a time."""

from typing import Literal

from sqlalchemy import Column, delete, func, select, tuple_
from sqlalchemy.ext.asyncio import AsyncSession

from profilesvc.storage import tables

What = Literal[
    "audit", "syncs", "revocations", "families", "exchanges", "idempotency", "contacts", "secrets", "key_domains"
]
_AGES: dict[What, Column[int]] = {
    "audit": tables.audit.c.at,
    "syncs": tables.syncs.c.created_at,
    "revocations": tables.revocations.c.expires_at,
    "families": tables.families.c.expires_at,
    "exchanges": tables.exchanges.c.expires_at,
    "idempotency": tables.idempotency.c.created_at,
    "contacts": tables.contacts.c.ended_at,
    "secrets": tables.secrets.c.expires_at,
    "key_domains": tables.key_domains.c.until,
}
_TURN = 0x70726F66  # names this work among PostgreSQL's advisory locks
PIECE = 5_000  # rows of one transaction: far below the time that a statement may take


async def prune(session: AsyncSession, what: What, before: int) -> bool:
    """Delete a piece of what is older than an instant; True when there may be more."""
    age = _AGES[what]
    key = tuple_(*age.table.primary_key)
    old = select(*age.table.primary_key).where(age < before).limit(PIECE)
    return len((await session.execute(delete(age.table).where(key.in_(old)).returning(age))).all()) == PIECE


async def is_mine(session: AsyncSession) -> bool:
    """True for one process at a time, until its transaction ends; SQLite has one process."""
    if session.get_bind().dialect.name != "postgresql":
        return True
    return bool((await session.execute(select(func.pg_try_advisory_xact_lock(_TURN)))).scalar_one())
