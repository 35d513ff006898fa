"""Who an issuer's subject is here, and which ID tokens were exchanged (D-15)."""

from typing import NamedTuple

from sqlalchemy import ColumnElement, delete, select
from sqlalchemy.ext.asyncio import AsyncSession

from profilesvc.database.dialect import insert_into
from profilesvc.database.engine import Executor
from profilesvc.storage.tables import exchanges, identities, users
from profilesvc.storage.users import USER, UserState


class Linked(NamedTuple):
    """A subject of an issuer, and whose it is."""

    subject: str
    email: str
    name: str


def _of(issuer: str, subject: str) -> tuple[ColumnElement[bool], ColumnElement[bool]]:
    return identities.c.issuer == issuer, identities.c.subject == subject


async def user_of(session: Executor, issuer: str, subject: str) -> UserState | None:
    """The user of a subject."""
    query = USER.join(identities, identities.c.user_id == users.c.id).where(*_of(issuer, subject))
    row = (await session.execute(query)).one_or_none()
    return None if row is None else UserState._make(row)


async def link(session: AsyncSession, issuer: str, subject: str, user_id: int, now: int) -> bool:
    """Link a subject to a user; False, and nothing changed, when it is linked already."""
    values = {"issuer": issuer, "subject": subject, "user_id": user_id, "created_at": now}
    statement = insert_into(session, identities).values(values).on_conflict_do_nothing()
    return bool((await session.execute(statement.returning(identities.c.user_id))).first())


async def unlink(session: AsyncSession, issuer: str, subject: str) -> None:
    """Take a link away."""
    await session.execute(delete(identities).where(*_of(issuer, subject)))


async def of_issuer(session: Executor, issuer: str) -> list[Linked]:
    """Every subject of an issuer, by user."""
    query = select(identities.c.subject, users.c.email, users.c.name).join(users, identities.c.user_id == users.c.id)
    rows = await session.execute(query.where(identities.c.issuer == issuer).order_by(users.c.id))
    return [Linked._make(row) for row in rows]


async def spend(session: AsyncSession, digest: str, expires_at: int, now: int) -> bool:
    """Mark what may be used once as used; False when it was. What nobody could use any more is forgotten."""
    await session.execute(delete(exchanges).where(exchanges.c.expires_at <= now))
    statement = insert_into(session, exchanges).values(digest=digest, expires_at=expires_at).on_conflict_do_nothing()
    return bool((await session.execute(statement.returning(exchanges.c.digest))).first())
