"""The audit trail: what happened to a key or a user, by whom, from where (D-61). Never a secret or a token."""

import asyncio
from collections.abc import Sequence
from contextvars import Context
from typing import TYPE_CHECKING, Any

import orjson
from sqlalchemy.ext.asyncio import AsyncSession

from profilesvc.contract.audit import MAX_LIMIT, AuditEntry, AuditQuery, AuditTrail, Event
from profilesvc.contract.errors import NOT_FOUND
from profilesvc.domain.addresses import network
from profilesvc.domain.errors import ServiceError
from profilesvc.domain.request import current
from profilesvc.domain.world import DAY, HOUR, iso
from profilesvc.storage import audit, keys
from profilesvc.storage.keys import KeyState

if TYPE_CHECKING:  # the services hold the notes
    from profilesvc.services.context import Caller, Services

KEPT = 400 * DAY
_GATHER_SECONDS = 0.1


async def record(
    services: "Services", session: AsyncSession, event: Event, user_id: int, key_id: int | None = None, **details: Any
) -> None:
    """Append an event inside the transaction that it reports."""
    await audit.add(session, [_row(services.clock.now(), event, user_id, key_id, details)])


async def record_each(
    services: "Services", session: AsyncSession, event: Event, user_id: int, key_ids: list[int], **details: Any
) -> None:
    """Append an event for each of a user's keys, in one statement."""
    now = services.clock.now()
    await audit.add(session, [_row(now, event, user_id, key_id, details) for key_id in key_ids])


def _row(at: int, event: Event, user_id: int, key_id: int | None, details: dict[str, Any]) -> dict[str, Any]:
    request = current()
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
    """Wrong secrets for one key from one address in one hour."""

    __slots__ = ("first", "last", "times")

    def __init__(self, now: int) -> None:
        self.first = self.last = now
        self.times = 0

    def add(self, now: int) -> None:
        """Count one more."""
        self.first, self.last = min(self.first, now), max(self.last, now)
        self.times += 1


_Counts = dict[tuple[int, int, int, str | None], _Count]  # by user, key, number of the hour, and address


class Notes:
    """Events that no response waits for: gathered for a moment, then written together.

    A grant costs no transaction of its own, and a thousand wrong secrets cost as much as one.
    """

    def __init__(self) -> None:
        self._issued: list[dict[str, Any]] = []
        self._failed: _Counts = {}
        self._timer: asyncio.TimerHandle | None = None
        self._turn = asyncio.Lock()

    def issued(self, services: "Services", key: KeyState, permissions: Sequence[str]) -> None:
        """Note that a key was granted a token."""
        self._issued.append(
            _row(services.clock.now(), "token.issued", key.user_id, key.id, {"permissions": list(permissions)})
        )
        self._write_soon(services)

    def failed(self, services: "Services", key: KeyState) -> None:
        """Note a wrong secret for a key: one event per key, network and hour (D-61).

        It is only counted here, because the response must not take longer than that for an unknown id (D-21).
        """
        now = services.clock.now()
        once = key.user_id, key.id, now // HOUR, current().address
        self._failed.setdefault(once, _Count(now)).add(now)
        self._write_soon(services)

    def _write_soon(self, services: "Services") -> None:
        if self._timer is None:
            loop, own = asyncio.get_running_loop(), Context()  # not the context of the request that came first
            self._timer = loop.call_later(
                _GATHER_SECONDS, lambda: services.background.spawn(self.write(services)), context=own
            )

    async def write(self, services: "Services") -> None:
        """Write what was gathered so far. On return it is written, also if another task has started to."""
        async with self._turn:
            if self._timer is None:
                return
            self._timer.cancel()
            self._timer = None
            issued, self._issued = self._issued, []
            failed, self._failed = _failures(self._failed), {}
            in_order = [failed[once] for once in sorted(failed)]  # no deadlock
            await services.storage.commit(audit.noting(services.storage.dialect, issued, in_order))


def _failures(counted: _Counts) -> dict[str, dict[str, Any]]:
    """Rows by what makes each the only one of its key, network and hour; `at` is the first failure of the hour."""
    rows: dict[str, dict[str, Any]] = {}
    for (user_id, key_id, hour, ip), found in sorted(counted.items(), key=lambda item: item[1].first):
        row = _row(found.first, "auth.failed", user_id, key_id, {}) | {"actor": "client", "request_id": None}
        row["ip_prefix"] = None if ip is None else network(ip, 24, 48)
        once = f"failed:{key_id}:{hour * HOUR}:{row['ip_prefix']}"
        row = rows.setdefault(once, row | {"once": once, "times": 0, "details": ""})
        row["details"] = max(row["details"], orjson.dumps({"last_at": iso(found.last)}).decode())
        row["times"] += found.times
    return rows


async def of_key(services: "Services", caller: "Caller | None", client_id: str, query: AuditQuery) -> AuditTrail:
    """Return what happened to a key, live or not, newest first; without a caller anyone's key, for the operator.

    Raises:
        ServiceError: NOT_FOUND.
    """
    await services.notes.write(services)
    now = services.clock.now()
    async with services.storage.read() as session:
        if caller is None:
            key = await keys.state(session, client_id)
        else:
            key = await keys.own(session, client_id, caller.user_id)
    if key is None:
        raise ServiceError(NOT_FOUND, "You have no such API key.")
    if key.expires_at is not None and key.expires_at <= now:
        await note_expired(services)
    return await _page(services, {"key_id": key.id}, query)


async def of_user(services: "Services", user_id: int | None, query: AuditQuery) -> AuditTrail:
    """Return what happened to a user and all of their keys, newest first; without a user, to everyone."""
    await services.notes.write(services)
    return await _page(services, {} if user_id is None else {"user_id": user_id}, query)


async def note_expired(services: "Services") -> None:
    """Record the end of the keys that have expired, each once."""
    now = services.clock.now()
    async with services.storage.write() as session:
        await audit.note_expired(session, now, now - KEPT)


async def _page(services: "Services", of: dict[str, int], query: AuditQuery) -> AuditTrail:
    limit = min(query.limit, MAX_LIMIT)
    before = None
    if query.before is not None:
        at, _, event_id = query.before.partition("-")
        before = int(at), int(event_id)
    async with services.storage.read() as session:
        rows = await audit.page(session, of, before, limit + 1)
    shown = rows[:limit]
    next_before = f"{shown[-1].at}-{shown[-1].id}" if len(rows) > limit else None
    return AuditTrail(events=[_entry(row) for row in shown], limit=limit, next_before=next_before)


def _entry(row: Any) -> AuditEntry:
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
