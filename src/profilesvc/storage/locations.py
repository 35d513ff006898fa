"""Queries on the cached locations."""

from collections.abc import Sequence
from typing import NamedTuple

from sqlalchemy import ColumnElement, and_, bindparam, func, insert, select, update
from sqlalchemy.ext.asyncio import AsyncSession

from profilesvc.database.statements import Executor, Prepared, Row, fetch
from profilesvc.storage.tables import businesses, locations


class LocationState(NamedTuple):
    """The columns of a location that the services read; profile, source and last_sync are JSON strings."""

    name: str
    user_id: int
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


_STATE = Prepared(
    select(*(locations.c[name] for name in LocationState._fields)).where(locations.c.name == bindparam("location"))
)
_OWN = Prepared(_STATE.statement.where(locations.c.user_id == bindparam("user_id")))
_ACCOUNT = Prepared(
    select(locations.c.account).where(
        locations.c.name == bindparam("location"), locations.c.user_id == bindparam("user_id")
    )
)


async def account_of(session: Executor, name: str, user_id: int) -> str | None:
    """Return the provider's account of a location, or None if the location is not the user's."""
    rows = await fetch(session, _ACCOUNT, location=name, user_id=user_id)
    return str(rows[0][0]) if rows else None


async def state(session: Executor, name: str) -> LocationState | None:
    return _state(await fetch(session, _STATE, location=name))


async def own(session: Executor, name: str, user_id: int) -> LocationState | None:
    """Return a location of this user; reading another user's takes as long as reading one that does not exist."""
    return _state(await fetch(session, _OWN, location=name, user_id=user_id))


def _state(rows: Sequence[Row]) -> LocationState | None:
    if not rows:
        return None
    row = LocationState._make(rows[0])  # the driver of SQLite returns integers
    return row._replace(is_verified=bool(row.is_verified), sync_enabled=bool(row.sync_enabled))


def _visible(user_id: int, only: str | None, unassigned: bool) -> ColumnElement[bool]:
    conditions = [locations.c.user_id == user_id]
    if only is not None:
        conditions.append(locations.c.name == only)
    if unassigned:
        conditions.append(locations.c.business_id.is_(None))
    return and_(*conditions)


async def count(session: Executor, user_id: int, only: str | None, unassigned: bool) -> int:
    """Return how many locations a caller sees; `only` restricts them to one name."""
    query = select(func.count()).select_from(locations).where(_visible(user_id, only, unassigned))
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
    session: Executor, user_id: int, only: str | None, unassigned: bool, window: tuple[int, int]
) -> list[ListedLocation]:
    """Return one page ordered by title, then name; `window` is (offset, limit)."""
    query = (
        select(*(locations.c[name] for name in ListedLocation._fields[:-1]), businesses.c.name)
        .select_from(locations.outerjoin(businesses, businesses.c.id == locations.c.business_id))
        .where(_visible(user_id, only, unassigned))
        .order_by(locations.c.title, locations.c.name)
        .offset(window[0])
        .limit(window[1])
    )
    return [ListedLocation._make(row) for row in await session.execute(query)]


async def add(session: AsyncSession, **values: object) -> None:
    await session.execute(insert(locations).values(**values))


async def change(session: AsyncSession, name: str, **values: object) -> None:
    """Set columns of a location."""
    await session.execute(update(locations).where(locations.c.name == name).values(**values))


async def enable_sync(session: AsyncSession, name: str) -> bool:
    """Switch sync on if the location is verified; return False if it is not."""
    statement = (
        update(locations)
        .where(locations.c.name == name, locations.c.is_verified)
        .values(sync_enabled=True)
        .returning(locations.c.name)
    )
    return (await session.execute(statement)).first() is not None


async def keep_profile(session: AsyncSession, name: str, profile: str, title: str, read_at: int) -> None:
    """Store a profile, unless a later reading is stored."""
    statement = (
        update(locations)
        .where(locations.c.name == name, locations.c.profile_read_at <= read_at)
        .values(profile=profile, title=title, profile_read_at=read_at)
    )
    await session.execute(statement)


async def assign(session: AsyncSession, name: str, business_id: int, now: int) -> bool:
    """Assign an unassigned location to a business; return False if it was assigned meanwhile."""
    statement = (
        update(locations)
        .where(locations.c.name == name, locations.c.business_id.is_(None))
        .values(business_id=business_id, assigned_at=now)
        .returning(locations.c.name)
    )
    return (await session.execute(statement)).first() is not None


async def assigned(session: Executor, user_id: int) -> list[str]:
    """Return the assigned locations of a user, the first assigned first; a plan counts them in this order."""
    query = (
        select(locations.c.name)
        .where(locations.c.user_id == user_id, locations.c.business_id.is_not(None))
        .order_by(locations.c.assigned_at, locations.c.name)
    )
    return list((await session.execute(query)).scalars())
