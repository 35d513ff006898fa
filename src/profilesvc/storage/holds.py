"""Queries on holds, the reasons why keys are deactivated."""

from typing import NamedTuple

from sqlalchemy import ColumnElement, and_, delete, select, true
from sqlalchemy.ext.asyncio import AsyncSession

from profilesvc.database.statements import Executor, insert_into, records
from profilesvc.domain.keys import SEVERITY, Hold
from profilesvc.storage.keys import live
from profilesvc.storage.tables import holds, keys

Which = ColumnElement[bool]


class Changed(NamedTuple):
    """A key that a hold was added to or lifted from."""

    id: int
    client_id: str


def one_key(key_id: int) -> Which:
    """Select one key."""
    return keys.c.id == key_id


def every_key() -> Which:
    """Select every key."""
    return true()


def some_keys(ids: list[int]) -> Which:
    """Select some keys."""
    return keys.c.id.in_(ids)


def at_locations(names: list[str]) -> Which:
    """Select every key of some locations."""
    return keys.c.location_name.in_(names)


async def on_key(session: Executor, owner_id: int, key_id: int) -> list[Hold]:
    """Return the holds of a key, the most severe first."""
    is_on_key = (holds.c.owner_id == owner_id, holds.c.key_id == key_id)
    query = select(holds.c.reason, holds.c.set_at).where(*is_on_key).order_by(holds.c.severity.desc())
    return await records(session, Hold, query)


async def put(session: AsyncSession, owner_id: int, which: Which, reason: str, now: int) -> list[Changed]:
    """Add a hold to the owner's live keys among these that do not have it; return these keys."""
    has_reason = (holds.c.owner_id == owner_id, holds.c.key_id == keys.c.id, holds.c.reason == reason)
    held = select(holds.c.key_id).where(*has_reason).exists()
    is_free = (keys.c.owner_id == owner_id, which, live(now), ~held)
    query = select(keys.c.id, keys.c.client_id).where(*is_free).order_by(keys.c.id)
    changed = await records(session, Changed, query)
    if changed:
        hold = {"owner_id": owner_id, "reason": reason, "severity": SEVERITY[reason], "set_at": now}
        statement = insert_into(session, holds).on_conflict_do_nothing()
        await session.execute(statement, [{"key_id": key.id, **hold} for key in changed])
    return changed


async def lift(session: AsyncSession, owner_id: int, which: Which, reason: str) -> list[Changed]:
    """Lift a hold from the owner's keys among these that have it; return these keys."""
    query = (
        select(keys.c.id, keys.c.client_id)
        .join(holds, and_(holds.c.owner_id == keys.c.owner_id, holds.c.key_id == keys.c.id))
        .where(keys.c.owner_id == owner_id, which, holds.c.reason == reason)
        .order_by(keys.c.id)
    )
    changed = await records(session, Changed, query)
    if changed:
        ids = [key.id for key in changed]
        is_lifted = (holds.c.owner_id == owner_id, holds.c.key_id.in_(ids), holds.c.reason == reason)
        await session.execute(delete(holds).where(*is_lifted))
    return changed
