"""Queries on the cached posts."""

import json
from collections.abc import Iterable
from typing import NamedTuple

from sqlalchemy import ColumnElement, Integer, String, and_, bindparam, cast, delete, func, select, tuple_, update
from sqlalchemy.ext.asyncio import AsyncSession

from profilesvc.database.statements import Executor, Prefetch, Prepared, Row, fetch, insert_into, joined, upsert
from profilesvc.storage.locations import change_kept
from profilesvc.storage.tables import OWNER, events, locations, posts

Position = tuple[int, str]


class CacheAge(NamedTuple):
    """The last read of a location's posts, None for never; and the oldest post in review, None if there is none."""

    posts_read_at: int | None
    processing_read_at: int | None


class Page(NamedTuple):
    """Documents of posts, newest first, joined as in a JSON list; `last` is where the page ends if another follows."""

    documents: str
    last: str


class StoredPost(NamedTuple):
    """A cached post; the document is the JSON text in the list's response."""

    post_id: str
    created_at: int
    state: str
    document: str


_LISTED = (posts.c.owner_id == OWNER, posts.c.location_name == bindparam("location"))
_AGE_COLUMNS = (
    locations.c.posts_read_at,
    select(func.min(posts.c.read_at)).where(*_LISTED, posts.c.state == "PROCESSING").correlate(None).scalar_subquery(),
)
_IS_LOCATION = and_(locations.c.owner_id == OWNER, locations.c.name == bindparam("location"))
_AGE = Prepared(select(*_AGE_COLUMNS).where(_IS_LOCATION))


def _page(*after: ColumnElement[bool]) -> tuple[ColumnElement[str], ColumnElement[str]]:
    """Return the documents of a page as one string, and the positions of its last post and of the one after it."""
    order = (posts.c.created_at.desc(), posts.c.post_id.desc())
    position = cast(posts.c.created_at, String) + "." + posts.c.post_id
    listed = select(posts.c.document).where(*_LISTED, *after).order_by(*order).limit(bindparam("size", type_=Integer))
    ends = select(position.label("position")).where(*_LISTED, *after).order_by(*order)
    ends = ends.limit(2).offset(bindparam("last", type_=Integer))
    return joined(listed, ","), joined(ends, " ")


# The age of the cache decides whether the page is still valid, so one statement reads both.
_FIRST_PAGE = Prepared(select(*_page(), *_AGE_COLUMNS).where(_IS_LOCATION))
_place = tuple_(posts.c.created_at, posts.c.post_id)
_BEFORE = (bindparam("before", type_=posts.c.created_at.type), bindparam("before_id", type_=posts.c.post_id.type))
_NEXT_PAGE = Prepared(select(*_page(_place < tuple_(*_BEFORE))))
_UNCHANGED = (
    posts.c.owner_id == bindparam("its_owner"),
    posts.c.location_name == bindparam("its_location"),
    posts.c.post_id == bindparam("its_id"),
    posts.c.document == bindparam("before"),
)


async def cache_age(session: Executor, owner_id: int, location: str) -> CacheAge:
    """Return the age of the cache of an existing location's posts."""
    return CacheAge._make((await fetch(session, _AGE, owner_id=owner_id, location=location))[0])


def prefetch(location: str, size: int) -> Prefetch:
    """Return the prefetch of `first_page`; `from_row` reads it. The owner is that of the key."""
    return Prefetch(_FIRST_PAGE, {"location": location, "size": size, "last": size - 1}, location)


async def first_page(session: Executor, owner_id: int, location: str, size: int) -> tuple[CacheAge, Page]:
    """Return the newest posts of an existing location, and their age."""
    parameters = prefetch(location, size).parameters
    return from_row((await fetch(session, _FIRST_PAGE, owner_id=owner_id, **parameters))[0])


def from_row(columns: Row) -> tuple[CacheAge, Page]:
    """Build the result from a row."""
    documents, ends, *age = columns
    return CacheAge._make(age), _to_page(documents, ends)


async def page(session: Executor, owner_id: int, location: str, size: int, after: Position) -> Page:
    position = {"owner_id": owner_id, "location": location, "before": after[0], "before_id": after[1]}
    return _to_page(*(await fetch(session, _NEXT_PAGE, **position, size=size, last=size - 1))[0])


def _to_page(documents: str | None, ends: str | None) -> Page:
    last, is_more, _ = (ends or "").partition(" ")
    return Page(documents or "", last if is_more else "")


def page_of(listed: Iterable[StoredPost], size: int) -> Page:
    """Return the first page of posts that could not be cached."""
    newest = sorted(listed, key=lambda post: (post.created_at, post.post_id), reverse=True)
    page = newest[:size]
    last = f"{page[-1].created_at}.{page[-1].post_id}" if len(newest) > size else ""
    return Page(",".join(post.document for post in page), last)


def _is_at(owner_id: int, location: str) -> ColumnElement[bool]:
    return and_(posts.c.owner_id == owner_id, posts.c.location_name == location)


async def find(session: Executor, owner_id: int, location: str, post_id: str) -> str | None:
    query = select(posts.c.document).where(_is_at(owner_id, location), posts.c.post_id == post_id)
    return (await session.execute(query)).scalar_one_or_none()


async def places(
    session: Executor, owner_id: int, location: str | None, first: int, end: int, limit: int
) -> list[tuple[int, str, str]]:
    """Return times, locations and ids of the cached posts of a period: of a location, or of all of an owner."""
    is_wanted = [posts.c.owner_id == owner_id, posts.c.created_at >= first, posts.c.created_at < end]
    if location is not None:
        is_wanted.append(posts.c.location_name == location)
    query = select(posts.c.created_at, posts.c.location_name, posts.c.post_id).where(*is_wanted)
    rows = await session.execute(query.order_by(posts.c.created_at).limit(limit))
    return [(row.created_at, row.location_name, row.post_id) for row in rows]


async def texts(session: Executor, owner_id: int, names: Iterable[tuple[str, str]]) -> dict[tuple[str, str], str]:
    """Return the documents of some posts, by location and id."""
    is_one = tuple_(posts.c.location_name, posts.c.post_id).in_(list(names))
    columns = (posts.c.location_name, posts.c.post_id, posts.c.document)
    rows = await session.execute(select(*columns).where(posts.c.owner_id == owner_id, is_one))
    return {(row.location_name, row.post_id): row.document for row in rows}


async def put(session: AsyncSession, owner_id: int, location: str, post: StoredPost, now: int) -> None:
    """Insert a post, or replace it if it is cached."""
    values = {**post._asdict(), "read_at": now}
    await upsert(session, posts, values, owner_id=owner_id, location_name=location, post_id=post.post_id)


async def change(session: AsyncSession, owner_id: int, location: str, post: StoredPost, now: int) -> None:
    """Replace a cached post; one that was deleted meanwhile is not added again."""
    is_post = (_is_at(owner_id, location), posts.c.post_id == post.post_id)
    await session.execute(update(posts).where(*is_post).values(**post._asdict(), read_at=now))


async def remove(session: AsyncSession, owner_id: int, location: str, post_id: str) -> str | None:
    """Remove a post and return its document, or None if it was not cached."""
    removed = delete(posts).where(_is_at(owner_id, location), posts.c.post_id == post_id).returning(posts.c.document)
    return (await session.execute(removed)).scalar_one_or_none()


async def documents(session: Executor, owner_id: int, location: str) -> dict[str, str]:
    """Return every document of a location by post id, for `replace`."""
    query = select(posts.c.post_id, posts.c.document).where(_is_at(owner_id, location))
    return {row.post_id: row.document for row in await session.execute(query)}


class CacheChanges(NamedTuple):
    """Changes of posts that were cached before: those whose state changed, and those that are gone."""

    changed: list[StoredPost]
    gone: list[str]


async def mark_read(session: AsyncSession, owner_id: int, location: str, now: int) -> bool:
    """Store that a location's posts were read; return False if the location is disconnected."""
    return await change_kept(session, owner_id, location, posts_read_at=now)


async def replace(
    session: AsyncSession,
    owner_id: int,
    location: str,
    before: dict[str, str],
    current: dict[str, StoredPost],
    now: int,
) -> CacheChanges:
    """Replace the cache by what the provider listed from `now` on.

    `before` is what was cached when that reading started. A post that was created, changed or deleted through the
    service since then is left as it is, because the list may not show it yet.
    """
    new = [
        {**post._asdict(), "owner_id": owner_id, "location_name": location, "read_at": now}
        for key, post in current.items()
        if key not in before
    ]
    if new:
        await session.execute(insert_into(session, posts).on_conflict_do_nothing(), new)
    of_location = {"its_owner": owner_id, "its_location": location}
    cached = [{**of_location, "its_id": key, "before": text} for key, text in before.items()]
    gone = list[str]()
    for row in cached:
        if row["its_id"] not in current:
            deleted = await session.execute(delete(posts).where(*_UNCHANGED).returning(posts.c.document), row)
            gone += deleted.scalars()
    remaining = [(row, current[row["its_id"]]) for row in cached if row["its_id"] in current]
    changed = list[StoredPost]()
    for row, post in remaining:
        if post.document != row["before"]:
            values = {**post._asdict(), "read_at": now}
            updated = update(posts).where(*_UNCHANGED).values(values).returning(posts.c.post_id)
            changed += [post for _ in await session.execute(updated, row)]
    return CacheChanges(changed, gone)


async def read_before(session: Executor, owner_id: int, location: str, instant: int) -> set[str]:
    """Return the ids of the posts that were cached before an instant."""
    query = select(posts.c.post_id).where(_is_at(owner_id, location), posts.c.read_at < instant)
    return {row.post_id for row in await session.execute(query)}


async def created_since(session: Executor, owner_id: int, location: str, instant: int) -> set[str]:
    """Return the ids of the posts that the service has created since an instant, by its log of events."""
    of_location = events.c.owner_id == owner_id, events.c.location_name == location
    is_new = events.c.type == "post.created", events.c.created_at >= instant
    rows = await session.execute(select(events.c.data).where(*of_location, *is_new))
    posts_of_events = (json.loads(row.data).get("post", {}) for row in rows)  # a disconnection deletes the content
    return {post["name"].rpartition("/")[2] for post in posts_of_events if "name" in post}
