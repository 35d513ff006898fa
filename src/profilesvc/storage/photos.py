"""Queries on photos that the provider fetches."""

from typing import NamedTuple

from sqlalchemy import func, select, update
from sqlalchemy.ext.asyncio import AsyncSession

from profilesvc.database.statements import Executor, insert_into
from profilesvc.storage.tables import photos


class Photo(NamedTuple):
    """A photo as it is served."""

    media_type: str
    content: bytes


async def add(session: AsyncSession, owner_id: int, photo_id: str, photo: Photo, expires_at: int) -> None:
    await session.execute(
        insert_into(session, photos).values(owner_id=owner_id, id=photo_id, **photo._asdict(), expires_at=expires_at)
    )


async def count(session: Executor, owner_id: int) -> int:
    query = select(func.count()).select_from(photos).where(photos.c.owner_id == owner_id)
    return int((await session.execute(query)).scalar_one())


async def find(session: Executor, owner_id: int, photo_id: str, now: int) -> Photo | None:
    is_photo = (photos.c.owner_id == owner_id, photos.c.id == photo_id, photos.c.expires_at > now)
    row = (await session.execute(select(photos.c.media_type, photos.c.content).where(*is_photo))).first()
    return None if row is None else Photo._make(row)


async def extend(session: AsyncSession, owner_id: int, photo_id: str, expires_at: int) -> None:
    """Store that a photo is needed at least until an instant."""
    is_shorter = (photos.c.owner_id == owner_id, photos.c.id == photo_id, photos.c.expires_at < expires_at)
    await session.execute(update(photos).where(*is_shorter).values(expires_at=expires_at))
