"""The audit trail: appended, read by owner or key (D-61)."""

from typing import Any

from sqlalchemy import Row, String, case, cast, exists, insert, literal, select, tuple_
from sqlalchemy.ext.asyncio import AsyncSession

from profilesvc.database.dialect import insert_by, insert_into
from profilesvc.database.engine import Executor
from profilesvc.database.prepared import PreparedWrite
from profilesvc.database.writers import Executions
from profilesvc.storage.tables import audit, keys

Event = dict[str, Any]
COLUMNS = ("at", "event", "user_id", "key_id", "actor", "ip_prefix", "request_id", "details")
Place = tuple[int, int]  # time and id of an event


async def add(session: AsyncSession, events: list[Event]) -> None:
    """Append events."""
    if events:
        await session.execute(insert(audit), events)


def _count(dialect: str) -> Any:
    statement = insert_by(dialect, audit).inline()
    new = statement.excluded
    # Processes write in any order: the first occurrence stays the earliest, and `details` (the last one, always of one
    # form, so text is ordered as time is) the latest.
    grown = {
        "times": audit.c.times + new.times,
        "at": case((new.at < audit.c.at, new.at), else_=audit.c.at),
        "details": case((audit.c.details > new.details, audit.c.details), else_=new.details),
    }
    return statement.on_conflict_do_update(index_elements=[audit.c.once], set_=grown)


_ADD = PreparedWrite(lambda _dialect: insert(audit).inline(), COLUMNS)
_COUNT = PreparedWrite(_count, (*COLUMNS, "once", "times"))


def noting(dialect: str, added: list[Event], counted: list[Event]) -> list[Executions]:
    """What appends events, and those that carry `once`; where one of these is there it grows."""
    return [write.executions(dialect, events) for write, events in ((_ADD, added), (_COUNT, counted)) if events]


async def note_expired(session: AsyncSession, now: int, since: int) -> None:
    """Append the end of each key that expired after `since` and by now, once (D-61)."""
    once = literal("expired:") + cast(keys.c.id, String)
    ended = keys.c.revoked_at.is_(None) & (keys.c.expires_at <= now) & (keys.c.expires_at > since)
    ends = select(keys.c.expires_at, literal("key.expired"), keys.c.user_id, keys.c.id, literal("service"), once).where(
        ended, ~exists().where(audit.c.once == once)
    )
    columns = ["at", "event", "user_id", "key_id", "actor", "once"]
    await session.execute(insert_into(session, audit).from_select(columns, ends).on_conflict_do_nothing())


async def page(session: Executor, of: dict[str, int], before: Place | None, limit: int) -> list[Row[Any]]:
    """Events newest first, older than a place; `of` is `key_id` or `user_id`, nothing for everyone's."""
    query = (
        select(audit, keys.c.client_id)
        .outerjoin(keys, keys.c.id == audit.c.key_id)
        .where(*(audit.c[name] == value for name, value in of.items()))
        .order_by(audit.c.at.desc(), audit.c.id.desc())
        .limit(limit)
    )
    older = [] if before is None else [tuple_(audit.c.at, audit.c.id) < before]
    return list(await session.execute(query.where(*older)))
