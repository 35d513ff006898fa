"""Queries on the domains from which keys accept requests, so that a preflight costs one look-up in an index."""

from sqlalchemy import BigInteger, String, bindparam, delete, insert, literal, select
from sqlalchemy.ext.asyncio import AsyncSession

from profilesvc.database.statements import Executor
from profilesvc.storage.tables import holds, key_domains, keys, users

ANY = ""  # the domain in the row of a key that accepts every domain
NEVER = 2**63 - 1

LIVE_KEY = (
    select(literal(1))
    .select_from(
        key_domains.join(keys, keys.c.id == key_domains.c.key_id)
        .join(users, users.c.id == keys.c.user_id)
        .outerjoin(holds, holds.c.key_id == keys.c.id)
    )
    .where(
        key_domains.c.domain.in_([bindparam("domain", type_=String), ANY]),
        key_domains.c.until > bindparam("now", type_=BigInteger),
        keys.c.revoked_at.is_(None),
        users.c.suspended_at.is_(None),
        holds.c.key_id.is_(None),
    )
    .limit(1)
)


async def allow(session: Executor, domain: str | None, now: int) -> bool:
    """Return whether a live key accepts requests from this domain.

    None is a host that only keys without domains accept.
    """
    query = LIVE_KEY.params(domain=ANY if domain is None else domain, now=now)
    return (await session.execute(query)).first() is not None


async def add(session: AsyncSession, key_id: int, allowed: list[str], expires_at: int | None) -> None:
    """Store the domains of a new key."""
    until = NEVER if expires_at is None else expires_at
    rows = [{"domain": domain, "until": until, "key_id": key_id} for domain in allowed or [ANY]]
    await session.execute(insert(key_domains), rows)


async def drop(session: AsyncSession, key_id: int) -> None:
    """Delete the domains of a revoked key."""
    await session.execute(delete(key_domains).where(key_domains.c.key_id == key_id))
