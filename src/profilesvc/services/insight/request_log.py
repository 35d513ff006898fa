"""The requests of keys: counts per day, and a log of errors and of some successes (D-116).

The guard passes on each finished request of a key. It is appended to a list, which costs about a microsecond. The list
is counted later, so that a wrong secret takes as long for an id that exists (D-21), and written every few seconds, so
that no request waits for a statement. What a killed process had not written is lost.
"""

import asyncio
import re
from collections import Counter
from collections.abc import Callable
from hashlib import blake2b
from itertools import islice

from profilesvc.contract.json import JsonObject
from profilesvc.contract.names import is_documented
from profilesvc.domain.errors import ServiceError
from profilesvc.domain.request import Finished, ip_prefix
from profilesvc.domain.time import DAY, HOUR
from profilesvc.services.context import Services
from profilesvc.storage import keys
from profilesvc.storage.insight import request_log
from profilesvc.storage.insight.request_log import DayOfKey, LoggedRow

SUCCESSES_PER_HOUR = 20  # of a key, in each process
# What a process keeps of requests that are not written yet, also while the database does not respond.
MOST_FINISHED = 100  # requests that are not counted yet
MOST_DAYS = 20_000  # keys; further ones are not counted until these are written
MOST_ROWS = 5_000
MOST_KEYS = 20_000  # keys with rows in this hour; no rows of further ones are stored
_PIECE = 500  # rows of one transaction
_LONGEST_ID = 40  # a client secret has 64 characters and a token more, so neither can be stored as a request id
_REASON = re.compile(r"[a-z_]{1,40}\Z")
_LONGEST_FIELD = 120

Key = tuple[int, int | str]  # the owner, and the number of the key or its client id


class RequestLog:
    """The requests of keys that this process has answered and not written yet."""

    def __init__(self) -> None:
        self.finished: list[Finished] = []
        self._days: dict[tuple[Key, int], list[int]] = {}
        self._rows: list[tuple[Key, LoggedRow]] = []
        self._logged: Counter[tuple[Key, bool]] = Counter()  # rows of the current hour, by key and whether it failed
        self._hour = 0
        self._successes = 0
        self._number = 0
        self._lock = asyncio.Lock()

    def collect(self, services: Services) -> None:
        """Count the finished requests, and make the rows of those that are logged."""
        finished, self.finished = self.finished, []
        for each in finished:
            if (key := each.key) is None:
                continue
            day = key, each.at - each.at % DAY
            counts = self._days.get(day)
            if counts is None:
                if len(self._days) >= MOST_DAYS:
                    continue
                counts = self._days[day] = [0, 0, 0]
            counts[0] += 1
            if each.status >= 400:
                counts[1 if each.status < 500 else 2] += 1
            if self._is_logged(services, key, each) and len(self._rows) < MOST_ROWS:
                self._number += 1
                self._rows.append((key, _row(key, each, self._number)))

    def _is_logged(self, services: Services, key: Key, each: Finished) -> bool:
        settings = services.settings
        failed = each.status >= 400 or each.request.rejected is not None
        if each.at // HOUR != self._hour:
            self._hour = each.at // HOUR
            self._logged.clear()
        if not failed:
            self._successes += 1
            interval = settings.effective_success_interval
            if not interval or self._successes % interval:
                return False
        slot = key, failed
        if slot not in self._logged and len(self._logged) >= MOST_KEYS:
            return False
        most = settings.request_log.errors_per_hour if failed else SUCCESSES_PER_HOUR
        self._logged[slot] += 1
        return self._logged[slot] <= most

    async def write(self, services: Services) -> None:
        """Write all requests that are finished. They are stored on return, even if another task writes them.

        Raises:
            ServiceError: SERVICE_UNAVAILABLE. What was not stored will be written by the next call.
        """
        async with self._lock:
            self.collect(services)
            while self._days or self._rows:
                days = {day: self._days.pop(day) for day in list(islice(self._days, _PIECE))}
                rows, self._rows = self._rows[:_PIECE], self._rows[_PIECE:]
                try:
                    await _store(services, days, rows)
                except ServiceError:
                    for day, counts in days.items():
                        new = self._days.get(day, [0, 0, 0])
                        self._days[day] = [old + more for old, more in zip(counts, new, strict=True)]
                    self._rows = (rows + self._rows)[:MOST_ROWS]
                    raise


def noting(services: Services) -> Callable[[Finished], None]:
    """Return the function that adds a finished request, if it is one of a key."""
    log = services.part(RequestLog)

    def note(finished: Finished) -> None:
        if finished.key is not None:
            log.finished.append(finished)
        if len(log.finished) >= MOST_FINISHED:
            log.collect(services)

    return note


async def write(services: Services) -> None:
    """Write the finished requests (`RequestLog.write`)."""
    await services.part(RequestLog).write(services)


async def _store(services: Services, days: dict[tuple[Key, int], list[int]], rows: list[tuple[Key, LoggedRow]]) -> None:
    numbers = await _numbers(services, {key for key, _ in days} | {key for key, _ in rows})
    counted = [DayOfKey(key[0], numbers[key], day, *counts) for (key, day), counts in days.items() if key in numbers]
    logged = [row._replace(key_id=numbers[key]) for key, row in rows if key in numbers]
    await services.storage.commit(request_log.recording(services.storage.dialect, counted, logged))


async def _numbers(services: Services, identities: set[Key]) -> dict[Key, int]:
    """Return the numbers of keys. A token that is rejected before its key is read names only the client id."""
    numbers: dict[Key, int] = {}
    for key in identities:
        owner_id, name = key
        if isinstance(name, int):
            numbers[key] = name
            continue
        async with services.storage.read() as session:
            if (state := await keys.own(session, name, owner_id)) is not None:
                numbers[key] = state.id
    return numbers


def _row(key: Key, each: Finished, number: int) -> LoggedRow:
    """Return the row of a request. It has nothing that the caller wrote, except a request id that is too short for a
    secret, and the name of a documented field.
    """
    request, request_id = each.request, each.request.request_id or ""
    details = each.request.details or {}
    reason = details.get("reason", details.get("deactivation_reason"))
    return LoggedRow(
        owner_id=key[0],
        key_id=0,
        at=each.at,
        id=f"{number % 16**6:06x}{blake2b(request_id.encode(), digest_size=8).hexdigest()}",
        method=each.method,
        route=request.route,
        status=each.status,
        code=None if request.outcome == "ok" else request.outcome,
        reason=reason if isinstance(reason, str) and _REASON.match(reason) else request.rejected,
        field=_field(details),
        duration_ms=max(each.lasted, 0),
        request_id=request_id if 0 < len(request_id) <= _LONGEST_ID else None,
        ip_prefix=ip_prefix(request.address),
    )


def _field(details: JsonObject) -> str | None:
    problems = details.get("errors")
    names = [problems[0].get("field")] if problems else details.get("fields") or [None]
    field = names[0]
    is_stored = isinstance(field, str) and 0 < len(field) <= _LONGEST_FIELD and is_documented(field)
    return field if is_stored else None
