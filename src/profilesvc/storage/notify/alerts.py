"""Queries on the deliveries of alerts by e-mail: what an address knows of a site, what waits, and reminders."""

from collections.abc import Collection
from typing import NamedTuple

from sqlalchemy import and_, exists, func, insert, or_, select, update
from sqlalchemy.ext.asyncio import AsyncSession

from profilesvc.contract.alerts import DOWN
from profilesvc.database.statements import Executor, has_row
from profilesvc.storage.events import STATES
from profilesvc.storage.keys import live
from profilesvc.storage.notify.channels import to_channel
from profilesvc.storage.tables import channels, deliveries, events, holds, keys, watches


class Told(NamedTuple):
    """The last state of a key that was sent to an address: whether it works, its state and snooze."""

    works: bool = False
    state: str | None = None
    snoozed_until: int | None = None
    last_id: int | None = None  # the last event of its site
    type: str | None = None
    event_id: int | None = None  # the last event of it that the address got


async def told(session: Executor, owner_id: int, channel_id: int, event_id: int, now: int) -> Told:
    """Return what an address knows of the key of an event. A key that is deactivated or has ended does not work."""
    of_event = select(events.c.key_id).where(events.c.owner_id == owner_id, events.c.id == event_id)
    key_id = (await session.execute(of_event)).scalar_one_or_none()
    is_held = exists().where(holds.c.owner_id == owner_id, holds.c.key_id == key_id)
    of_site = events.c.owner_id == owner_id, events.c.key_id == key_id, events.c.type.in_(STATES)
    last_id = select(func.max(events.c.id)).where(*of_site).scalar_subquery().label("last_id")
    of_key = (
        select(and_(live(now), ~is_held).label("works"), watches.c.state, watches.c.snoozed_until, last_id)
        .select_from(keys.outerjoin(watches))
        .where(keys.c.owner_id == owner_id, keys.c.id == key_id)
    )
    key = (await session.execute(of_key)).first()
    query = (
        select(events.c.type, events.c.id.label("event_id"))
        .join(deliveries, (deliveries.c.owner_id == events.c.owner_id) & (deliveries.c.event_id == events.c.id))
        .where(*of_site, to_channel(owner_id, channel_id), deliveries.c.state == "delivered")
        .order_by(events.c.id.desc())
        .limit(1)
    )
    last = (await session.execute(query)).first()
    return Told() if key is None else Told(**key._asdict(), **({} if last is None else last._asdict()))


async def add_reminder(
    session: AsyncSession, owner_id: int, channel_id: int, event_id: int, besides: int, at: int
) -> None:
    """Queue an event again for a later time, unless another delivery of it than `besides` is pending."""
    key_id = select(events.c.key_id).where(events.c.owner_id == owner_id, events.c.id == event_id).scalar_subquery()
    of_key = select(func.max(events.c.id)).where(events.c.owner_id == owner_id, events.c.key_id == key_id)
    # The event has a new number if it was written again while the message was sent.
    number = (await session.execute(of_key.where(events.c.type.in_(DOWN)))).scalar_one() or event_id
    is_other = deliveries.c.event_id == number, deliveries.c.id != besides, deliveries.c.state == "pending"
    if not await has_row(session, select(deliveries.c.id).where(to_channel(owner_id, channel_id), *is_other)):
        row = {"owner_id": owner_id, "channel_id": channel_id, "event_id": number, "created_at": at}
        await session.execute(insert(deliveries).values(**row, next_at=at, state="pending"))


async def end_wait(session: AsyncSession, owner_id: int, times: Collection[int], now: int) -> None:
    """Make deliveries to e-mail addresses due that wait until these times; those that must wait longer wait again.

    So do those that a worker looks at just now, because it may postpone them to such a time. They are locked in the
    order of `deliveries.finishing`.
    """
    addresses = select(channels.c.id).where(channels.c.owner_id == owner_id, channels.c.kind == "email")
    waiting = select(deliveries.c.id).where(
        deliveries.c.owner_id == owner_id,
        deliveries.c.channel_id.in_(addresses),
        or_(deliveries.c.next_at.in_(times), deliveries.c.claimed_until.is_not(None)),
    )
    locked = waiting.order_by(deliveries.c.id).with_for_update(key_share=True)
    made_due = update(deliveries).where(deliveries.c.owner_id == owner_id, deliveries.c.id.in_(locked))
    await session.execute(made_due.values(next_at=now))
