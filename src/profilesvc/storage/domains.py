"""Queries on the domains from which keys accept requests, so that a preflight costs one look-up in an index."""

from operator import eq
from typing import NamedTuple

from sqlalchemy import BigInteger, String, and_, bindparam, delete, insert, select, tuple_
from sqlalchemy.exc import DBAPIError
from sqlalchemy.ext.asyncio import AsyncSession

from profilesvc.database.statements import Executor, Prepared, fetch, has_row
from profilesvc.database.unavailable import is_of_another_node
from profilesvc.storage.tables import holds, key_domains, keys, users

ANY = ""  # the domain in the row of a key that accepts every domain
NEVER = 2**63 - 1

_PIECE = 500  # entries of a domain that are read at once
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

    None is a host that only keys without domains accept. The entries of the domain and the keys are statements of their
    own, because a distributed database may have them on different nodes. The first key has a statement of its own,
    because it is nearly always live. All others share one, so that many owners whose keys are held cost two statements.
    """
    lost: list[DBAPIError] = []
    for each in (ANY,) if domain is None else (domain, ANY):
        until, owner_id = now, NEVER
        key_id = NEVER  # the last entry that has ended
        while entries := await fetch(session, ENTRIES, domain=each, until=until, owner_id=owner_id, key_id=key_id):
            ids = [(entry[1], entry[2]) for entry in entries]
            for some in (ids[:1], ids[1:]):
                if some and await _is_any_live(session, some, lost):
                    return True
            until, owner_id, key_id = entries[-1]
    if lost:
        raise lost[-1]
    return False


async def _is_any_live(session: Executor, ids: list[tuple[int, int]], lost: list[DBAPIError]) -> bool:
    """Return whether one of these keys, by owner and id, is live; `lost` gets the errors of keys whose node is down."""
    try:
        return await _has_live(session, ids)
    except DBAPIError as error:
        if not is_of_another_node(error):
            raise
        if len(ids) == 1:
            lost.append(error)
            return False
    for each in ids:
        if await _is_any_live(session, [each], lost):
            return True
    return False


async def _has_live(session: Executor, ids: list[tuple[int, int]]) -> bool:
    held = select(holds.c.key_id).where(holds.c.owner_id == keys.c.owner_id, holds.c.key_id == keys.c.id).exists()
    is_live = (keys.c.revoked_at.is_(None), users.c.suspended_at.is_(None), ~held)
    place = keys.c.owner_id, keys.c.id
    is_one = tuple_(*place).in_(ids) if len(ids) > 1 else and_(*map(eq, place, ids[0]))
    query = select(keys.c.id).join(users, users.c.id == keys.c.owner_id).where(is_one, *is_live).limit(1)
    return await has_row(session, query)


class Entry(NamedTuple):
    """The common values of the rows of a key, apart from their domains."""

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
