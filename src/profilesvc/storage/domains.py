"""Queries on the domains from which keys accept requests, so that a preflight costs one look-up in an index."""

from itertools import groupby
from typing import NamedTuple

from sqlalchemy import BigInteger, String, bindparam, delete, insert, select, tuple_
from sqlalchemy.exc import DBAPIError
from sqlalchemy.ext.asyncio import AsyncSession

from profilesvc.database.statements import Executor, Prepared, fetch
from profilesvc.database.unavailable import is_of_another_node
from profilesvc.storage.tables import holds, key_domains, keys, users

ANY = ""  # the domain in the row of a key that accepts every domain
NEVER = 2**63 - 1

_PIECE = 100  # entries of a domain that are read at once
_place = tuple_(key_domains.c.until, key_domains.c.owner_id, key_domains.c.key_id)
ENTRIES = Prepared(
    select(*_place.clauses)
    .where(
        key_domains.c.domain == bindparam("domain", type_=String),
        _place > tuple_(*(bindparam(name, type_=BigInteger) for name in ("until", "owner_id", "key_id"))),
    )
    .order_by(*_place.clauses)
    .limit(_PIECE)
)


async def allow(session: Executor, domain: str | None, now: int) -> bool:
    """Return whether a live key accepts requests from this domain.

    None is a host that only keys without domains accept. The entries of the domain, then the keys of each owner are
    statements of their own, because a distributed database may have them on different nodes.
    """
    lost: DBAPIError | None = None
    for each in (ANY,) if domain is None else (domain, ANY):
        until, owner_id, key_id = now, NEVER, NEVER  # the last entry that has ended
        while entries := await fetch(session, ENTRIES, domain=each, until=until, owner_id=owner_id, key_id=key_id):
            for owner_id, of_owner in groupby(entries, key=lambda entry: entry[1]):
                try:
                    if await _is_any_live(session, owner_id, [entry[2] for entry in of_owner]):
                        return True
                except DBAPIError as error:  # the node of this owner is down; another owner may have a live key
                    if not is_of_another_node(error):
                        raise
                    lost = error
            until, owner_id, key_id = entries[-1]
    if lost is not None:
        raise lost
    return False


async def _is_any_live(session: Executor, owner_id: int, ids: list[int]) -> bool:
    held = select(holds.c.key_id).where(holds.c.owner_id == owner_id, holds.c.key_id == keys.c.id).exists()
    is_live = (keys.c.revoked_at.is_(None), users.c.suspended_at.is_(None), ~held)
    query = select(keys.c.id).join(users, users.c.id == keys.c.owner_id)
    found = query.where(keys.c.owner_id == owner_id, keys.c.id.in_(ids), *is_live).limit(1)
    return (await session.execute(found)).first() is not None


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
