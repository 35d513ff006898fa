"""Queries on the readings of locations: which reviews were seen, and which location is read next (docs/events.md)."""

import json
from collections.abc import Collection
from typing import Literal, NamedTuple

from sqlalchemy import ColumnElement, and_, case, func, or_, select, update
from sqlalchemy.ext.asyncio import AsyncSession

from profilesvc.contract.events import EventType
from profilesvc.database.statements import Executor, records, upsert
from profilesvc.domain.reviews import Seen
from profilesvc.storage.keys import live
from profilesvc.storage.locations import is_kept, is_location
from profilesvc.storage.tables import channels, keys, locations, readings, users

Scheduled = Literal["reviews", "posts"]
What = Literal["profile", "reviews", "posts"]
TYPES: dict[Scheduled, tuple[EventType, ...]] = {
    "reviews": ("review.created", "review.updated"),
    "posts": ("post.published", "post.rejected", "post.deleted_at_provider"),
}


async def seen(session: Executor, owner_id: int, location: str) -> Seen | None:
    """Return the reviews of a location that were seen, or None before the first reading."""
    query = select(readings.c.seen, readings.c.floor).where(
        readings.c.owner_id == owner_id, readings.c.location_name == location
    )
    row = (await session.execute(query)).first()
    return None if row is None or row.seen is None else Seen(json.loads(row.seen), row.floor)


async def see(session: AsyncSession, owner_id: int, location: str, before: Seen | None, after: Seen) -> bool:
    """Store the reviews that are seen; return False if another process has stored some since `before` was read."""
    values = {"seen": _stored(after), "floor": after.floor}
    unchanged: ColumnElement[bool] = readings.c.seen.is_(None)
    if before is not None:
        unchanged = and_(readings.c.seen == _stored(before), readings.c.floor == before.floor)
    return await upsert(session, readings, values, unchanged, owner_id=owner_id, location_name=location)


def _stored(seen: Seen) -> str:
    return json.dumps(seen.times, sort_keys=True, separators=(",", ":"))


class Subscriber(NamedTuple):
    """An owner with a channel that receives what readings show."""

    owner_id: int
    reviews: bool
    posts: bool


async def subscribers(session: Executor, after: int, limit: int) -> list[Subscriber]:
    """Return the owners with higher numbers than `after` who receive events of reviews or posts."""
    receives = [(func.max(case((_receives(types), 1), else_=0)) > 0).label(what) for what, types in TYPES.items()]
    query = (
        select(channels.c.owner_id, *receives)
        .where(channels.c.owner_id > after, channels.c.disabled_at.is_(None), channels.c.confirmed_at.is_not(None))
        .where(or_(*(_receives(types) for types in TYPES.values())))
        .group_by(channels.c.owner_id)
        .order_by(channels.c.owner_id)
        .limit(limit)
    )
    return await records(session, Subscriber, query)


def _receives(types: Collection[EventType]) -> "ColumnElement[bool]":
    return or_(channels.c.types == "", *(channels.c.types.contains(f",{name},") for name in types))


class Due(NamedTuple):
    """A location whose reviews or posts are to be read; `at` is when the schedule read them last, 0 for never."""

    at: int
    owner_id: int
    location_name: str
    what: Scheduled
    plan: str


async def due(session: Executor, owners: Collection[int], what: Scheduled, before: int, limit: int) -> list[Due]:
    """Return verified locations of these owners that were not read since an instant, the longest unread first."""
    last = func.coalesce(readings.c.reviews_at if what == "reviews" else readings.c.posts_at, 0)
    is_old = [last <= before]
    if what == "posts":  # a caller may have listed them
        is_old.append(func.coalesce(locations.c.posts_read_at, 0) <= before)
    of_location = and_(readings.c.owner_id == locations.c.owner_id, readings.c.location_name == locations.c.name)
    query = (
        select(last.label("at"), locations.c.owner_id, locations.c.name, users.c.plan)
        .select_from(locations.join(users, users.c.id == locations.c.owner_id).outerjoin(readings, of_location))
        .where(locations.c.owner_id.in_(owners), locations.c.is_verified, users.c.suspended_at.is_(None), *is_old)
        .order_by(last, locations.c.owner_id, locations.c.name)
        .limit(limit)
    )
    return [Due(row.at, row.owner_id, row.name, what, row.plan) for row in await session.execute(query)]


async def note_read(session: AsyncSession, owner_id: int, location: str, what: Scheduled, at: int) -> None:
    """Store when the schedule read the reviews or posts of a location."""
    await upsert(session, readings, {f"{what}_at": at}, owner_id=owner_id, location_name=location)


class Unchecked(NamedTuple):
    """A location to check; the instants are when each part was read last, 0 for never."""

    owner_id: int
    location_name: str
    plan: str
    is_verified: bool
    profile_at: int
    posts_at: int
    reviews_at: int


async def unchecked(session: Executor, now: int, before: int, limit: int) -> list[Unchecked]:
    """Return locations with a live key that were not checked since an instant, the longest unchecked first."""
    of_key = and_(keys.c.owner_id == locations.c.owner_id, keys.c.location_name == locations.c.name, live(now))
    of_location = and_(readings.c.owner_id == locations.c.owner_id, readings.c.location_name == locations.c.name)
    query = (
        select(
            locations.c.owner_id,
            locations.c.name.label("location_name"),
            users.c.plan,
            locations.c.is_verified,
            locations.c.profile_read_at.label("profile_at"),
            func.coalesce(locations.c.posts_read_at, 0).label("posts_at"),
            func.coalesce(readings.c.reviews_at, 0).label("reviews_at"),
        )
        .select_from(locations.join(users, users.c.id == locations.c.owner_id).outerjoin(readings, of_location))
        .where(is_kept(), locations.c.checked_at <= before, users.c.suspended_at.is_(None))
        .where(select(keys.c.id).where(of_key).exists())
        .order_by(locations.c.checked_at, locations.c.owner_id, locations.c.name)  # one is finished before the next
        .limit(limit)
    )
    return await records(session, Unchecked, query)


async def checked(session: AsyncSession, place: Unchecked, at: int) -> None:
    """Store when a location was checked."""
    is_place = is_location(place.owner_id, place.location_name)
    await session.execute(update(locations).where(is_place).values(checked_at=at))
