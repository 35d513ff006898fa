"""The audit trail: events of keys and users with actor and network, never a secret or a token (D-61)."""

import asyncio
from collections.abc import Sequence
from contextvars import Context
from typing import NamedTuple, Self

import orjson
from sqlalchemy.ext.asyncio import AsyncSession

from profilesvc.contract.audit import AuditEntry, AuditQuery, AuditTrail, Event, Wanted
from profilesvc.contract.errors import NOT_FOUND
from profilesvc.contract.json import JsonObject
from profilesvc.contract.stored import as_stored, stored_object
from profilesvc.domain.errors import ServiceError
from profilesvc.domain.request import current_request, ip_prefix
from profilesvc.domain.time import DAY, HOUR, MINUTE, iso
from profilesvc.services import page_tokens
from profilesvc.services.context import Caller, Services
from profilesvc.storage import audit, keys
from profilesvc.storage.audit import CountedRow, EventRow, StoredEvent
from profilesvc.storage.keys import KeyState

_LIST = "audit"  # in cursors
RETENTION = 400 * DAY
_COLLECT_SECONDS = 1.0
_KEPT_UNWRITTEN = MINUTE  # then it is dropped: a row may be at fault, and not the database


async def record(
    services: Services, session: AsyncSession, event: Event, owner_id: int, key_id: int | None = None, **details: object
) -> None:
    """Append an event in the transaction of the change that it records."""
    await audit.add(session, [_row(services.clock.now(), event, owner_id, key_id, details)])


async def record_each(
    services: Services, session: AsyncSession, event: Event, owner_id: int, key_ids: list[int], **details: object
) -> None:
    """Append an event for each of a user's keys, in one statement."""
    now = services.clock.now()
    await audit.add(session, [_row(now, event, owner_id, key_id, details) for key_id in key_ids])


def _row(at: int, event: Event, owner_id: int, key_id: int | None, details: JsonObject) -> EventRow:
    request = current_request()
    return {
        "at": at,
        "event": event,
        "owner_id": owner_id,
        "key_id": key_id,
        "actor": request.actor,
        "ip_prefix": ip_prefix(request.address),
        "request_id": request.request_id,
        "details": orjson.dumps(details).decode() if details else None,
    }


class _Slot(NamedTuple):
    """The common fields of events that are counted together. Their addresses differ within a network."""

    event: Event
    owner_id: int
    key_id: int
    start: int
    actor: str
    address: str | None

    @classmethod
    def of(cls, event: Event, key: KeyState, now: int, period: int, actor: str | None = None) -> Self:
        request = current_request()
        return cls(event, key.owner_id, key.id, now - now % period, actor or request.actor, request.address)


class _Count:
    """The number of times that an event occurred, the first and last time, and the details of the last one."""

    __slots__ = ("details", "first", "last", "times")

    def __init__(self, now: int) -> None:
        self.first = self.last = now
        self.times = 0
        self.details: JsonObject = {}

    def add(self, now: int, details: JsonObject) -> None:
        self.first, self.last = min(self.first, now), max(self.last, now)
        self.times += 1
        self.details = details


def _counted(slot: _Slot, count: _Count) -> CountedRow:
    """Return the row that counts these events; `at` is the first of them."""
    prefix = ip_prefix(slot.address)
    return {
        "at": count.first,
        "event": slot.event,
        "owner_id": slot.owner_id,
        "key_id": slot.key_id,
        "actor": slot.actor,
        "ip_prefix": prefix,
        "request_id": None,
        "details": orjson.dumps({"last_at": iso(count.last), **count.details}).decode(),
        "once": f"{slot.event}:{slot.key_id}:{slot.start}:{prefix}",
        "times": count.times,
    }


async def count(services: Services, session: AsyncSession, event: Event, key: KeyState) -> None:
    """Count an event per key, network and day, in the transaction of the change that it records."""
    now = services.clock.now()
    once = _Count(now)
    once.add(now, {})
    await audit.count(session, _counted(_Slot.of(event, key, now, DAY), once))


class PendingEvents:
    """Events that are collected for a moment and then written together, after their responses.

    A grant needs no transaction of its own, and a thousand wrong secrets need only one. What could not be written is
    written again, for a minute.
    """

    def __init__(self) -> None:
        self._counts: dict[_Slot, _Count] = {}
        self._unwritten: list[tuple[_Slot, _Count]] = []
        self._timer: asyncio.TimerHandle | None = None
        self._lock = asyncio.Lock()

    def token_issued(self, services: Services, key: KeyState, permissions: Sequence[str]) -> None:
        """Count a grant: one event per key, network and day (D-61)."""
        now = services.clock.now()
        self._add(services, _Slot.of("token.issued", key, now, DAY), now, {"permissions": permissions})

    def secret_failed(self, services: Services, key: KeyState) -> None:
        """Count a wrong secret for a key: one event per key, network and hour (D-61).

        It is only counted here, so that timing does not reveal which ids exist.
        """
        now = services.clock.now()
        self._add(services, _Slot.of("auth.failed", key, now, HOUR, actor="client"), now, {})

    def _add(self, services: Services, slot: _Slot, now: int, details: JsonObject) -> None:
        count = self._counts.get(slot)
        if count is None:
            count = self._counts[slot] = _Count(now)
        count.add(now, details)
        self._start(services)

    def _start(self, services: Services) -> None:
        if self._timer is None:
            loop, context = asyncio.get_running_loop(), Context()  # not that of the first request
            self._timer = loop.call_later(
                _COLLECT_SECONDS, lambda: services.background.spawn(self.write(services)), context=context
            )

    async def write(self, services: Services) -> None:
        """Write the collected events. They are stored on return, even if another task writes them.

        While the database is not available, nothing is raised, and they are written later.
        """
        async with self._lock:
            if self._timer is None:
                return
            self._timer.cancel()
            self._timer = None
            counts, self._counts = [*self._unwritten, *self._counts.items()], {}
            try:
                await services.storage.commit(audit.counting(services.storage.dialect, _rows(counts)))
                self._unwritten = []
            except ServiceError as error:
                services.failed_in_background("audit", error)
                oldest = services.clock.now() - _KEPT_UNWRITTEN
                self._unwritten = [(slot, count) for slot, count in counts if count.last >= oldest]
                if self._unwritten:
                    self._start(services)


def _rows(counts: Sequence[tuple[_Slot, _Count]]) -> list[CountedRow]:
    """Return one row per unique name, in the order of the names, so that two processes cannot deadlock."""
    rows: dict[str, CountedRow] = {}
    for slot, count in sorted(counts, key=lambda item: item[1].first):
        row = _counted(slot, count)
        stored = rows.setdefault(row["once"], row)
        if stored is not row:
            stored["details"] = max(stored["details"] or "", row["details"] or "")
            stored["times"] += row["times"]
    return [rows[name] for name in sorted(rows)]


async def key_trail(services: Services, caller: Caller | None, client_id: str, query: AuditQuery) -> AuditTrail:
    """Return the events of a key, live or not, newest first. The operator (None) may read every key.

    Raises:
        ServiceError: NOT_FOUND.
    """
    await services.part(PendingEvents).write(services)
    now = services.clock.now()
    async with services.storage.read() as session:
        if caller is None:
            key = await keys.state(session, client_id)
        else:
            key = await keys.own(session, client_id, caller.owner_id)
    if key is None:
        raise ServiceError(NOT_FOUND, "There is no such API key.")
    if key.expires_at is not None and key.expires_at <= now:
        await record_expired(services, key.owner_id)
    return await _page(services, {"owner_id": key.owner_id, "key_id": key.id}, query)


async def user_trail(services: Services, owner_id: int | None, query: AuditQuery) -> AuditTrail:
    """Return the events of a user and all of their keys, newest first; without a user, those of all users."""
    await services.part(PendingEvents).write(services)
    return await _page(services, {} if owner_id is None else {"owner_id": owner_id}, query)


async def search(
    services: Services, owner_id: int, wanted: Wanted, before: str | None, limit: int
) -> tuple[list[AuditEntry], str | None]:
    """Return the events of an owner that a search finds, newest first, and where the next ones start.

    `before` is a value that this function returned, or one that `AuditQuery` accepts.
    """
    await services.part(PendingEvents).write(services)
    return await _entries(services, {"owner_id": owner_id}, before, limit, wanted)


async def record_expired(services: Services, owner_id: int | None = None) -> None:
    """Record each expired key of an owner (None: of all) once."""
    now = services.clock.now()
    async with services.storage.write() as session:
        await audit.record_expired(session, owner_id, now, now - RETENTION)


async def _page(services: Services, filters: dict[str, int], query: AuditQuery) -> AuditTrail:
    events, next_before = await _entries(services, filters, query.before, query.limit, Wanted())
    return AuditTrail(events=events, limit=query.limit, next_before=next_before)


async def _entries(
    services: Services, filters: dict[str, int], before: str | None, limit: int, wanted: Wanted
) -> tuple[list[AuditEntry], str | None]:
    place = None
    if before is not None:
        at, event_id = page_tokens.position(services, filters.get("owner_id"), _LIST, before)
        place = at, event_id
    async with services.storage.read() as session:
        rows = await audit.page(session, filters, place, limit + 1, wanted)
    page = rows[:limit]
    entries = [_entry(row) for row in page]
    if len(rows) <= limit:
        return entries, None
    return entries, page_tokens.cursor(services, filters.get("owner_id"), _LIST, page[-1].at, page[-1].id)


def _entry(row: StoredEvent) -> AuditEntry:
    details = stored_object(row.details)
    if "last_at" in details:
        details["count"] = row.times
    return as_stored(
        AuditEntry,
        {
            "event": row.event,
            "at": iso(row.at),
            "client_id": row.client_id,
            "actor": row.actor.partition(":")[0],
            "ip_prefix": row.ip_prefix,
            "request_id": row.request_id,
            "details": details,
        },
    )
