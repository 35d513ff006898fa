"""Queries on the cached locations."""

from collections.abc import Sequence
from typing import Literal, NamedTuple

from sqlalchemy import ColumnElement, and_, bindparam, case, func, insert, null, or_, select, update
from sqlalchemy.ext.asyncio import AsyncSession

from profilesvc.database.statements import Executor, Prepared, columns, fetch, has_row, insert_new, records, upsert
from profilesvc.storage.tables import OWNER, businesses, location_owners, locations, readings

What = Literal["profile", "reviews"]


class LocationState(NamedTuple):
    """The columns of a location that the services read; profile, source and last_sync are JSON strings."""

    name: str
    owner_id: int
    business_id: int | None
    account: str
    profile: str
    profile_read_at: int
    is_verified: bool
    verification_state: str
    sync_enabled: bool
    source: str | None
    last_sync: str | None
    posts_read_at: int | None
    drift: str | None
    connection_id: int | None
    disconnected_at: int | None


def is_location(owner_id: int, name: str) -> ColumnElement[bool]:
    """Return the condition that selects one location."""
    return and_(locations.c.owner_id == owner_id, locations.c.name == name)


def is_kept() -> ColumnElement[bool]:
    """Return the condition that a location is not disconnected."""
    return locations.c.disconnected_at.is_(None)


with_business = locations.outerjoin(businesses)
_IS_LOCATION = locations.c.owner_id == OWNER, locations.c.name == bindparam("location")
_STATE = Prepared(select(*columns(locations, LocationState._fields)).where(*_IS_LOCATION))
_PLACE = Prepared(select(locations.c.account, locations.c.connection_id).where(*_IS_LOCATION, is_kept()))


async def hold_kept(session: AsyncSession, owner_id: int, name: str) -> bool:
    """Return whether a location is not disconnected; then it stays so until the transaction ends."""
    query = select(locations.c.name).where(is_location(owner_id, name), is_kept())
    return await has_row(session, query.with_for_update(read=True))


class Place(NamedTuple):
    """The account of a location at the provider, and the login that reaches it (None: the installation's)."""

    account: str
    connection_id: int | None


async def place_of(session: Executor, owner_id: int, name: str) -> Place | None:
    """Return where a location is at the provider, or None if the location is not the user's."""
    rows = await fetch(session, _PLACE, location=name, owner_id=owner_id)
    return Place._make(rows[0]) if rows else None


async def state(session: Executor, owner_id: int, name: str) -> LocationState | None:
    """Return a location of this owner; reading another's takes as long as reading one that does not exist."""
    rows = await fetch(session, _STATE, owner_id=owner_id, location=name)
    if not rows:
        return None
    row = LocationState._make(rows[0])  # the driver of SQLite returns integers
    return row._replace(is_verified=bool(row.is_verified), sync_enabled=bool(row.sync_enabled))


def _visible(owner_id: int, only: str | None, unassigned: bool) -> ColumnElement[bool]:
    conditions = [locations.c.owner_id == owner_id, is_kept()]
    if only is not None:
        conditions.append(locations.c.name == only)
    if unassigned:
        conditions.append(locations.c.business_id.is_(None))
    return and_(*conditions)


async def state_by_name(session: Executor, name: str) -> LocationState | None:
    """Return a location of any owner, for the operator."""
    owner_id = (await owners_of(session, [name])).get(name)
    return None if owner_id is None else await state(session, owner_id, name)


async def count(session: Executor, owner_id: int, only: str | None, unassigned: bool) -> int:
    """Return how many locations a caller sees; `only` restricts them to one name."""
    query = select(func.count()).select_from(locations).where(_visible(owner_id, only, unassigned))
    return int((await session.execute(query)).scalar_one())


class ListedLocation(NamedTuple):
    """A location as lists show it, with the name of its business; `profile` is a JSON string."""

    name: str
    profile: str
    is_verified: bool
    sync_enabled: bool
    business_id: int | None
    business_name: str | None


async def page(
    session: Executor, owner_id: int, only: str | None, unassigned: bool, window: tuple[int, int]
) -> list[ListedLocation]:
    """Return one page ordered by title, then name; `window` is (offset, limit)."""
    query = (
        select(*columns(locations, ListedLocation._fields[:-1]), businesses.c.name.label("business_name"))
        .select_from(with_business)
        .where(_visible(owner_id, only, unassigned))
        .order_by(locations.c.title, locations.c.name)
        .offset(window[0])
        .limit(window[1])
    )
    return await records(session, ListedLocation, query)


async def add(session: AsyncSession, **values: object) -> None:
    """Add a location. Its owner must be in the directory; names are unique across owners."""
    await session.execute(insert(locations).values(**values))


async def change(session: AsyncSession, owner_id: int, name: str, **values: object) -> None:
    """Set columns of a location."""
    await session.execute(update(locations).where(is_location(owner_id, name)).values(**values))


async def import_again(session: AsyncSession, owner_id: int, name: str, **values: object) -> None:
    """Set columns of a location and connect it. A lease from before it was disconnected ends; that of a sync stays."""
    was_disconnected = locations.c.disconnected_at.is_not(None)
    lease, until = locations.c.sync_lease, locations.c.sync_lease_until
    ended = {column.name: case((was_disconnected, null()), else_=column) for column in (lease, until)}
    await change(session, owner_id, name, disconnected_at=None, **ended, **values)


async def switch_sync(session: AsyncSession, owner_id: int, name: str, enabled: bool) -> bool:
    """Switch sync off, or on if the location is verified. Return whether that changed the switch."""
    off = ~locations.c.sync_enabled
    may_change = and_(off, locations.c.is_verified) if enabled else ~off
    return await change_kept(session, owner_id, name, may_change, sync_enabled=enabled)


async def verify(session: AsyncSession, owner_id: int, name: str, is_verified: bool, state: str) -> bool:
    """Store the verification, and return whether it changed."""
    differs = or_(locations.c.is_verified != is_verified, locations.c.verification_state != state)
    return await change_kept(session, owner_id, name, differs, is_verified=is_verified, verification_state=state)


async def drifted(
    session: AsyncSession, row: LocationState, digest: str | None, started: int, holder: str | None
) -> bool:
    """Store the digest of what differs, unless another process has stored one, or a sync may have changed the profile.

    `row` is the location before the provider was read at `started`; `holder` has the lock if a sync found it.
    """
    lease, until = locations.c.sync_lease, locations.c.sync_lease_until
    is_same = (locations.c[name].is_not_distinct_from(getattr(row, name)) for name in ("drift", "last_sync"))
    no_sync = and_(or_(lease.is_(None), until <= started), locations.c.profile_read_at <= started)
    condition = and_(*is_same, no_sync if holder is None else lease == holder)
    return await change_kept(session, row.owner_id, row.name, condition, drift=digest)


async def change_kept(
    session: AsyncSession, owner_id: int, name: str, *conditions: ColumnElement[bool], **values: object
) -> bool:
    """Set columns of a location; return False if it is disconnected, or does not meet all conditions."""
    statement = update(locations).where(is_location(owner_id, name), is_kept(), *conditions).values(**values)
    return await has_row(session, statement.returning(locations.c.name))


async def keep_profile(session: AsyncSession, owner_id: int, name: str, profile: str, title: str, read_at: int) -> None:
    """Store a profile, unless a later reading is stored or the location is disconnected."""
    values = {"profile": profile, "title": title, "profile_read_at": read_at}
    await change_kept(session, owner_id, name, locations.c.profile_read_at <= read_at, **values)


async def assign(session: AsyncSession, owner_id: int, name: str, business_id: int, now: int) -> bool:
    """Assign an unassigned location to a business; return False if it was assigned meanwhile."""
    assigned = update(locations).where(is_location(owner_id, name), locations.c.business_id.is_(None))
    assigned = assigned.values(business_id=business_id, assigned_at=now)
    return await has_row(session, assigned.returning(locations.c.name))


async def assigned(session: Executor, owner_id: int) -> list[str]:
    """Return the assigned locations of a user, the first assigned first; a plan counts them in this order."""
    query = (
        select(locations.c.name)
        .where(locations.c.owner_id == owner_id, locations.c.business_id.is_not(None))
        .order_by(locations.c.assigned_at, locations.c.name)
    )
    return list((await session.execute(query)).scalars())


async def expire(session: AsyncSession, owner_id: int, location: str, what: What, at: int) -> None:
    """Let nothing of a location be returned from a cache that was read until an instant."""
    await upsert(session, readings, {f"{what}_from": at}, owner_id=owner_id, location_name=location)


async def valid_from(session: Executor, owner_id: int, location: str, what: What) -> int:
    """Return the instant after which a reading may be returned from a cache."""
    column = readings.c.profile_from if what == "profile" else readings.c.reviews_from
    query = select(column).where(readings.c.owner_id == owner_id, readings.c.location_name == location)
    return (await session.execute(query)).scalar_one_or_none() or 0


async def google_update(session: Executor, owner_id: int, location: str) -> str | None:
    """Return the digest of the provider's own changes that were published last."""
    query = select(readings.c.google_update).where(
        readings.c.owner_id == owner_id, readings.c.location_name == location
    )
    return (await session.execute(query)).scalar_one_or_none()


async def note_google_update(
    session: AsyncSession, owner_id: int, location: str, before: str | None, digest: str | None
) -> bool:
    """Store the digest of the provider's own changes; return False if another process was first."""
    is_same = readings.c.google_update.is_not_distinct_from(before)
    values = {"google_update": digest}
    return await upsert(session, readings, values, is_same, owner_id=owner_id, location_name=location)


async def owners_of(session: Executor, names: Sequence[str]) -> dict[str, int]:
    """Return the owners of locations, for those that have one."""
    query = select(location_owners.c.name, location_owners.c.owner_id).where(location_owners.c.name.in_(names))
    return {row.name: row.owner_id for row in await session.execute(query)}


async def claim(session: AsyncSession, owner_id: int, name: str) -> bool:
    """Make the owner the one of a location; return False if another owner has it."""
    await insert_new(session, location_owners, name=name, owner_id=owner_id)
    return (await owners_of(session, [name]))[name] == owner_id
