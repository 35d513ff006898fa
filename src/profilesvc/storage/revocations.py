"""Queries on revoked tokens (jti), families (fam) and signing keys (kid).

`any_of` is part of the statement that reads the caller of every request. That costs one more look-up of a primary
key, and makes a revocation effective in every process as soon as it is committed.
"""

from typing import Literal, TypedDict

from sqlalchemy import bindparam, exists
from sqlalchemy.ext.asyncio import AsyncSession

from profilesvc.database.statements import insert_into
from profilesvc.storage.tables import revocations

Kind = Literal["token", "family", "signing_key"]


class TokenIds(TypedDict):
    """The ids by which a token can be revoked: the parameters of `any_of`. "" is never revoked."""

    jti: str
    fam: str
    kid: str


NO_TOKEN: TokenIds = {"jti": "", "fam": "", "kid": ""}

any_of = exists().where(revocations.c.id.in_([bindparam(name) for name in NO_TOKEN])).correlate(None)


async def add(session: AsyncSession, kind: Kind, revoked_id: str, now: int, expires_at: int) -> None:
    """Revoke an id until everything with this id has expired. A second call changes nothing."""
    values = {"id": revoked_id, "kind": kind, "revoked_at": now, "expires_at": expires_at}
    await session.execute(insert_into(session, revocations).values(values).on_conflict_do_nothing())
