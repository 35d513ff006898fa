"""Which keys take requests of which domains, so that a preflight is one look at an index (D-30)."""

from sqlalchemy import BigInteger, String, bindparam, delete, insert, literal, select
from sqlalchemy.ext.asyncio import AsyncSession

from profilesvc.database.engine import Executor
from profilesvc.storage.tables import holds, key_domains, keys, users

ANY = ""  # stands for every domain: the row of a key that has none
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
    """Whether a live key takes requests of this domain; None is a host that only keys without domains take."""
    query = LIVE_KEY.params(domain=ANY if domain is None else domain, now=now)
    return (await session.execute(query)).first() is not None


async def add(session: AsyncSession, key_id: int, allowed: list[str], expires_at: int | None) -> None:
    """Note the domains of a new key."""
    until = NEVER if expires_at is None else expires_at
    rows = [{"domain": domain, "until": until, "key_id": key_id} for domain in allowed or [ANY]]
    await session.execute(insert(key_domains), rows)


async def drop(session: AsyncSession, key_id: int) -> None:
    """Forget those of a key that has ended for good."""
    await session.execute(delete(key_domains).where(key_domains.c.key_id == key_id))
