"""Queries on the events of owners."""

from collections.abc import Collection
from typing import NamedTuple

from sqlalchemy import BigInteger, String, and_, exists, func, insert, literal, or_, select, update
from sqlalchemy.ext.asyncio import AsyncSession

from profilesvc.contract.events import EventType
from profilesvc.database.engine import at_the_end
from profilesvc.database.statements import Executor, columns, insert_into, record, records
from profilesvc.domain.heartbeats import DOWN
from profilesvc.storage.tables import channels, deliveries, event_heads, events, keys, locations, watches

STATES: tuple[EventType, ...] = ("connection.online", "connection.offline", "connection.never_connected")
_PENDING = "profilesvc.events"  # in `session.info`


class NewEvent(NamedTuple):
    """An event before it has a number; `data` is JSON."""

    type: EventType
    data: str
    key_id: int | None = None
    location_name: str | None = None


class StoredPublishedEvent(NamedTuple):
    """An event with its number."""

    id: int
    created_at: int
    type: EventType
    data: str


_PUBLISHED = select(*columns(events, StoredPublishedEvent._fields))


def add(session: AsyncSession, owner_id: int, new: list[NewEvent], now: int) -> None:
    """Append events of an owner when the transaction ends, and a delivery for each channel that receives them."""
    if _PENDING not in session.info:
        session.info[_PENDING] = {}
        at_the_end(session, _write)
    session.info[_PENDING].setdefault(owner_id, []).extend((event, now) for event in new)


async def _write(session: AsyncSession) -> None:
    # Each owner's newest number stays locked until the commit. Two transactions that lock in one order cannot deadlock.
    for owner_id, new in sorted(session.info.pop(_PENDING).items()):
        await _append(session, owner_id, new)


async def _append(session: AsyncSession, owner_id: int, new: list[tuple[NewEvent, int]]) -> None:
    first = await _numbers(session, owner_id, len(new))
    last = first + len(new) - 1
    rows = [
        {"owner_id": owner_id, "id": number, "created_at": now, **event._asdict()}
        for number, (event, now) in enumerate(new, first)
    ]
    await session.execute(insert(events), rows)
    receives = or_(channels.c.types == "", channels.c.types.contains("," + events.c.type + ","))
    is_open = channels.c.disabled_at.is_(None), channels.c.confirmed_at.is_not(None)
    created_at, pending = events.c.created_at, literal("pending", String)
    due = (
        select(channels.c.owner_id, channels.c.id, events.c.id, created_at, created_at, pending)
        .join(events, events.c.owner_id == channels.c.owner_id)
        .where(channels.c.owner_id == owner_id, events.c.owner_id == owner_id)
        .where(events.c.id.between(first, last), *is_open, receives)
        .order_by(events.c.id, channels.c.id)
        .with_for_update(read=True, key_share=True, of=channels)  # none is deleted before its deliveries are stored
    )
    columns = ["owner_id", "channel_id", "event_id", "created_at", "next_at", "state"]
    await session.execute(insert(deliveries).from_select(columns, due))


async def _numbers(session: AsyncSession, owner_id: int, count: int) -> int:
    """Return the first of so many new numbers of an owner's events."""
    head = insert_into(session, event_heads).values(owner_id=owner_id, last=count)
    counted = head.on_conflict_do_update(
        index_elements=[event_heads.c.owner_id], set_={"last": event_heads.c.last + head.excluded.last}
    )
    last: int = (await session.execute(counted.returning(event_heads.c.last))).scalar_one()
    return last - count + 1


async def silent_site_events(session: Executor, before: int) -> list[tuple[int, int]]:
    """Return owners and numbers of events before an instant that e-mail addresses still need.

    Each is the last one of a site that is silent. An alert about it waits, or was sent: only a reader who had it hears
    that the site is back. A site whose key is revoked needs none.
    """
    of_delivery = and_(events.c.owner_id == deliveries.c.owner_id, events.c.id == deliveries.c.event_id)
    of_channel = channels.c.owner_id == deliveries.c.owner_id, channels.c.id == deliveries.c.channel_id
    of_watch = and_(keys.c.owner_id == watches.c.owner_id, keys.c.id == watches.c.key_id)
    of_key = watches.c.owner_id == events.c.owner_id, watches.c.key_id == events.c.key_id, keys.c.revoked_at.is_(None)
    later = events.alias()
    of_same_key = later.c.owner_id == events.c.owner_id, later.c.key_id == events.c.key_id
    # The subqueries are for each of the old deliveries, which are few; a join may read the other tables whole.
    kind = select(channels.c.kind).where(*of_channel).scalar_subquery()
    state = select(watches.c.state).select_from(watches.join(keys, of_watch)).where(*of_key).scalar_subquery()
    query = (
        select(events.c.owner_id, events.c.id)
        .select_from(deliveries.join(events, of_delivery))
        .where(deliveries.c.created_at < before, deliveries.c.state.in_(("pending", "delivered")), kind == "email")
        .where(events.c.created_at < before, events.c.type.in_(STATES), state.in_(DOWN))
        .where(~exists().where(*of_same_key, later.c.id > events.c.id, later.c.type.in_(STATES)))
    )
    return sorted({(row.owner_id, row.id) for row in await session.execute(query)})


async def write_again(session: AsyncSession, owner_id: int, number: int, now: int) -> None:
    """Write an event of an owner again, as the newest one, for the e-mail addresses that had it or wait for it.

    No channel receives it again. The last delivery to each address becomes as new as the event, and is stored as long.
    """
    last = await _numbers(session, owner_id, 1)
    others = [column for column in events.c if column.name not in ("id", "created_at")]
    copied = select(literal(last, BigInteger), literal(now, BigInteger), *others)
    source = copied.where(events.c.owner_id == owner_id, events.c.id == number)
    await session.execute(insert(events).from_select(["id", "created_at", *others], source))
    addresses = select(channels.c.id).where(channels.c.owner_id == owner_id, channels.c.kind == "email")
    of_event = update(deliveries).where(deliveries.c.owner_id == owner_id, deliveries.c.channel_id.in_(addresses))
    await session.execute(of_event.where(deliveries.c.event_id == number).values(event_id=last))
    is_delivered = deliveries.c.owner_id == owner_id, deliveries.c.event_id == last, deliveries.c.state == "delivered"
    last_sent = select(func.max(deliveries.c.id)).where(*is_delivered).group_by(deliveries.c.channel_id)
    is_needed = or_(deliveries.c.next_at.is_not(None), deliveries.c.id.in_(last_sent))
    await session.execute(of_event.where(deliveries.c.event_id == last, is_needed).values(created_at=now))


async def page(
    session: Executor, owner_id: int, after: int, types: list[EventType], client_id: str | None, limit: int
) -> list[StoredPublishedEvent]:
    """Return events of an owner with higher numbers than `after`, oldest first; no `types` means all."""
    query = _PUBLISHED.where(events.c.owner_id == owner_id, events.c.id > after).order_by(events.c.id).limit(limit)
    if types:
        query = query.where(events.c.type.in_(types))
    if client_id is not None:
        of_key = and_(keys.c.owner_id == events.c.owner_id, keys.c.id == events.c.key_id)
        query = query.join(keys, of_key).where(keys.c.owner_id == owner_id, keys.c.client_id == client_id)
    return await records(session, StoredPublishedEvent, query)


async def location_events(
    session: Executor, owner_id: int, location_name: str, before: int, after: int, limit: int
) -> list[StoredPublishedEvent]:
    """Return events of a location with numbers between two, newest first; no index has the location."""
    of_location = events.c.owner_id == owner_id, events.c.location_name == location_name
    query = _PUBLISHED.where(*of_location, events.c.id < before, events.c.id > after)
    return await records(session, StoredPublishedEvent, query.order_by(events.c.id.desc()).limit(limit))


async def first(session: Executor, owner_id: int) -> int:
    """Return the number of an owner's oldest event; 0 if there is none."""
    query = select(func.min(events.c.id)).where(events.c.owner_id == owner_id)
    return (await session.execute(query)).scalar() or 0


async def find(session: Executor, owner_id: int, event_id: int) -> StoredPublishedEvent | None:
    """Return an event of an owner."""
    query = _PUBLISHED.where(events.c.owner_id == owner_id, events.c.id == event_id)
    return await record(session, StoredPublishedEvent, query)


class Subject(NamedTuple):
    """The subject of an event, by the names that its owner knows. All are empty or None for an event of the account."""

    client_id: str | None = None
    domain: str | None = None
    location_name: str | None = None
    title: str | None = None


async def subjects(session: Executor, owner_id: int, numbers: Collection[int]) -> dict[int, Subject]:
    """Return what events of an owner are about, by their numbers."""
    key = and_(keys.c.owner_id == events.c.owner_id, keys.c.id == events.c.key_id)
    location = and_(locations.c.owner_id == events.c.owner_id, locations.c.name == events.c.location_name)
    query = (
        select(events.c.id, keys.c.client_id, keys.c.primary_domain, events.c.location_name, locations.c.title)
        .select_from(events.outerjoin(keys, key).outerjoin(locations, location))
        .where(events.c.owner_id == owner_id, events.c.id.in_(numbers))
    )
    rows = await session.execute(query)
    return {row.id: Subject(row.client_id, row.primary_domain, row.location_name, row.title) for row in rows}


async def last(session: Executor, owner_id: int) -> int:
    """Return the number of an owner's newest event; 0 if there is none."""
    query = select(event_heads.c.last).where(event_heads.c.owner_id == owner_id)
    return (await session.execute(query)).scalar() or 0
