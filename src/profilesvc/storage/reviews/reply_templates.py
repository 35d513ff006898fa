"""Queries on an owner's templates of replies."""

from typing import NamedTuple

from sqlalchemy import delete, func, select
from sqlalchemy.ext.asyncio import AsyncSession

from profilesvc.database.statements import Executor, has_row, insert_into, records
from profilesvc.storage.tables import reply_templates

_COLUMNS = reply_templates.c


class ReplyTemplate(NamedTuple):
    """A text for replies, with a name that the owner gave it."""

    id: str
    name: str
    text: str


async def templates(session: Executor, owner_id: int) -> list[ReplyTemplate]:
    """Return the templates by name."""
    query = select(_COLUMNS.id, _COLUMNS.name, _COLUMNS.text).where(_COLUMNS.owner_id == owner_id)
    return await records(session, ReplyTemplate, query.order_by(_COLUMNS.name))


async def count_others(session: Executor, owner_id: int, name: str) -> int:
    """Return how many templates have other names."""
    query = select(func.count()).select_from(reply_templates)
    return int((await session.execute(query.where(_COLUMNS.owner_id == owner_id, _COLUMNS.name != name))).scalar_one())


async def put(session: AsyncSession, owner_id: int, template: ReplyTemplate) -> None:
    """Insert a template, or replace the text of the one with this name."""
    insert = insert_into(session, reply_templates).values(owner_id=owner_id, **template._asdict())
    names = [_COLUMNS.owner_id, _COLUMNS.name]
    await session.execute(insert.on_conflict_do_update(index_elements=names, set_={"text": template.text}))


async def remove(session: AsyncSession, owner_id: int, template_id: str) -> bool:
    """Delete a template; return False if there is none."""
    is_template = (_COLUMNS.owner_id == owner_id, _COLUMNS.id == template_id)
    removed = delete(reply_templates).where(*is_template).returning(_COLUMNS.id)
    return await has_row(session, removed)
