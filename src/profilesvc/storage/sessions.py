"""Queries on the sessions of users: the user tokens that were issued."""

from typing import NamedTuple

from sqlalchemy import exists, func, select
from sqlalchemy.ext.asyncio import AsyncSession

from profilesvc.database.statements import Executor, columns, insert_into, record, records
from profilesvc.storage.tables import revocations, sessions


class Session(NamedTuple):
    """A user token that was issued; instants in milliseconds."""

    owner_id: int
    id: str
    created_at: int
    used_at: int
    expires_at: int
    epoch: int
    ip_prefix: str | None
    browser: str
    system: str


async def put(session: AsyncSession, row: Session) -> None:
    """Store a session. If it is stored, only the time of its last use is changed, to a later one."""
    statement = insert_into(session, sessions).values(row._asdict())
    used = statement.excluded.used_at
    later = statement.on_conflict_do_update(
        index_elements=["owner_id", "id"], set_={"used_at": used}, where=sessions.c.used_at < used
    )
    await session.execute(later)


async def find(session: Executor, owner_id: int, session_id: str) -> Session | None:
    query = select(*columns(sessions, Session._fields))
    return await record(session, Session, query.where(sessions.c.owner_id == owner_id, sessions.c.id == session_id))


async def live(session: Executor, owner_id: int, epoch: int, now: int, limit: int) -> tuple[list[Session], int]:
    """Return the sessions of a user that are not ended, the last used first, and how many they are in all."""
    is_revoked = exists().where(revocations.c.owner_id == owner_id, revocations.c.id == sessions.c.id)
    is_live = sessions.c.owner_id == owner_id, sessions.c.epoch == epoch, sessions.c.expires_at > now, ~is_revoked
    query = select(*columns(sessions, Session._fields)).where(*is_live)
    query = query.order_by(sessions.c.used_at.desc(), sessions.c.id).limit(limit)
    page = await records(session, Session, query)
    if len(page) < limit:
        return page, len(page)
    return page, int((await session.execute(select(func.count()).select_from(sessions).where(*is_live))).scalar_one())
