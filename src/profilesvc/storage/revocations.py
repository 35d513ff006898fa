"""What ended before its time: tokens (jti), families (fam) and signing keys (kid), in one list of ids.

`any_of` goes into the statement that reads the caller on every request: one look at a primary key more, and a
revocation holds on every process from the moment it is committed (D-14).
"""

from typing import Literal

from sqlalchemy import bindparam, exists
from sqlalchemy.ext.asyncio import AsyncSession

from profilesvc.database.dialect import insert_into
from profilesvc.storage.tables import revocations

Kind = Literal["token", "family", "signing_key"]
_IDS = ("jti", "fam", "kid")

any_of = exists().where(revocations.c.id.in_([bindparam(name) for name in _IDS])).correlate(None)


def ids_of(*ids: str) -> dict[str, str]:
    """The parameters of `any_of`; fewer ids leave the rest empty, which no id is."""
    return dict(zip(_IDS, (*ids, "", "", ""), strict=False))


async def add(session: AsyncSession, kind: Kind, revoked_id: str, now: int, expires_at: int) -> None:
    """Revoke an id until what carries it has expired by itself; again is harmless."""
    values = {"id": revoked_id, "kind": kind, "revoked_at": now, "expires_at": expires_at}
    await session.execute(insert_into(session, revocations).values(values).on_conflict_do_nothing())
