"""Queries on revoked tokens (jti) and families (fam) of an owner, and on removed signing keys (kid).

`any_of` is part of the statement that reads the caller of every request. That costs two more look-ups of a
primary key, and makes a revocation effective in every process as soon as it is committed.
"""

from typing import Literal, TypedDict

from sqlalchemy import bindparam, exists, or_
from sqlalchemy.ext.asyncio import AsyncSession

from profilesvc.database.statements import insert_new
from profilesvc.storage.tables import OWNER, revocations, signing_keys

Kind = Literal["token", "family"]


class TokenIds(TypedDict):
    """The ids by which a token can be revoked: the parameters of `any_of` besides the owner. "" is never revoked."""

    jti: str
    fam: str
    kid: str


NO_TOKEN: TokenIds = {"jti": "", "fam": "", "kid": ""}

_OF_OWNER = revocations.c.owner_id == OWNER, revocations.c.id.in_([bindparam("jti"), bindparam("fam")])
_KID_REMOVED = signing_keys.c.kid == bindparam("kid"), signing_keys.c.removed_at.is_not(None)
any_of = or_(exists().where(*_OF_OWNER).correlate(None), exists().where(*_KID_REMOVED).correlate(None))


async def add(session: AsyncSession, owner_id: int, kind: Kind, revoked_id: str, now: int, expires_at: int) -> bool:
    """Revoke an id until everything with this id has expired. Return False if it was revoked, which changes nothing."""
    values = {"owner_id": owner_id, "id": revoked_id, "kind": kind, "revoked_at": now, "expires_at": expires_at}
    return await insert_new(session, revocations, **values)
