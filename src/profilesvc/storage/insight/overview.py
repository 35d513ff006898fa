"""Queries for the dashboard: all locations, keys and posts of a user, each in one statement."""

from typing import NamedTuple

from sqlalchemy import BigInteger, and_, bindparam, func, literal, select

from profilesvc.database.statements import Executor, Prepared, columns, fetch, records
from profilesvc.storage.heartbeats import KeyRow, reasons
from profilesvc.storage.keys import live
from profilesvc.storage.locations import is_kept, with_business
from profilesvc.storage.tables import OWNER, businesses, connections, holds, keys, locations, posts


class SiteRow(NamedTuple):
    """A location with the name of its business; profile and source are JSON strings."""

    name: str
    title: str
    profile: str
    profile_read_at: int
    source: str | None
    is_verified: bool
    verification_state: str
    sync_enabled: bool
    business_id: int | None
    business_name: str | None


_KEYS = keys.outerjoin(connections).outerjoin(holds)


async def location_rows(session: Executor, owner_id: int) -> list[SiteRow]:
    """Return a user's locations by title."""
    query = (
        select(*columns(locations, SiteRow._fields[:-1]), businesses.c.name.label("business_name"))
        .select_from(with_business)
        .where(locations.c.owner_id == owner_id, is_kept())
        .order_by(locations.c.title, locations.c.name)
    )
    return await records(session, SiteRow, query)


async def key_rows(session: Executor, owner_id: int, now: int) -> list[KeyRow]:
    """Return a user's live keys, oldest first. A key with several holds has a row for each, the most severe first."""
    key, contact = KeyRow._fields[:6], KeyRow._fields[7:14]
    query = (
        select(
            *columns(keys, key),
            keys.c.badge_digest.is_not(None).label("has_badge"),
            *columns(connections, contact),
            *(each.label(name) for each, name in zip(reasons(literal(owner_id)), KeyRow._fields[14:18], strict=True)),
            holds.c.reason.label("hold_reason"),
        )
        .select_from(_KEYS)
        .where(keys.c.owner_id == owner_id, live(now))
        .order_by(keys.c.id, holds.c.severity.desc())
    )
    return await records(session, KeyRow, query)


async def posts_by_state(session: Executor, owner_id: int) -> dict[tuple[str, str], int]:
    """Return how many cached posts of a user are rejected or in review, by (location, state)."""
    query = (
        select(posts.c.location_name, posts.c.state, func.count().label("amount"))
        .join(locations, and_(locations.c.owner_id == posts.c.owner_id, locations.c.name == posts.c.location_name))
        .where(locations.c.owner_id == owner_id, posts.c.state.in_(("REJECTED", "PROCESSING")))
        .group_by(posts.c.location_name, posts.c.state)
    )
    return {(row.location_name, row.state): row.amount for row in await session.execute(query)}


class BadgeState(NamedTuple):
    """A key as its badge shows it: its name, last contact and most severe hold."""

    name: str
    last_heartbeat_at: int | None
    hold_reason: str | None


_BADGE = Prepared(
    select(keys.c.name, connections.c.last_heartbeat_at, holds.c.reason)
    .select_from(_KEYS)
    .where(keys.c.owner_id == OWNER, keys.c.badge_digest == bindparam("digest"))
    .where(live(bindparam("now", type_=BigInteger)))
    .order_by(holds.c.severity.desc())
    .limit(1)
)


async def badge_state(session: Executor, owner_id: int, digest: str, now: int) -> BadgeState | None:
    """Return the owner's live key whose badge link has this digest."""
    rows = await fetch(session, _BADGE, owner_id=owner_id, digest=digest, now=now)
    return BadgeState(*rows[0]) if rows else None
