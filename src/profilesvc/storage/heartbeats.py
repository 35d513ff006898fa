"""Queries on heartbeats."""

from typing import NamedTuple

from sqlalchemy import ColumnElement, String, Text, and_, bindparam, case, cast, exists, func, or_, select, update

from profilesvc.database.statements import Executor, Insert, Prefetch, Prepared, PreparedWrite, Row, fetch, insert_by
from profilesvc.database.writers import Executions
from profilesvc.domain.heartbeats import OFFLINE_AFTER, ONLINE_FOR, REJECTIONS, Span, state
from profilesvc.domain.time import month_start
from profilesvc.storage.tables import OWNER, connections, contacts, holds, keys, secrets
from profilesvc.storage.tables.insight import request_log


class KeyStatus(NamedTuple):
    """A key as its owner sees it: when it ended, whether it has a hold, and its last heartbeat.

    `has_trouble`: since that heartbeat the key got a new secret, or a revoked token was rejected. The columns after it
    are None until `explained` has read them.
    """

    id: int
    created_at: int
    revoked_at: int | None
    expires_at: int | None
    allowed_domains: str
    is_held: bool
    last_heartbeat_at: int | None
    plugin_version: str | None
    wp_version: str | None
    php_version: str | None
    site_host: str | None
    other_site_host: str | None
    other_site_host_at: int | None
    has_trouble: bool
    last_used_at: int | None = None
    secret_at: int | None = None
    retiring_until: int | None = None
    rejection: str | None = None

    def is_plainly_online(self, now: int) -> bool:
        """Return whether the reason follows from these columns, because the site is online and has no trouble."""
        return state(self.last_heartbeat_at, now) == "online" and not self.has_trouble


_OF_ROW = KeyStatus._fields.index("last_used_at")  # the number of columns of `_WATCHED`
_SEARCHED = 1_000  # entries of a key's log, which may have thousands that say nothing of the connection


def reasons(owner: ColumnElement[int]) -> tuple[ColumnElement[int | None] | ColumnElement[str | None], ...]:
    """Return columns for a query on the keys of an owner: the last use, the newest secret, the end of earlier ones.

    The last column is the newest rejection since the last use, among the last entries of the log: its reason and its
    instant.
    """
    of_key = secrets.c.owner_id == owner, secrets.c.key_id == keys.c.id
    logged = request_log.c.owner_id == owner, request_log.c.key_id == keys.c.id
    since = request_log.c.at >= func.coalesce(keys.c.last_used_at, 0)  # an earlier one says nothing any more
    latest = select(request_log.c.reason, request_log.c.at).where(*logged, since).order_by(request_log.c.at.desc())
    rows = latest.limit(_SEARCHED).correlate(keys).subquery()
    rejected = or_(*(rows.c.reason == each for each in REJECTIONS))
    newest = select(rows.c.reason + " " + cast(rows.c.at, String)).where(rejected).order_by(rows.c.at.desc()).limit(1)
    return (
        keys.c.last_used_at,
        select(func.max(secrets.c.created_at)).where(*of_key).scalar_subquery(),
        select(func.max(secrets.c.expires_at)).where(*of_key).scalar_subquery(),
        newest.scalar_subquery(),
    )


_SINCE = connections.c.last_heartbeat_at
_ITS_SECRET = secrets.c.owner_id == OWNER, secrets.c.key_id == keys.c.id
_NEW_SECRET = exists().where(*_ITS_SECRET, secrets.c.created_at > keys.c.created_at, secrets.c.created_at >= _SINCE)
_ITS_REQUEST = request_log.c.owner_id == OWNER, request_log.c.key_id == keys.c.id
_REVOKED = exists().where(*_ITS_REQUEST, request_log.c.at >= _SINCE, request_log.c.reason == "revoked")
_WATCHED = Prepared(
    select(
        *(keys.c[name] for name in KeyStatus._fields[:5]),
        exists().where(holds.c.owner_id == OWNER, holds.c.key_id == keys.c.id),
        *(connections.c[name] for name in KeyStatus._fields[6 : _OF_ROW - 1]),
        or_(_NEW_SECRET, _REVOKED),
    )
    .select_from(keys.outerjoin(connections))
    .where(keys.c.owner_id == OWNER, keys.c.client_id == bindparam("client_id"))
)
_REASONS = Prepared(select(*reasons(OWNER)).where(keys.c.owner_id == OWNER, keys.c.id == bindparam("key_id")))


def prefetch(client_id: str) -> Prefetch:
    """Return the prefetch of `status` for the user who is calling; `from_row` reads it."""
    return Prefetch(_WATCHED, {"client_id": client_id})


async def status(session: Executor, client_id: str, owner_id: int) -> KeyStatus | None:
    """Return a key of a user and its last heartbeat, in one statement."""
    rows = await fetch(session, _WATCHED, client_id=client_id, owner_id=owner_id)
    return from_row(rows[0]) if rows else None


def from_row(columns: Row) -> KeyStatus | None:
    """Build the result from a row."""
    return None if columns[0] is None else KeyStatus(*columns)


async def explained(session: Executor, owner_id: int, key: KeyStatus, now: int) -> KeyStatus:
    """Return the key with what its reason depends on, which is not read for a site that is plainly online."""
    if key.is_plainly_online(now):
        return key
    rows = await fetch(session, _REASONS, owner_id=owner_id, key_id=key.id)
    return KeyStatus._make([*key[:_OF_ROW], *rows[0]]) if rows else key


class Beat(NamedTuple):
    """A heartbeat as it is stored; a field that is None keeps its old value."""

    owner_id: int
    key_id: int
    last_heartbeat_at: int
    plugin_version: str | None = None
    wp_version: str | None = None
    php_version: str | None = None
    detected_plugins: str | None = None
    site_host: str | None = None
    site_host_at: int | None = None
    same_sites: str = "[]"  # a JSON array of what names the same site as `site_host`; not stored


_COLUMNS = Beat._fields[:-1]


def names_site(array: ColumnElement[str], site: ColumnElement[str]) -> ColumnElement[bool]:
    """Return whether a JSON array of sites has this one. LIKE would read an underscore as any character."""
    return func.replace(array, cast('"', String) + site + '"', "") != array


def _upsert(dialect: str) -> Insert:
    insert = insert_by(dialect, connections)
    new, old = insert.excluded, connections.c
    versions = {name: func.coalesce(new[name], old[name]) for name in _COLUMNS[3:]}
    # When a heartbeat names a new site, the old one moves to other_site; one statement, so that no race loses it.
    is_new = ~names_site(bindparam("same_sites", type_=Text), old.site_host)
    moved = and_(old.site_host.is_not(None), new.site_host.is_not(None), old.site_host != new.site_host, is_new)
    sites = {
        "other_site_host": case((moved, old.site_host), else_=old.other_site_host),
        "other_site_host_at": case((moved, old.site_host_at), else_=old.other_site_host_at),
    }
    return insert.on_conflict_do_update(
        index_elements=[old.owner_id, old.key_id],
        set_={"last_heartbeat_at": new.last_heartbeat_at, **versions, **sites},
        where=old.last_heartbeat_at <= new.last_heartbeat_at,
    )


_KEY = bindparam("key_id", type_=contacts.c.key_id.type)
_NOW = bindparam("last_heartbeat_at", type_=contacts.c.ended_at.type)
_MONTH = bindparam("month", type_=contacts.c.started_at.type)
_RUNNING = and_(
    contacts.c.owner_id == OWNER,
    contacts.c.key_id == _KEY,
    contacts.c.ended_at >= _NOW - ONLINE_FOR,
    contacts.c.started_at.between(_MONTH, _NOW),
)


def _start(dialect: str) -> Insert:
    """Start a run of contact after a gap of more than the online window and in a new month, unless one is running."""
    # It selects from the row of the heartbeat, so that a distributed database sends it to the shard of that row.
    owner, key = connections.c.owner_id, connections.c.key_id
    is_running = exists().where(_RUNNING, contacts.c.owner_id == owner)
    new = select(owner, key, _NOW, _NOW).where(owner == OWNER, key == _KEY, ~is_running)
    insert = insert_by(dialect, contacts)
    return insert.from_select(["owner_id", "key_id", "started_at", "ended_at"], new).on_conflict_do_nothing()


_UPSERT, _START = PreparedWrite(_upsert, _COLUMNS), PreparedWrite(_start)
_EXTEND = PreparedWrite(update(contacts).where(_RUNNING, contacts.c.ended_at < _NOW).values(ended_at=_NOW))


def recording(dialect: str, beats: list[Beat]) -> list[Executions]:
    """Return the statements that record heartbeats: the later one wins, fields not reported keep their value."""
    # Two processes that lock rows in the same order cannot deadlock.
    rows = [beat._asdict() for beat in sorted(beats, key=lambda beat: beat[:3])]
    latest = list({row["key_id"]: {**row, "month": month_start(row["last_heartbeat_at"])} for row in rows}.values())
    return [_UPSERT.executions(dialect, rows), _EXTEND.executions(dialect, latest), _START.executions(dialect, latest)]


async def spans(session: Executor, owner_id: int, key_id: int, since: int) -> list[Span]:
    """Return the runs of contact that decide the states of a key after an instant, oldest first."""
    return (await spans_of_keys(session, owner_id, [key_id], since)).get(key_id, [])


async def spans_of_keys(session: Executor, owner_id: int, key_ids: list[int], since: int) -> dict[int, list[Span]]:
    """Return the runs of contact that decide the states of an owner's keys after an instant, oldest first, by key."""
    of_keys = contacts.c.owner_id == owner_id, contacts.c.key_id.in_(key_ids)
    query = _RUNS.where(*of_keys, *_is_since(since - OFFLINE_AFTER)).order_by(contacts.c.started_at)
    spans: dict[int, list[Span]] = {}
    for row in await session.execute(query):
        spans.setdefault(row.key_id, []).append(Span(row.started_at, row.ended_at))
    return spans


async def runs(session: Executor, owner_id: int, since: int) -> list[tuple[int, int, int]]:
    """Return the runs of contact of all keys of an owner after an instant: key, first and last heartbeat."""
    query = _RUNS.where(contacts.c.owner_id == owner_id, *_is_since(since))
    return [tuple(row) for row in await session.execute(query)]


_RUNS = select(contacts.c.key_id, contacts.c.started_at, contacts.c.ended_at)


def _is_since(instant: int) -> tuple[ColumnElement[bool], ...]:
    """Return the condition that a run ended after an instant; it may go on in the row of the next month."""
    return contacts.c.started_at >= month_start(instant), contacts.c.ended_at >= instant


class KeyRow(NamedTuple):
    """A live key with its last contact, one of its holds, and whether it has a badge."""

    id: int
    client_id: str
    name: str
    location_name: str
    allowed_domains: str
    created_at: int
    has_badge: bool
    last_heartbeat_at: int | None
    plugin_version: str | None
    wp_version: str | None
    php_version: str | None
    site_host: str | None
    other_site_host: str | None
    other_site_host_at: int | None
    last_used_at: int | None
    secret_at: int | None
    retiring_until: int | None
    rejection: str | None
    hold_reason: str | None
