"""Queries on the subjects of identity providers, and on the ID tokens that were exchanged."""

from typing import NamedTuple

from sqlalchemy import ColumnElement, delete, select
from sqlalchemy.ext.asyncio import AsyncSession

from profilesvc.database.statements import Executor, has_row, insert_new, records
from profilesvc.storage.tables import exchanges, identities, users
from profilesvc.storage.users import UserState, user


class Linked(NamedTuple):
    """A subject of an issuer, and the user it is linked to."""

    subject: str
    email: str
    name: str


def _matches(issuer: str, subject: str) -> tuple[ColumnElement[bool], ColumnElement[bool]]:
    return identities.c.issuer == issuer, identities.c.subject == subject


async def user_of(session: Executor, issuer: str, subject: str) -> UserState | None:
    query = select(identities.c.owner_id).where(*_matches(issuer, subject))
    owner_id = (await session.execute(query)).scalar_one_or_none()
    return None if owner_id is None else await user(session, owner_id)


async def link(session: AsyncSession, issuer: str, subject: str, owner_id: int, now: int) -> bool:
    """Link a subject to a user; return False and change nothing if it is linked already."""
    return await insert_new(session, identities, issuer=issuer, subject=subject, owner_id=owner_id, created_at=now)


async def unlink(session: AsyncSession, issuer: str, subject: str) -> None:
    """Delete the link of a subject."""
    await session.execute(delete(identities).where(*_matches(issuer, subject)))


async def issuer_subjects(session: Executor, issuer: str) -> list[Linked]:
    """Return every linked subject of an issuer, ordered by user."""
    every = select(identities.c.subject, identities.c.owner_id).where(identities.c.issuer == issuer)
    linked = every.cte("linked").prefix_with("MATERIALIZED")  # its rows are on other nodes than the users
    query = select(linked.c.subject, users.c.email, users.c.name).join(users, users.c.id == linked.c.owner_id)
    return await records(session, Linked, query.order_by(users.c.id))


async def was_used(session: Executor, digest: str) -> bool:
    """Return whether the use of something was recorded."""
    return await has_row(session, select(exchanges.c.digest).where(exchanges.c.digest == digest))


async def mark_used(session: AsyncSession, digest: str, expires_at: int) -> bool:
    """Record the use of an ID token, a state or a connect link; return False if it was used before."""
    return await insert_new(session, exchanges, digest=digest, expires_at=expires_at)
