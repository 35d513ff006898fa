"""Queries on idempotency keys. The unique constraint decides which request is first, not a check before the insert."""

from typing import NamedTuple

from sqlalchemy import ColumnElement, and_, delete, select, update
from sqlalchemy.ext.asyncio import AsyncSession

from profilesvc.database.statements import Executor, columns, has_row, insert_new, record
from profilesvc.storage.tables import idempotency


class StoredClaim(NamedTuple):
    """An idempotency key: which attempt holds it, until when, and the response."""

    fingerprint: str
    fence: int
    lease_until: int
    created_at: int
    status: int | None
    answer: str | None  # until the status is stored, the note of an attempt for the next one


def _is(owner_id: int, scope: str) -> ColumnElement[bool]:
    return and_(idempotency.c.owner_id == owner_id, idempotency.c.scope == scope)


async def insert_first(
    session: AsyncSession, owner_id: int, location: str, scope: str, fingerprint: str, now: int, lease_until: int
) -> bool:
    """Insert the first attempt with a key; return False if there is one already."""
    attempt = {"location_name": location, "fingerprint": fingerprint, "fence": 1, "lease_until": lease_until}
    return await insert_new(session, idempotency, owner_id=owner_id, scope=scope, created_at=now, **attempt)


async def find(session: Executor, owner_id: int, scope: str) -> StoredClaim | None:
    """Return the latest attempt with a key."""
    query = select(*columns(idempotency, StoredClaim._fields)).where(_is(owner_id, scope))
    return await record(session, StoredClaim, query)


async def take_over(session: AsyncSession, owner_id: int, scope: str, fence: int, successor: StoredClaim) -> bool:
    """Replace the attempt with that fence; return False if another request was first."""
    taken = update(idempotency).where(_is(owner_id, scope), idempotency.c.fence == fence)
    return await has_row(session, taken.values(**successor._asdict()).returning(idempotency.c.fence))


def _running(owner_id: int, scope: str, fence: int) -> ColumnElement[bool]:
    return and_(_is(owner_id, scope), idempotency.c.fence == fence, idempotency.c.status.is_(None))


async def write_note(session: AsyncSession, owner_id: int, scope: str, fence: int, note: str | None) -> bool:
    """Store a note for the next attempt; return False if another holder has taken over."""
    statement = update(idempotency).where(_running(owner_id, scope, fence)).values(answer=note)
    return await has_row(session, statement.returning(idempotency.c.scope))


async def finish(session: AsyncSession, owner_id: int, scope: str, fence: int, status: int, answer: str) -> bool:
    """Store the response; return False if another holder has taken over."""
    statement = update(idempotency).where(_running(owner_id, scope, fence)).values(status=status, answer=answer)
    return await has_row(session, statement.returning(idempotency.c.scope))


ANY_FINGERPRINT = ""  # the fingerprint of an attempt that may be followed by a corrected request


async def end_claim(
    session: AsyncSession, owner_id: int, scope: str, fence: int, now: int, can_be_corrected: bool = False
) -> None:
    """End the claim but keep the attempt: its effect is unknown, and the next attempt must take that into account."""
    values = {"lease_until": now} | ({"fingerprint": ANY_FINGERPRINT} if can_be_corrected else {})
    await session.execute(update(idempotency).where(_running(owner_id, scope, fence)).values(**values))


async def remove(session: AsyncSession, owner_id: int, scope: str, fence: int) -> None:
    """Delete an attempt that had no effect."""
    await session.execute(delete(idempotency).where(_running(owner_id, scope, fence)))
