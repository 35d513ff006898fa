"""Queries on the requests of keys: counts per day, and the log."""

from typing import NamedTuple

from sqlalchemy import select, tuple_

from profilesvc.database.statements import Executor, Insert, PreparedWrite, columns, insert_by, records
from profilesvc.database.writers import Executions
from profilesvc.storage.tables.insight import key_usage, request_log


class DayOfKey(NamedTuple):
    """The requests of a key on a day, which starts at `day`."""

    owner_id: int
    key_id: int
    day: int
    requests: int
    client_errors: int
    server_errors: int


class LoggedRow(NamedTuple):
    """The columns of a logged request."""

    owner_id: int
    key_id: int
    at: int
    id: str
    method: str
    route: str
    status: int
    code: str | None
    reason: str | None
    field: str | None
    duration_ms: int
    request_id: str | None
    ip_prefix: str | None


Position = tuple[int, str]  # time and id of a request


def _add(dialect: str) -> Insert:
    insert, old = insert_by(dialect, key_usage), key_usage.c
    sums = {name: old[name] + insert.excluded[name] for name in DayOfKey._fields[3:]}
    return insert.on_conflict_do_update(index_elements=[old.owner_id, old.key_id, old.day], set_=sums)


_ADD = PreparedWrite(_add, DayOfKey._fields)
_LOG = PreparedWrite(lambda dialect: insert_by(dialect, request_log).on_conflict_do_nothing(), LoggedRow._fields)


def recording(dialect: str, days: list[DayOfKey], rows: list[LoggedRow]) -> list[Executions]:
    """Return the statements that add to the counts of days, sorted against deadlocks, and append to the log."""
    steps = (
        _ADD.executions(dialect, [day._asdict() for day in sorted(days)]),
        _LOG.executions(dialect, [row._asdict() for row in rows]),
    )
    return [step for step in steps if step.rows]


async def days(session: Executor, owner_id: int, key_id: int, since: int) -> list[DayOfKey]:
    """Return the days of a key with requests, from an instant on."""
    is_of_key = key_usage.c.owner_id == owner_id, key_usage.c.key_id == key_id, key_usage.c.day >= since
    query = select(*columns(key_usage, DayOfKey._fields)).where(*is_of_key).order_by(key_usage.c.day)
    return await records(session, DayOfKey, query)


async def page(
    session: Executor, of_key: tuple[int, int], since: int, before: Position | None, limit: int, *, errors: bool
) -> list[LoggedRow]:
    """Return the logged requests of a key (owner and number) from an instant on and before a position, newest first."""
    order = request_log.c.at, request_log.c.id
    owner_id, key_id = of_key
    conditions = [request_log.c.owner_id == owner_id, request_log.c.key_id == key_id, request_log.c.at >= since]
    if before is not None:
        conditions += [request_log.c.at <= before[0], tuple_(*order) < before]
    if errors:
        conditions.append(request_log.c.status >= 400)
    query = select(*columns(request_log, LoggedRow._fields)).where(*conditions)
    query = query.order_by(*(column.desc() for column in order)).limit(limit)
    return await records(session, LoggedRow, query)
