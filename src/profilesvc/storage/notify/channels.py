"""Queries on channels: where the events of an owner are sent."""

from collections.abc import Collection
from typing import NamedTuple

from sqlalchemy import ColumnElement, and_, delete, func, select, update
from sqlalchemy.ext.asyncio import AsyncSession

from profilesvc.contract.events import EVENT_TYPES, EventType
from profilesvc.database.statements import Executor, columns, has_row, insert_into, record, records
from profilesvc.storage.tables import channels, deliveries

CALLS = 4  # at a time to one channel


class Channel(NamedTuple):
    """A channel of an owner. `settings` is JSON."""

    owner_id: int
    id: int
    kind: str
    target: str
    description: str
    types: str
    settings: str
    nonce: str
    previous_nonce: str | None
    previous_until: int | None
    created_at: int
    confirmed_at: int | None
    failing_since: int | None
    disabled_at: int | None
    disabled_reason: str | None

    @property
    def room(self) -> int:
        """Return how many calls it can have at a time: fewer if it fails, and one for all messages to an address."""
        return 1 if self.failing_since is not None or self.kind == "email" else CALLS

    def event_types(self) -> list[EventType]:
        """Return the types that it receives; empty means all."""
        return [name for name in EVENT_TYPES if f",{name}," in self.types]


COLUMNS = columns(channels, Channel._fields)


def stored_types(types: Collection[EventType]) -> str:
    """Return types as they are stored: with a comma before and after each one, so that SQL can search for one."""
    return "," + ",".join(types) + "," if types else ""


async def add(session: AsyncSession, owner_id: int, target_digest: str, **values: object) -> int | None:
    """Add a channel and return its number; None if the owner has one with this target."""
    row = insert_into(session, channels).values(owner_id=owner_id, target_digest=target_digest, **values)
    added = row.on_conflict_do_nothing(index_elements=["owner_id", "target_digest"]).returning(channels.c.id)
    number: int | None = (await session.execute(added)).scalar_one_or_none()
    return number


async def listing(session: Executor, owner_id: int, kinds: Collection[str]) -> list[Channel]:
    """Return the channels of an owner, oldest first."""
    query = select(*COLUMNS).where(channels.c.owner_id == owner_id, channels.c.kind.in_(kinds)).order_by(channels.c.id)
    return await records(session, Channel, query)


async def all_channels(session: Executor, kinds: Collection[str]) -> list[Channel]:
    """Return the channels of all owners, oldest first, for the operator."""
    query = select(*COLUMNS).where(channels.c.kind.in_(kinds)).order_by(channels.c.created_at, channels.c.id)
    return await records(session, Channel, query)


async def find(
    session: Executor, owner_id: int, number: int, kinds: Collection[str], *, locked: bool = False
) -> Channel | None:
    """Return a channel of an owner; with `locked` it is not deleted before this transaction ends."""
    query = select(*COLUMNS).where(channels.c.owner_id == owner_id, channels.c.id == number, channels.c.kind.in_(kinds))
    if locked:
        query = query.with_for_update(read=True, key_share=True)
    return await record(session, Channel, query)


async def uses(session: Executor, owner_id: int, target_digest: str, *, except_for: int) -> bool:
    """Return whether another channel of an owner has this target."""
    query = select(channels.c.id).where(
        channels.c.owner_id == owner_id, channels.c.target_digest == target_digest, channels.c.id != except_for
    )
    return await has_row(session, query)


async def count(session: Executor, owner_id: int, kinds: Collection[str]) -> int:
    """Return how many channels an owner has."""
    query = select(func.count()).where(channels.c.owner_id == owner_id, channels.c.kind.in_(kinds))
    return int((await session.execute(query)).scalar_one())


async def change(session: AsyncSession, owner_id: int, number: int, **values: object) -> None:
    """Change columns of a channel."""
    changed = update(channels).where(channels.c.owner_id == owner_id, channels.c.id == number)
    await session.execute(changed.values(**values))


async def confirm(session: AsyncSession, seen: Channel, now: int) -> bool:
    """Confirm an address; return False if it was disabled or got a new link since it was read."""
    is_same = channels.c.owner_id == seen.owner_id, channels.c.id == seen.id, channels.c.nonce == seen.nonce
    confirmed = update(channels).where(*is_same, channels.c.disabled_at.is_(None)).values(confirmed_at=now)
    return await has_row(session, confirmed.returning(channels.c.id))


async def start_failing(session: AsyncSession, claimed: Channel, now: int) -> None:
    """Record since when each call to a channel fails, unless its target was changed since it was claimed."""
    failing = update(channels).where(*_is_still(claimed), channels.c.failing_since.is_(None))
    await session.execute(failing.values(failing_since=now))


async def stop_failing(session: AsyncSession, claimed: Channel) -> None:
    """Record that a call to a channel succeeded, unless its target was changed since it was claimed."""
    await session.execute(update(channels).where(*_is_still(claimed)).values(failing_since=None))


async def disable_failing(session: AsyncSession, claimed: Channel, now: int, reason: str) -> bool:
    """Disable a channel because of calls; return False if it is disabled, or has another target or time of failing."""
    conditions = [*_is_still(claimed)]
    if reason == "failing":
        conditions.append(channels.c.failing_since == claimed.failing_since)
    return await _disable(session, conditions, now, reason)


async def disable(session: AsyncSession, owner_id: int, number: int, now: int, reason: str) -> bool:
    """Disable a channel; return False if it was disabled before."""
    return await _disable(session, [channels.c.owner_id == owner_id, channels.c.id == number], now, reason)


async def _disable(session: AsyncSession, conditions: list[ColumnElement[bool]], now: int, reason: str) -> bool:
    disabled = update(channels).where(*conditions, channels.c.disabled_at.is_(None))
    disabled = disabled.values(disabled_at=now, disabled_reason=reason)
    return await has_row(session, disabled.returning(channels.c.id))


def _is_still(claimed: Channel) -> tuple[ColumnElement[bool], ...]:
    """Select a channel unless its target has changed, because a late response says nothing about a new target."""
    is_same = channels.c.target == claimed.target
    return channels.c.owner_id == claimed.owner_id, channels.c.id == claimed.id, is_same


def to_channel(owner_id: int, number: int) -> ColumnElement[bool]:
    """Return the condition that a delivery is to this channel."""
    return and_(deliveries.c.owner_id == owner_id, deliveries.c.channel_id == number)


async def notify(session: AsyncSession, owner_id: int, email: str, types: Collection[EventType], now: int) -> None:
    """Send events of these types to the login's address of an owner from now on."""
    await put_notice(session, owner_id, email, stored_types(types), now)


async def put_notice(session: AsyncSession, owner_id: int, email: str, types: str, now: int) -> int:
    """Store the channel to the login's address of an owner, and return its number."""
    values = {"target": email, "types": types, "disabled_at": None, "disabled_reason": None}
    row = insert_into(session, channels).values(
        owner_id=owner_id, target_digest="notice", kind="notice", nonce="", created_at=now, confirmed_at=now, **values
    )
    put = row.on_conflict_do_update(index_elements=["owner_id", "target_digest"], set_=values)
    return int((await session.execute(put.returning(channels.c.id))).scalar_one())


async def remove(session: AsyncSession, owner_id: int, number: int) -> None:
    """Delete a channel with its deliveries."""
    channel = channels.c.owner_id == owner_id, channels.c.id == number
    # It is locked first, so that no process queues or claims a delivery of it meanwhile.
    await session.execute(select(channels.c.id).where(*channel).with_for_update())
    await session.execute(delete(deliveries).where(to_channel(owner_id, number)))
    await session.execute(delete(channels).where(*channel))
