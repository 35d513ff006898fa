"""Queries on drafts and scheduled posts."""

from collections.abc import Sequence
from typing import Literal, NamedTuple

from sqlalchemy import ColumnElement, and_, delete, func, select, update
from sqlalchemy.ext.asyncio import AsyncSession

from profilesvc.database.statements import Executor, columns, has_row, record, records, upsert
from profilesvc.storage.tables import drafts, users

State = Literal["draft", "scheduled", "sending", "failed"]


class Draft(NamedTuple):
    """A post that is not sent yet; instants in milliseconds."""

    id: str
    location_name: str
    state: State
    fields: str
    document: str
    due_at: int | None
    zone: str
    started_at: int | None
    problem: str | None
    updated_at: int


class Head(NamedTuple):
    """A draft in a list, without its contents, which are up to 500 times 20,000 characters."""

    id: str
    location_name: str
    state: State
    due_at: int | None
    problem: str | None


class DueDraft(NamedTuple):
    """A draft whose next attempt is due, and the plan of its owner."""

    owner_id: int
    id: str
    plan: str


_COLUMNS = columns(drafts, Draft._fields)


def _is(owner_id: int, draft_id: str) -> ColumnElement[bool]:
    return and_(drafts.c.owner_id == owner_id, drafts.c.id == draft_id)


async def location_drafts(session: Executor, owner_id: int, location: str, limit: int) -> list[Draft]:
    """Return drafts of a location, the next to be published first."""
    query = select(*_COLUMNS).where(drafts.c.owner_id == owner_id, drafts.c.location_name == location)
    order = (func.coalesce(drafts.c.due_at, 0), drafts.c.updated_at)
    return await records(session, Draft, query.order_by(*order).limit(limit))


async def heads(session: Executor, owner_id: int) -> list[Head]:
    """Return the drafts of all locations of an owner, the next to be published first, those without a time last."""
    order = (drafts.c.due_at.is_(None), drafts.c.due_at, drafts.c.updated_at.desc())
    query = select(*columns(drafts, Head._fields)).where(drafts.c.owner_id == owner_id)
    return await records(session, Head, query.order_by(*order))


async def texts(session: Executor, owner_id: int, ids: Sequence[str]) -> dict[str, str]:
    """Return the posts, as JSON, of some drafts by their ids."""
    query = select(drafts.c.id, drafts.c.document).where(drafts.c.owner_id == owner_id, drafts.c.id.in_(ids))
    return {row.id: row.document for row in await session.execute(query)}


async def documents(session: Executor, owner_id: int, names: Sequence[str]) -> list[str]:
    """Return the posts, as JSON, of the drafts of some locations."""
    is_wanted = drafts.c.owner_id == owner_id, drafts.c.location_name.in_(names)
    return list((await session.execute(select(drafts.c.document).where(*is_wanted))).scalars())


async def find(session: Executor, owner_id: int, draft_id: str) -> Draft | None:
    return await record(session, Draft, select(*_COLUMNS).where(_is(owner_id, draft_id)))


async def count(session: Executor, owner_id: int, location: str | None = None) -> int:
    query = select(func.count()).select_from(drafts).where(drafts.c.owner_id == owner_id)
    if location is not None:
        query = query.where(drafts.c.location_name == location)
    return int((await session.execute(query)).scalar_one())


async def put(session: AsyncSession, owner_id: int, draft: Draft, next_at: int | None) -> bool:
    """Insert a draft, or replace it; return False if it is being sent."""
    values = {**draft._asdict(), "next_at": next_at}
    unsent = and_(drafts.c.state != "sending", drafts.c.location_name == draft.location_name)
    return await upsert(session, drafts, values, unsent, owner_id=owner_id, id=draft.id)


async def remove(session: AsyncSession, owner_id: int, location: str, draft_id: str) -> bool:
    """Delete a draft; return False if there is none, or it is being sent."""
    unsent = (_is(owner_id, draft_id), drafts.c.location_name == location, drafts.c.state != "sending")
    return await has_row(session, delete(drafts).where(*unsent).returning(drafts.c.id))


async def unschedule(session: AsyncSession, owner_id: int, draft_id: str) -> bool:
    """Make it a draft without a time; return False if there is none, or it is being sent."""
    unsent = (_is(owner_id, draft_id), drafts.c.state != "sending")
    changed = update(drafts).where(*unsent).values(state="draft", due_at=None, next_at=None)
    return await has_row(session, changed.returning(drafts.c.id))


async def reschedule(session: AsyncSession, owner_id: int, before: Draft) -> None:
    """Undo `unschedule`, unless the draft was changed since."""
    same = (_is(owner_id, before.id), drafts.c.state == "draft", drafts.c.updated_at == before.updated_at)
    next_at = before.due_at if before.state == "scheduled" else None
    values = {"state": before.state, "due_at": before.due_at, "next_at": next_at}
    await session.execute(update(drafts).where(*same).values(**values))


async def due(session: Executor, now: int, limit: int) -> list[DueDraft]:
    """Return what is due, one of each owner in turn, so that many posts of one owner do not delay those of others."""
    turn = func.row_number().over(partition_by=drafts.c.owner_id, order_by=(drafts.c.next_at, drafts.c.id))
    query = (
        select(drafts.c.owner_id, drafts.c.id, users.c.plan)
        .select_from(drafts.join(users, users.c.id == drafts.c.owner_id))
        .where(drafts.c.next_at.is_not(None), drafts.c.next_at <= now, users.c.suspended_at.is_(None))
        .order_by(turn, drafts.c.next_at)
        .limit(limit)
    )
    return await records(session, DueDraft, query)


async def claim(session: AsyncSession, owner_id: int, draft_id: str, now: int, until: int) -> Draft | None:
    """Mark a due draft as being sent and return it, or None if that is not due any more."""
    values = {"state": "sending", "next_at": until, "started_at": func.coalesce(drafts.c.started_at, now)}
    is_due = (_is(owner_id, draft_id), drafts.c.next_at <= now)
    statement = update(drafts).where(*is_due).values(**values).returning(*_COLUMNS)
    return await record(session, Draft, statement)


async def end(session: AsyncSession, owner_id: int, draft_id: str) -> None:
    """Delete a draft that is now a post."""
    await session.execute(delete(drafts).where(_is(owner_id, draft_id)))


async def settle(
    session: AsyncSession, owner_id: int, draft_id: str, state: State, next_at: int | None, problem: str
) -> None:
    """Store why an attempt failed, and when the next one is."""
    values = {"state": state, "next_at": next_at, "problem": problem}
    await session.execute(update(drafts).where(_is(owner_id, draft_id)).values(**values))
