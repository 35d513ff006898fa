"""Queries for the dashboard: all locations, keys and posts of a user, each in one statement."""

from typing import Any, NamedTuple

from sqlalchemy import BigInteger, Row, bindparam, func, select

from profilesvc.database.engine import Executor
from profilesvc.database.prepared import Prepared, fetch
from profilesvc.storage.keys import live
from profilesvc.storage.tables import businesses, connections, holds, keys, locations, posts


async def of_locations(session: Executor, user_id: int) -> list[Row[Any]]:
    """Return a user's locations by title; profile and source are JSON strings."""
    columns = ("name", "title", "profile", "profile_read_at", "source", "is_verified", "verification_state")
    query = (
        select(
            *(locations.c[name] for name in columns),
            locations.c.sync_enabled,
            locations.c.business_id,
            locations.c.assigned_at,
            businesses.c.name.label("business_name"),
        )
        .select_from(locations.outerjoin(businesses, businesses.c.id == locations.c.business_id))
        .where(locations.c.user_id == user_id)
        .order_by(locations.c.title, locations.c.name)
    )
    return list(await session.execute(query))


async def of_keys(session: Executor, user_id: int, now: int) -> list[Row[Any]]:
    """Return a user's live keys, oldest first, with their last contact, their holds, and whether they have a badge.

    A key with several holds has a row for each, the most severe first.
    """
    contact = ("last_heartbeat_at", "plugin_version", "wp_version", "php_version", "site_host")
    query = (
        select(
            keys.c.id,
            keys.c.client_id,
            keys.c.name,
            keys.c.location_name,
            keys.c.primary_domain,
            keys.c.allowed_domains,
            keys.c.created_at,
            keys.c.last_used_at,
            keys.c.badge_digest.is_not(None).label("has_badge"),
            *(connections.c[name] for name in (*contact, "other_site_host", "other_site_host_at")),
            holds.c.reason.label("hold_reason"),
            holds.c.set_at.label("hold_set_at"),
        )
        .select_from(
            keys.outerjoin(connections, connections.c.key_id == keys.c.id).outerjoin(holds, holds.c.key_id == keys.c.id)
        )
        .where(keys.c.user_id == user_id, live(now))
        .order_by(keys.c.id, holds.c.severity.desc())
    )
    return list(await session.execute(query))


async def of_posts(session: Executor, user_id: int) -> dict[tuple[str, str], int]:
    """Return how many cached posts of a user are rejected or in review, by (location, state)."""
    query = (
        select(posts.c.location_name, posts.c.state, func.count().label("amount"))
        .join(locations, locations.c.name == posts.c.location_name)
        .where(locations.c.user_id == user_id, posts.c.state.in_(("REJECTED", "PROCESSING")))
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
    .select_from(
        keys.outerjoin(connections, connections.c.key_id == keys.c.id).outerjoin(holds, holds.c.key_id == keys.c.id)
    )
    .where(keys.c.badge_digest == bindparam("digest"), live(bindparam("now", type_=BigInteger)))
    .order_by(holds.c.severity.desc())
    .limit(1)
)


async def of_badge(session: Executor, digest: str, now: int) -> BadgeState | None:
    """Return the live key whose badge link has this digest."""
    rows = await fetch(session, _BADGE, digest=digest, now=now)
    return BadgeState(*rows[0]) if rows else None
