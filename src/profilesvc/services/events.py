"""The events of owners: written in the transaction of their cause, and read as a log (docs/events.md)."""

import orjson
from sqlalchemy.ext.asyncio import AsyncSession

from profilesvc.contract.events import (
    EventData,
    EventList,
    EventListQuery,
    EventOwner,
    EventType,
    PublishedEvent,
    types_of,
)
from profilesvc.domain.errors import invalid
from profilesvc.domain.time import DAY, iso
from profilesvc.services.context import AllowedLocation, Caller, Services
from profilesvc.storage import events
from profilesvc.storage.events import NewEvent, StoredPublishedEvent

RETENTION = 30 * DAY
_READ = 5_000  # events of an owner that one page of a location reads at most


def new(kind: EventType, data: EventData, *, key_id: int | None = None, location_name: str | None = None) -> NewEvent:
    """Return an event that `publish` can write."""
    return NewEvent(kind, data.model_dump_json(by_alias=True, warnings=False), key_id, location_name)


def publish(services: Services, session: AsyncSession, owner_id: int, *new_events: NewEvent) -> None:
    """Write events of an owner, and what delivers them, when this transaction ends."""
    if new_events:
        events.add(session, owner_id, list(new_events), services.clock.now())
        services.due.set()


def event_id(owner_id: int, number: int) -> str:
    """Return the id of an event on the wire, such as `evt_1_42`."""
    return f"evt_{owner_id}_{number}"


def number_of(event: PublishedEvent) -> int:
    """Return the number in the id of an event."""
    return int(event.id.rpartition("_")[2])


def published(owner_id: int, row: StoredPublishedEvent) -> PublishedEvent:
    """Return an event as the log and the deliveries show it, without validating again what was valid when written."""
    return PublishedEvent.model_construct(
        id=event_id(owner_id, row.id),
        type=row.type,
        created_at=iso(row.created_at),
        owner=EventOwner.model_construct(id=owner_id),
        data=orjson.loads(row.data),
    )


async def location_events(
    services: Services, location: AllowedLocation, before: int | None, limit: int
) -> tuple[list[PublishedEvent], int | None]:
    """Return events of a location, newest first, and what to pass as `before` for older ones, if there may be any.

    A page can be empty and have an older one, if the owner has many events of other locations.
    """
    owner_id = location.owner_id
    async with services.storage.read(may_be_old=True) as session:
        end = before or await events.last(session, owner_id) + 1
        start = end - _READ
        rows = await events.location_events(session, owner_id, location.name, end, start, limit + 1)
        has_more = len(rows) > limit or await events.first(session, owner_id) <= start
    older = rows[limit - 1].id if len(rows) > limit else start + 1
    return [published(owner_id, row) for row in rows[:limit]], older if has_more else None


async def list_page(services: Services, caller: Caller, query: EventListQuery) -> EventList:
    """Return events of the caller after one of them, oldest first.

    Raises:
        ServiceError: VALIDATION_ERROR for an event of another owner.
    """
    limit, after = query.limit, 0
    if query.after is not None:
        _, owner, number = query.after.split("_")
        if int(owner) != caller.owner_id:
            raise invalid("query", "after", "must be the id of one of your events")
        after = int(number)
    types = [] if query.types is None else types_of(query.types)
    async with services.storage.read(may_be_old=True) as session:
        rows = await events.page(session, caller.owner_id, after, types, query.client_id, limit + 1)
    page = [published(caller.owner_id, row) for row in rows[:limit]]
    return EventList(events=page, next_after=page[-1].id if page else query.after, has_more=len(rows) > limit)
