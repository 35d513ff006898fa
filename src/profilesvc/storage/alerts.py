"""Queries on the deliveries of alerts by e-mail: what an address knows of a site, what waits, and reminders."""

from typing import NamedTuple

from sqlalchemy import and_, exists, func, insert, select, update
from sqlalchemy.ext.asyncio import AsyncSession

from profilesvc.contract.alerts import DOWN
from profilesvc.database.statements import Executor
from profilesvc.storage.events import STATES
from profilesvc.storage.keys import live
from profilesvc.storage.tables import deliveries, events, holds, keys, watches


class Told(NamedTuple):
    """What an address knows of a key: whether the key works, its state and snooze, the number of the last event of its
    site, and the last one that the address got.
    """

    works: bool = False
    state: str | None = None
    snoozed_until: int | None = None
    last_id: int | None = None
    type: str | None = None
    event_id: int | None = None


async def told(session: Executor, owner_id: int, channel_id: int, event_id: int, now: int) -> Told:
    """Return what an address knows of the key of an event. A key that is deactivated or has ended does not work."""
    of_event = select(events.c.key_id).where(events.c.owner_id == owner_id, events.c.id == event_id)
    key_id = (await session.execute(of_event)).scalar_one_or_none()
    is_held = exists().where(holds.c.owner_id == owner_id, holds.c.key_id == key_id)
    of_site = events.c.owner_id == owner_id, events.c.key_id == key_id, events.c.type.in_(STATES)
    last_id = select(func.max(events.c.id)).where(*of_site).scalar_subquery()
    of_key = (
        select(and_(live(now), ~is_held).label("works"), watches.c.state, watches.c.snoozed_until, last_id)
        .select_from(keys.outerjoin(watches))
        .where(keys.c.owner_id == owner_id, keys.c.id == key_id)
    )
    key = (await session.execute(of_key)).first()
    query = (
        select(events.c.type, events.c.id)
        .join(deliveries, (deliveries.c.owner_id == events.c.owner_id) & (deliveries.c.event_id == events.c.id))
        .where(
            *of_site,
            deliveries.c.owner_id == owner_id,
            deliveries.c.channel_id == channel_id,
            deliveries.c.state == "delivered",
        )
        .order_by(events.c.id.desc())
        .limit(1)
    )
    last = (await session.execute(query)).first()
    return Told() if key is None else Told(*key, *(last or ()))


async def add_reminder(
    session: AsyncSession, owner_id: int, channel_id: int, event_id: int, besides: int, at: int
) -> None:
    """Queue an event again for a later time, unless another delivery of it than `besides` is pending.

    It has a new number if it was written again while the message was sent.
    """
    key_id = select(events.c.key_id).where(events.c.owner_id == owner_id, events.c.id == event_id).scalar_subquery()
    of_key = select(func.max(events.c.id)).where(events.c.owner_id == owner_id, events.c.key_id == key_id)
    number = (await session.execute(of_key.where(events.c.type.in_(DOWN)))).scalar_one() or event_id
    pending = select(deliveries.c.id).where(
        deliveries.c.owner_id == owner_id,
        deliveries.c.channel_id == channel_id,
        deliveries.c.event_id == number,
        deliveries.c.id != besides,
        deliveries.c.state == "pending",
    )
    if (await session.execute(pending)).first() is None:
        row = {"owner_id": owner_id, "channel_id": channel_id, "event_id": number, "created_at": at}
        await session.execute(insert(deliveries).values(**row, next_at=at, state="pending"))


async def end_wait(session: AsyncSession, owner_id: int, until: int, now: int) -> None:
    """Make the deliveries due that wait until a time; those that must wait longer will be postponed again."""
    waiting = (deliveries.c.owner_id == owner_id, deliveries.c.next_at == until, deliveries.c.claimed_until.is_(None))
    await session.execute(update(deliveries).where(*waiting).values(next_at=now))
