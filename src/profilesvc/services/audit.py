"""The audit trail: events of keys and users with actor and network, never a secret or a token (D-61)."""

import asyncio
from collections.abc import Sequence
from contextvars import Context
from typing import TYPE_CHECKING

import orjson
from sqlalchemy.ext.asyncio import AsyncSession

from profilesvc.contract.audit import MAX_LIMIT, AuditEntry, AuditQuery, AuditTrail, Event
from profilesvc.contract.errors import NOT_FOUND
from profilesvc.contract.json import JsonObject
from profilesvc.domain.errors import ServiceError
from profilesvc.domain.request import current_request, network
from profilesvc.domain.time import DAY, HOUR, iso
from profilesvc.storage import audit, keys
from profilesvc.storage.audit import CountedRow, EventRow, StoredEvent
from profilesvc.storage.keys import KeyState

if TYPE_CHECKING:  # `services.context` imports this module
    from profilesvc.services.context import Caller, Services

KEPT = 400 * DAY
_COLLECT_SECONDS = 0.1


async def record(
    services: "Services",
    session: AsyncSession,
    event: Event,
    user_id: int,
    key_id: int | None = None,
    **details: object,
) -> None:
    """Append an event in the transaction of the change that it records."""
    await audit.add(session, [_row(services.clock.now(), event, user_id, key_id, details)])


async def record_each(
    services: "Services", session: AsyncSession, event: Event, user_id: int, key_ids: list[int], **details: object
) -> None:
    """Append an event for each of a user's keys, in one statement."""
    now = services.clock.now()
    await audit.add(session, [_row(now, event, user_id, key_id, details) for key_id in key_ids])


def _row(at: int, event: Event, user_id: int, key_id: int | None, details: JsonObject) -> EventRow:
    request = current_request()
    return {
        "at": at,
        "event": event,
        "user_id": user_id,
        "key_id": key_id,
        "actor": request.actor,
        "ip_prefix": None if request.address is None else network(request.address, 24, 48),
        "request_id": request.request_id,
        "details": orjson.dumps(details).decode() if details else None,
    }


class _Count:
    """The wrong secrets for one key from one address in one hour."""

    __slots__ = ("first", "last", "times")

    def __init__(self, now: int) -> None:
        self.first = self.last = now
        self.times = 0

    def add(self, now: int) -> None:
        self.first, self.last = min(self.first, now), max(self.last, now)
        self.times += 1


_Counts = dict[tuple[int, int, int, str | None], _Count]  # by user, key, hour and address


class PendingEvents:
    """Events that are collected for a moment and then written together, after their responses.

    A grant needs no transaction of its own, and a thousand wrong secrets need only one.
    """

    def __init__(self) -> None:
        self._events: list[EventRow] = []
        self._failures: _Counts = {}
        self._timer: asyncio.TimerHandle | None = None
        self._lock = asyncio.Lock()

    def token_issued(self, services: "Services", key: KeyState, permissions: Sequence[str]) -> None:
        self._events.append(
            _row(services.clock.now(), "token.issued", key.user_id, key.id, {"permissions": list(permissions)})
        )
        self._write_soon(services)

    def secret_failed(self, services: "Services", key: KeyState) -> None:
        """Count a wrong secret for a key: one event per key, network and hour (D-61).

        It is only counted here, so that timing does not reveal which ids exist.
        """
        now = services.clock.now()
        slot = key.user_id, key.id, now // HOUR, current_request().address
        self._failures.setdefault(slot, _Count(now)).add(now)
        self._write_soon(services)

    def _write_soon(self, services: "Services") -> None:
        if self._timer is None:
            loop, context = asyncio.get_running_loop(), Context()  # not that of the first request
            self._timer = loop.call_later(
                _COLLECT_SECONDS, lambda: services.background.spawn(self.write(services)), context=context
            )

    async def write(self, services: "Services") -> None:
        """Write the collected events. They are stored on return, even if another task writes them."""
        async with self._lock:
            if self._timer is None:
                return
            self._timer.cancel()
            self._timer = None
            issued, self._events = self._events, []
            failed, self._failures = _failures(self._failures), {}
            in_order = [failed[name] for name in sorted(failed)]  # so that two processes cannot deadlock
            await services.storage.commit(audit.recording(services.storage.dialect, issued, in_order))


def _failures(counted: _Counts) -> dict[str, CountedRow]:
    """Return one row per key, network and hour, by its unique name; `at` is the first failure."""
    rows: dict[str, CountedRow] = {}
    for (user_id, key_id, hour, ip), count in sorted(counted.items(), key=lambda item: item[1].first):
        prefix = None if ip is None else network(ip, 24, 48)
        name = f"failed:{key_id}:{hour * HOUR}:{prefix}"
        row = rows.setdefault(
            name,
            {
                "at": count.first,
                "event": "auth.failed",
                "user_id": user_id,
                "key_id": key_id,
                "actor": "client",
                "ip_prefix": prefix,
                "request_id": None,
                "details": "",
                "once": name,
                "times": 0,
            },
        )
        row["details"] = max(row["details"] or "", orjson.dumps({"last_at": iso(count.last)}).decode())
        row["times"] += count.times
    return rows


async def of_key(services: "Services", caller: "Caller | None", client_id: str, query: AuditQuery) -> AuditTrail:
    """Return the events of a key, live or not, newest first. The operator (None) may read every key.

    Raises:
        ServiceError: NOT_FOUND.
    """
    await services.pending_events.write(services)
    now = services.clock.now()
    async with services.storage.read() as session:
        if caller is None:
            key = await keys.state(session, client_id)
        else:
            key = await keys.own(session, client_id, caller.user_id)
    if key is None:
        raise ServiceError(NOT_FOUND, "There is no such API key.")
    if key.expires_at is not None and key.expires_at <= now:
        await record_expired(services)
    return await _page(services, {"key_id": key.id}, query)


async def of_user(services: "Services", user_id: int | None, query: AuditQuery) -> AuditTrail:
    """Return the events of a user and all of their keys, newest first; without a user, those of all users."""
    await services.pending_events.write(services)
    return await _page(services, {} if user_id is None else {"user_id": user_id}, query)


async def record_expired(services: "Services") -> None:
    """Record each expired key once."""
    now = services.clock.now()
    async with services.storage.write() as session:
        await audit.record_expired(session, now, now - KEPT)


async def _page(services: "Services", filters: dict[str, int], query: AuditQuery) -> AuditTrail:
    limit = min(query.limit, MAX_LIMIT)
    before = None
    if query.before is not None:
        at, _, event_id = query.before.partition("-")
        before = int(at), int(event_id)
    async with services.storage.read() as session:
        rows = await audit.page(session, filters, before, limit + 1)
    shown = rows[:limit]
    next_before = f"{shown[-1].at}-{shown[-1].id}" if len(rows) > limit else None
    return AuditTrail(events=[_entry(row) for row in shown], limit=limit, next_before=next_before)


def _entry(row: StoredEvent) -> AuditEntry:
    details = {} if row.details is None else orjson.loads(row.details)
    if row.event == "auth.failed":
        details["count"] = row.times
    return AuditEntry(
        event=row.event,
        at=iso(row.at),
        client_id=row.client_id,
        actor=row.actor.partition(":")[0],
        ip_prefix=row.ip_prefix,
        request_id=row.request_id,
        details=details,
    )
