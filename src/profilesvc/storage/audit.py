"""Queries on the audit trail."""

from typing import NamedTuple, TypedDict

from sqlalchemy import ColumnElement, String, and_, case, cast, exists, insert, literal, select, tuple_
from sqlalchemy.ext.asyncio import AsyncSession

from profilesvc.contract.audit import Event, Wanted
from profilesvc.database.statements import Executor, Insert, PreparedWrite, columns, insert_by, insert_into, records
from profilesvc.database.writers import Executions
from profilesvc.domain.time import DAY, month_start
from profilesvc.storage.tables import audit, keys


class EventRow(TypedDict):
    """The columns of an event."""

    at: int
    event: Event
    owner_id: int
    key_id: int | None
    actor: str
    ip_prefix: str | None
    request_id: str | None
    details: str | None


class CountedRow(EventRow):
    """An event that is counted: `once` is unique, and `times` is added to that of the stored event."""

    once: str
    times: int


Position = tuple[int, int]  # time and id of an event


async def add(session: AsyncSession, events: list[EventRow]) -> None:
    if events:
        await session.execute(insert(audit), [_stored(event) for event in events])


def _stored(event: EventRow) -> dict[str, object]:
    """Return the columns of a row; events with the same `once` are of the same month."""
    return {**event, "month": month_start(event["at"])}


def _counting(statement: Insert) -> Insert:
    new = statement.excluded
    # Processes write in any order, so keep the earliest time of the first occurrence and the latest of the last one.
    # `details` starts with the time of the last one, always in one format, so that strings compare like times.
    counted = {
        "times": audit.c.times + new.times,
        "at": case((new.at < audit.c.at, new.at), else_=audit.c.at),
        "details": case((audit.c.details > new.details, audit.c.details), else_=new.details),
    }
    return statement.on_conflict_do_update(index_elements=[audit.c.owner_id, audit.c.once, audit.c.month], set_=counted)


_COUNTED = (*CountedRow.__annotations__, "month")
_COUNT = PreparedWrite(lambda dialect: _counting(insert_by(dialect, audit).inline()), _COUNTED)


async def count(session: AsyncSession, event: CountedRow) -> None:
    """Append an event, or count it if there is one with the same `once`."""
    await session.execute(_counting(insert_into(session, audit)), _stored(event))


def counting(dialect: str, events: list[CountedRow]) -> list[Executions]:
    """Return the statements that append or count these events, which have different `once`."""
    return [_COUNT.executions(dialect, [_stored(event) for event in events])]


async def record_expired(session: AsyncSession, owner_id: int | None, now: int, since: int) -> None:
    """Append the end of each key of an owner (None: of all) that expired after `since`, unless it is recorded."""
    once = literal("expired:") + cast(keys.c.id, String)
    has_expired = keys.c.revoked_at.is_(None) & (keys.c.expires_at <= now) & (keys.c.expires_at > since)
    recorded = exists().where(
        audit.c.owner_id == (keys.c.owner_id if owner_id is None else owner_id),
        audit.c.once == once,
        audit.c.month.between(keys.c.expires_at - 31 * DAY, keys.c.expires_at),
    )
    query = select(keys.c.expires_at.label("at"), keys.c.owner_id, keys.c.id.label("key_id"), once.label("once"))
    query = query.where(has_expired, ~recorded)
    if owner_id is not None:
        query = query.where(keys.c.owner_id == owner_id)
    of_all = {"event": "key.expired", "actor": "service"}
    ends = [{**row, **of_all, "month": month_start(row["at"])} for row in (await session.execute(query)).mappings()]
    if ends:  # each is a statement, because they may be on different nodes
        await session.execute(insert_into(session, audit).on_conflict_do_nothing(), ends)


class StoredEvent(NamedTuple):
    """An event as the trail shows it, with the client id of its key."""

    id: int
    at: int
    event: Event
    actor: str
    ip_prefix: str | None
    request_id: str | None
    details: str | None
    times: int
    client_id: str | None


def _conditions(wanted: Wanted) -> list[ColumnElement[bool]]:
    return [
        *([] if wanted.events is None else [audit.c.event.in_(wanted.events)]),
        *([] if wanted.key_ids is None else [audit.c.key_id.in_(wanted.key_ids)]),
        *([] if wanted.since is None else [audit.c.at >= wanted.since]),
        *([] if wanted.until is None else [audit.c.at < wanted.until]),
    ]


async def page(
    session: Executor, of: dict[str, int], before: Position | None, limit: int, wanted: Wanted
) -> list[StoredEvent]:
    """Return events older than a position, newest first, with the values of `of`: an owner, perhaps a key, or none."""
    query = (
        select(*columns(audit, StoredEvent._fields[:-1]), keys.c.client_id)
        .outerjoin(keys, and_(keys.c.owner_id == audit.c.owner_id, keys.c.id == audit.c.key_id))
        .where(*(audit.c[name] == value for name, value in of.items()), *_conditions(wanted))
        .order_by(audit.c.at.desc(), audit.c.id.desc())
        .limit(limit)
    )
    older = [] if before is None else [tuple_(audit.c.at, audit.c.id) < before]
    return await records(session, StoredEvent, query.where(*older))
