"""Queries on the domains from which keys accept requests, so that a preflight costs one look-up in an index."""

from typing import NamedTuple

from sqlalchemy import BigInteger, String, and_, bindparam, delete, insert, literal, select
from sqlalchemy.ext.asyncio import AsyncSession

from profilesvc.database.statements import Executor
from profilesvc.storage.tables import holds, key_domains, keys, users

ANY = ""  # the domain in the row of a key that accepts every domain
NEVER = 2**63 - 1

LIVE_KEY = (
    select(literal(1))
    .select_from(
        key_domains.join(keys, and_(keys.c.owner_id == key_domains.c.owner_id, keys.c.id == key_domains.c.key_id))
        .join(users, users.c.id == keys.c.owner_id)
        .outerjoin(holds, and_(holds.c.owner_id == keys.c.owner_id, holds.c.key_id == keys.c.id))
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


class Entry(NamedTuple):
    """What the rows of a key have in common, apart from their domains."""

    owner_id: int
    key_id: int
    expires_at: int | None

    def row(self) -> dict[str, int]:
        """Return the columns besides the domain."""
        until = NEVER if self.expires_at is None else self.expires_at
        return {"owner_id": self.owner_id, "key_id": self.key_id, "until": until}


async def add(session: AsyncSession, entry: Entry, allowed: list[str]) -> None:
    """Store the domains of a new key."""
    await session.execute(insert(key_domains), [{"domain": domain, **entry.row()} for domain in allowed or [ANY]])


async def drop(session: AsyncSession, entry: Entry, allowed: list[str]) -> None:
    """Delete the domains of a revoked key, each by its whole primary key and in a statement for its own shard."""
    is_entry = (key_domains.c[name] == bindparam(f"its_{name}") for name in ("domain", *entry.row()))
    its = {f"its_{name}": value for name, value in entry.row().items()}
    connection = await session.connection()
    await connection.execute(
        delete(key_domains).where(*is_entry), [{"its_domain": domain, **its} for domain in allowed or [ANY]]
    )
