"""The requests of a key, for its owner: counts per day, and the log."""

import contextlib
import re
from functools import cache

from profilesvc.contract.requests import KeyRequests, KeyRequestsQuery, LoggedRequest, UsageDay
from profilesvc.domain.errors import ServiceError
from profilesvc.domain.time import DAY, iso
from profilesvc.services.access import missing
from profilesvc.services.context import Caller, Services
from profilesvc.services.insight.request_log import write
from profilesvc.storage import keys
from profilesvc.storage.insight import request_log
from profilesvc.storage.insight.request_log import DayOfKey, LoggedRow
from profilesvc.storage.tables.insight import LOG_KEPT

_VALUE = re.compile(r"<(?:\w+:)?(\w+)>")


async def read(services: Services, caller: Caller, client_id: str, query: KeyRequestsQuery) -> KeyRequests:
    """Return the counts of the last days and a page of the log of a key of the caller, live or not.

    Requests that another process has answered are up to five seconds late.

    Raises:
        ServiceError: NOT_FOUND.
    """
    with contextlib.suppress(ServiceError):  # if nothing can be written, what is stored can still be read
        await write(services)
    now, limit = services.clock.now(), query.limit
    before = None
    if query.before is not None:
        at, _, row_id = query.before.partition("-")
        before = int(at), row_id
    first = now - now % DAY - (query.days - 1) * DAY
    async with services.storage.read() as session:
        key = await keys.own(session, client_id, caller.owner_id)
        if key is None:
            raise missing("API key")
        days = await request_log.days(session, key.owner_id, key.id, first)
        of_key, errors = (key.owner_id, key.id), query.errors_only == "true"
        rows = await request_log.page(session, of_key, now - LOG_KEPT, before, limit + 1, errors=errors)
    page = rows[:limit]
    return KeyRequests(
        usage=_usage(days, first, now),
        requests=[_entry(row) for row in page],
        limit=limit,
        next_before=f"{page[-1].at}-{page[-1].id}" if len(rows) > limit else None,
    )


def _usage(days: list[DayOfKey], first: int, now: int) -> list[UsageDay]:
    """Return every day from the first on, the newest first."""
    by_day = {row.day: row for row in days}
    usage = []
    for day in range(first, now + 1, DAY):
        row = by_day.get(day, DayOfKey(0, 0, day, 0, 0, 0))
        counts = {"client_errors": row.client_errors, "server_errors": row.server_errors}
        usage.append(UsageDay(day=iso(day)[:10], requests=row.requests, **counts))
    return usage[::-1]


@cache
def _path(route: str) -> str:
    """Return a route as the API's documents write it."""
    return _VALUE.sub(r"{\1}", route)


def _entry(row: LoggedRow) -> LoggedRequest:
    return LoggedRequest(
        at=iso(row.at),
        method=row.method,
        path=_path(row.route),
        status=row.status,
        code=row.code,
        reason=row.reason,
        field=row.field,
        duration_ms=row.duration_ms,
        request_id=row.request_id,
        ip_prefix=row.ip_prefix,
    )
