"""Queries on deliveries: what is due, who works on it, and how it ended."""

from collections.abc import Collection, Sequence
from typing import Literal, NamedTuple

from sqlalchemy import (
    BigInteger,
    Integer,
    String,
    Text,
    and_,
    bindparam,
    case,
    except_,
    func,
    insert,
    literal,
    literal_column,
    select,
    update,
)
from sqlalchemy.ext.asyncio import AsyncSession

from profilesvc.contract.events import EventType
from profilesvc.database.statements import Executor, Prepared, PreparedWrite, columns, fetch, record, records
from profilesvc.database.writers import Executions, Transaction
from profilesvc.storage.events import StoredPublishedEvent
from profilesvc.storage.notify import channels as stored
from profilesvc.storage.notify.channels import Channel, to_channel
from profilesvc.storage.tables import OWNER, channels, deliveries, events, users

State = Literal["pending", "delivered", "failed", "skipped"]
TOGETHER = 500  # deliveries that one message may have
_Place = tuple[int, int]  # an owner, and the number of a channel or an event


class DueRow(NamedTuple):
    """A delivery whose time has come."""

    owner_id: int
    id: int
    channel_id: int


class Claimed(NamedTuple):
    """A delivery that this process works on until `claimed_until`."""

    owner_id: int
    id: int
    channel: Channel
    is_suspended: bool  # its owner
    event: StoredPublishedEvent | None
    event_id: int | None
    created_at: int
    tries: int
    attempts: str
    claimed_until: int


class Finished(NamedTuple):
    """The end of an attempt. With `next_at` another one follows."""

    owner_id: int
    delivery_id: int
    of_claim: int
    state: State
    new_next_at: int | None
    new_tries: int
    new_attempts: str
    new_finished_at: int | None


class Delivery(NamedTuple):
    """A delivery as its owner sees it."""

    id: int
    event_id: int | None
    type: EventType | None
    data: str | None
    event_created_at: int | None
    created_at: int
    next_at: int | None
    state: State
    tries: int
    attempts: str
    finished_at: int | None


_DUE = select(*columns(deliveries, DueRow._fields)).order_by(deliveries.c.next_at)
_FIRST_DUE = Prepared(
    _DUE.where(deliveries.c.next_at <= bindparam("now", type_=BigInteger)).limit(bindparam("most", type_=Integer))
)


async def due(
    session: Executor, now: int, busy_owners: Collection[int], busy_channels: Collection[int], limit: int
) -> list[DueRow]:
    """Return deliveries of all owners whose time has come, without those of `busy` owners and channels."""
    if not busy_owners and not busy_channels:
        first = [DueRow._make(row) for row in await fetch(session, _FIRST_DUE, now=now, most=limit)]
        if len(first) < limit:
            return first
    others = deliveries.c.owner_id.not_in(busy_owners), deliveries.c.channel_id.not_in(busy_channels)
    # If there are more than the limit, each owner has one in turn, so that an old backlog of some delays no other.
    turn = func.row_number().over(partition_by=deliveries.c.owner_id, order_by=deliveries.c.next_at).label("turn")
    in_turn = _DUE.order_by(None).add_columns(deliveries.c.next_at, turn).where(deliveries.c.next_at <= now, *others)
    rows = in_turn.subquery()
    query = select(*columns(rows, DueRow._fields)).order_by(rows.c.turn, rows.c.next_at).limit(limit)
    return await records(session, DueRow, query)


async def claim(by: Transaction, dialect: str, rows: Sequence[DueRow], now: int, until: int) -> list[Claimed]:
    """Claim due deliveries, as far as their channels have room. Each statement is about one owner.

    It locks the channels, so that processes do not exceed the number of calls together. A channel that fails has room
    for one call. The due deliveries of an e-mail address are claimed together.
    """
    wanted: dict[_Place, list[int]] = {}
    for each in rows:
        wanted.setdefault((each.owner_id, each.channel_id), []).append(each.id)
    places = [_named(place, moment=now) for place in sorted(wanted)]
    locked: dict[_Place, tuple[Channel, bool]] = {}
    for row in await by.fetch(_LOCK.executions(dialect, places)):
        channel = Channel._make(row[name] for name in Channel._fields)
        locked[channel.owner_id, channel.id] = channel, row["suspended_at"] is not None
    running = await by.fetch(_RUNNING.executions(dialect, places))
    calls = {(row["owner_id"], row["channel_id"]): row["calls"] for row in running}
    chosen: list[tuple[int, int]] = []
    for place, (channel, _) in locked.items():
        room = max(channel.room - calls.get(place, 0), 0)
        numbers = wanted[place][:room]
        if room and channel.kind == "email":
            its_due = await by.fetch(_ALL_DUE.executions(dialect, [_named(place, moment=now)]))
            numbers = [row["id"] for row in its_due]
        chosen += [(channel.owner_id, number) for number in numbers]
    chosen.sort()  # the order of `finishing`, so that none waits for the other
    changes = [{"of_owner": owner, "delivery": number, "moment": now, "claim": until} for owner, number in chosen]
    claimed = await by.fetch(_CLAIM.executions(dialect, changes)) if changes else []
    places_of_events = {(row["owner_id"], row["event_id"]) for row in claimed if row["event_id"] is not None}
    happened = await _events(by, dialect, places_of_events)
    batch = []
    for row in claimed:
        channel, is_suspended = locked[row["owner_id"], row["channel_id"]]
        event = happened.get((row["owner_id"], row["event_id"]))
        its = {name: row[name] for name in _CLAIMED}
        batch.append(Claimed(**its, channel=channel, is_suspended=is_suspended, event=event, claimed_until=until))
    return batch


async def _events(by: Transaction, dialect: str, places: set[_Place]) -> dict[_Place, StoredPublishedEvent]:
    rows = await by.fetch(_EVENT.executions(dialect, [_named(place) for place in sorted(places)])) if places else []
    fields = StoredPublishedEvent._fields
    return {(row["owner_id"], row["id"]): StoredPublishedEvent._make(row[name] for name in fields) for row in rows}


def _named(place: _Place, **more: int) -> dict[str, int]:
    return {"of_owner": place[0], "number": place[1], **more}


_OF_OWNER, _NUMBER = bindparam("of_owner", type_=BigInteger), bindparam("number", type_=BigInteger)
_MOMENT = bindparam("moment", type_=BigInteger)
_TO_CHANNEL = deliveries.c.owner_id == _OF_OWNER, deliveries.c.channel_id == _NUMBER
_SUSPENDED_AT = select(users.c.suspended_at).where(users.c.id == channels.c.owner_id).scalar_subquery()
_LOCK = PreparedWrite(
    select(*stored.COLUMNS, _SUSPENDED_AT.label("suspended_at"))
    .where(channels.c.owner_id == _OF_OWNER, channels.c.id == _NUMBER)
    .with_for_update(key_share=True)
)
_RUNNING = PreparedWrite(
    select(deliveries.c.owner_id, deliveries.c.channel_id, func.count().label("calls"))
    .where(*_TO_CHANNEL, deliveries.c.claimed_until > _MOMENT)
    .group_by(deliveries.c.owner_id, deliveries.c.channel_id)
)
_ALL_DUE = PreparedWrite(
    select(deliveries.c.id)
    .where(*_TO_CHANNEL, deliveries.c.next_at <= _MOMENT)
    .order_by(deliveries.c.id)
    .limit(literal_column(str(TOGETHER)))
)
_CLAIMED = "owner_id", "id", "event_id", "created_at", "tries", "attempts"
_CLAIM = PreparedWrite(
    update(deliveries)
    .where(deliveries.c.owner_id == _OF_OWNER, deliveries.c.id == bindparam("delivery", type_=BigInteger))
    .where(deliveries.c.next_at <= _MOMENT)
    .values(next_at=bindparam("claim", type_=BigInteger), claimed_until=bindparam("claim", type_=BigInteger))
    .returning(*columns(deliveries, (*_CLAIMED, "channel_id")))
)
_OF_EVENT = events.c.owner_id == _OF_OWNER, events.c.id == _NUMBER
_EVENT = PreparedWrite(select(events.c.owner_id, *columns(events, StoredPublishedEvent._fields)).where(*_OF_EVENT))
_NEXT_AT = bindparam("new_next_at", type_=BigInteger)
# A delivery that `alerts.end_wait` has made due meanwhile stays due.
_WAS_MADE_DUE = and_(_NEXT_AT.is_not(None), deliveries.c.next_at < deliveries.c.claimed_until)
# It ends a claim, unless that has lapsed and another process has the delivery.
_FINISH = PreparedWrite(
    update(deliveries)
    .where(deliveries.c.owner_id == OWNER, deliveries.c.id == bindparam("delivery_id", type_=BigInteger))
    .where(deliveries.c.claimed_until == bindparam("of_claim", type_=BigInteger))
    .values(
        state=bindparam("state", type_=String),
        next_at=case((_WAS_MADE_DUE, deliveries.c.next_at), else_=_NEXT_AT),
        claimed_until=None,
        tries=bindparam("new_tries", type_=Integer),
        attempts=bindparam("new_attempts", type_=Text),
        finished_at=bindparam("new_finished_at", type_=BigInteger),
    )
)


def finishing(dialect: str, ended: list[Finished]) -> list[Executions]:
    """Return the statements that record how attempts ended, in an order in which no two transactions deadlock."""
    return [_FINISH.executions(dialect, [each._asdict() for each in sorted(ended, key=lambda each: each[:2])])]


async def add(session: AsyncSession, owner_id: int, channel_id: int, event_id: int | None, now: int) -> int:
    """Queue an event for a channel, or a test, and return the number of the delivery."""
    row = insert(deliveries).values(
        owner_id=owner_id, channel_id=channel_id, event_id=event_id, created_at=now, next_at=now, state="pending"
    )
    return int((await session.execute(row.returning(deliveries.c.id))).scalar_one())


class Missed(NamedTuple):
    """Events that a channel has not received and that are not on their way, and its newest delivery then."""

    events: list[int]
    last: int


async def missed(session: Executor, channel: Channel, since: int, limit: int) -> Missed:
    """Return the oldest events of an owner since a time that a channel has missed."""
    is_to_channel = to_channel(channel.owner_id, channel.id)
    last = select(func.coalesce(func.max(deliveries.c.id), 0)).where(is_to_channel)
    after = int((await session.execute(last)).scalar_one())
    of_owner = events.c.owner_id == channel.owner_id, events.c.created_at >= since
    happened = select(events.c.id.label("id")).where(*of_owner)
    if channel.types:
        happened = happened.where(events.c.type.in_(channel.event_types()))
    known = select(deliveries.c.event_id).where(is_to_channel, *_COUNTS)
    # A difference of sets, because a join or NOT IN of many rows takes minutes on one of the databases.
    query = except_(happened, known).order_by("id").limit(limit)
    rows = await session.execute(query)
    return Missed([number for (number,) in rows], after)


async def add_missed(session: AsyncSession, channel: Channel, missed: Missed, start: int, end: int, now: int) -> int:
    """Queue some of the events that a channel has missed, unless they are queued by now; return how many they are."""
    is_newer = to_channel(channel.owner_id, channel.id), deliveries.c.id > missed.last
    known = select(deliveries.c.event_id).where(*is_newer, *_COUNTS)
    number, created_at, next_at = (literal(each, BigInteger) for each in (channel.id, now, now))
    pending = literal("pending", String)
    still = select(events.c.owner_id, number, events.c.id, created_at, next_at, pending).where(
        events.c.owner_id == channel.owner_id, events.c.id.in_(missed.events[start:end]), events.c.id.not_in(known)
    )
    names = ["owner_id", "channel_id", "event_id", "created_at", "next_at", "state"]
    added = insert(deliveries).from_select(names, still.order_by(events.c.id)).returning(deliveries.c.id)
    return len((await session.execute(added)).all())


_COUNTS = deliveries.c.event_id.is_not(None), deliveries.c.state.in_(("pending", "delivered"))


async def page(
    session: Executor, owner_id: int, channel_id: int, before: int | None, limit: int, *, state: State | None = None
) -> list[Delivery]:
    """Return deliveries to a channel, newest first; with `state` only those in that state."""
    query = _ENTRIES.where(to_channel(owner_id, channel_id))
    if before is not None:
        query = query.where(deliveries.c.id < before)
    if state is not None:
        query = query.where(deliveries.c.state == state)
    return await records(session, Delivery, query.order_by(deliveries.c.id.desc()).limit(limit))


async def last_attempts(session: Executor, owner_id: int, channel_id: int) -> str:
    """Return the attempts of the newest delivery to a channel that was attempted and has not succeeded."""
    has_failed = deliveries.c.state.in_(("pending", "failed")), deliveries.c.attempts != "[]"
    query = select(deliveries.c.attempts).where(to_channel(owner_id, channel_id), *has_failed)
    attempts: str | None = (await session.execute(query.order_by(deliveries.c.id.desc()).limit(1))).scalar()
    return attempts or "[]"


async def find(session: Executor, owner_id: int, channel_id: int, number: int) -> Delivery | None:
    """Return a delivery to a channel."""
    return await record(session, Delivery, _ENTRIES.where(to_channel(owner_id, channel_id), deliveries.c.id == number))


_ENTRIES = select(
    deliveries.c.id,
    deliveries.c.event_id,
    events.c.type,
    events.c.data,
    events.c.created_at.label("event_created_at"),
    *columns(deliveries, Delivery._fields[5:]),
).select_from(
    deliveries.outerjoin(events, (events.c.owner_id == deliveries.c.owner_id) & (events.c.id == deliveries.c.event_id))
)


async def backlog(session: Executor, now: int) -> tuple[int, int | None]:
    """Return how many deliveries of all owners are due, and since when the oldest one is."""
    query = select(func.count().label("queued"), func.min(deliveries.c.next_at).label("oldest"))
    row = (await session.execute(query.where(deliveries.c.next_at <= now))).one()
    return row.queued, row.oldest
