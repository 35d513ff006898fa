"""Queries on photos that the provider fetches."""

from dataclasses import dataclass

from sqlalchemy import Column, ColumnElement, Select, and_, delete, func, select, update
from sqlalchemy.ext.asyncio import AsyncSession

from profilesvc.database.statements import Executor, has_row, insert_new, record
from profilesvc.storage.tables import drafts, photos, posts


@dataclass(frozen=True, slots=True, weakref_slot=True)
class Photo:
    """A photo as it is served."""

    media_type: str
    content: bytes


async def add(session: AsyncSession, owner_id: int, photo_id: str, photo: Photo, expires_at: int) -> None:
    """Add a photo. Another request with the same form may have added it just now."""
    values = {"media_type": photo.media_type, "content": photo.content, "expires_at": expires_at}
    await insert_new(session, photos, owner_id=owner_id, id=photo_id, **values)


async def total(session: Executor, owner_id: int) -> tuple[int, int]:
    """Return how many photos an owner has, and their bytes."""
    size = func.coalesce(func.sum(func.length(photos.c.content)), 0)
    query = select(func.count().label("number"), size.label("size")).where(photos.c.owner_id == owner_id)
    row = (await session.execute(query)).one()
    return int(row.number), int(row.size)


async def find(session: Executor, owner_id: int, photo_id: str, now: int) -> Photo | None:
    is_photo = and_(_is(owner_id, photo_id), photos.c.expires_at > now)
    return await record(session, Photo, select(photos.c.media_type, photos.c.content).where(is_photo))


async def exists(session: Executor, owner_id: int, photo_id: str, now: int) -> bool:
    query = select(photos.c.media_type).where(_is(owner_id, photo_id), photos.c.expires_at > now)
    return await has_row(session, query)


async def keep(session: AsyncSession, owner_id: int, photo_id: str, expires_at: int) -> None:
    """Store until when a photo is needed."""
    await session.execute(update(photos).where(_is(owner_id, photo_id)).values(expires_at=expires_at))


async def is_drafted(session: Executor, owner_id: int, photo_id: str) -> bool:
    """Return whether a draft has the photo."""
    return await _has(session, select(drafts.c.id).where(drafts.c.owner_id == owner_id), drafts.c.document, photo_id)


async def is_posted(session: Executor, owner_id: int, photo_id: str) -> bool:
    """Return whether a post has the photo, as the posts were last read."""
    return await _has(session, select(posts.c.post_id).where(posts.c.owner_id == owner_id), posts.c.document, photo_id)


async def _has(session: Executor, rows: Select[tuple[str]], document: Column[str], photo_id: str) -> bool:
    query = rows.where(document.contains(photo_id, autoescape=True)).limit(1)
    return await has_row(session, query)


async def remove(session: AsyncSession, owner_id: int, photo_id: str) -> None:
    await session.execute(delete(photos).where(_is(owner_id, photo_id)))


def _is(owner_id: int, photo_id: str) -> ColumnElement[bool]:
    return and_(photos.c.owner_id == owner_id, photos.c.id == photo_id)
