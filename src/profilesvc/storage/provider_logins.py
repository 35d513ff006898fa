"""Queries on owners' logins at the provider, and on the locations that they reach."""

from collections.abc import Sequence
from typing import NamedTuple

from sqlalchemy import ColumnElement, Select, and_, bindparam, delete, func, literal, or_, select, update
from sqlalchemy.ext.asyncio import AsyncSession

from profilesvc.database.statements import Executor, Prepared, fetch, insert_into
from profilesvc.storage.locations import is_kept
from profilesvc.storage.tables import (
    OWNER,
    changed_locations,
    drafts,
    events,
    idempotency,
    location_owners,
    locations,
    mirrors,
    posts,
    provider_connections,
    readings,
    syncs,
)

_COLUMNS = provider_connections.c


class ProviderLogin(NamedTuple):
    """A login of an owner at the provider; the refresh token is encrypted."""

    owner_id: int
    id: int
    subject: str | None
    email: str | None
    scopes: str
    refresh_token: str | None
    state: str
    created_at: int
    last_used_at: int | None
    last_error: str | None
    last_error_at: int | None


_LOGIN = Prepared(
    select(*(_COLUMNS[name] for name in ProviderLogin._fields)).where(
        _COLUMNS.owner_id == OWNER, _COLUMNS.id == bindparam("number")
    )
)


def _is(owner_id: int, number: int) -> ColumnElement[bool]:
    return and_(_COLUMNS.owner_id == owner_id, _COLUMNS.id == number)


def _rows(*conditions: ColumnElement[bool]) -> "Select[tuple[object, ...]]":
    columns = [_COLUMNS[name] for name in ProviderLogin._fields]
    return select(*columns).where(*conditions).order_by(_COLUMNS.owner_id, _COLUMNS.id)


async def find(session: Executor, owner_id: int, number: int) -> ProviderLogin | None:
    """Return a connection of this owner."""
    rows = await fetch(session, _LOGIN, owner_id=owner_id, number=number)
    return ProviderLogin._make(rows[0]) if rows else None


async def listing(session: Executor, owner_id: int) -> list[ProviderLogin]:
    """Return the connections of an owner that are not disconnected, oldest first."""
    query = _rows(_COLUMNS.owner_id == owner_id, _COLUMNS.state != "disconnected")
    return [ProviderLogin._make(row) for row in await session.execute(query)]


async def of_all_owners(session: Executor) -> list[ProviderLogin]:
    """Return the connections of all owners, for the operator."""
    return [ProviderLogin._make(row) for row in await session.execute(_rows())]


async def with_token_like(session: Executor, start: str) -> list[ProviderLogin]:
    """Return the connections of all owners whose encrypted token starts with this."""
    rows = await session.execute(_rows(_COLUMNS.refresh_token.startswith(start, autoescape=True)))
    return [ProviderLogin._make(row) for row in rows]


async def replace_token(session: AsyncSession, row: ProviderLogin, encrypted: str) -> None:
    """Store the token of this connection in another encryption, unless it has changed."""
    is_same = and_(_is(row.owner_id, row.id), _COLUMNS.refresh_token == row.refresh_token)
    await session.execute(update(provider_connections).where(is_same).values(refresh_token=encrypted))


async def counts(session: Executor, owner_id: int) -> dict[int, int]:
    """Return how many imported locations each connection of an owner reaches."""
    is_imported = (locations.c.owner_id == owner_id, locations.c.connection_id.is_not(None), is_kept())
    query = select(locations.c.connection_id, func.count().label("amount")).where(*is_imported)
    rows = await session.execute(query.group_by(locations.c.connection_id))
    return {row.connection_id: row.amount for row in rows}


async def put(session: AsyncSession, owner_id: int, subject: str | None, **values: object) -> int:
    """Add a connection, or change the one with this subject, and return its number. None is never the same subject."""
    row = insert_into(session, provider_connections).values(owner_id=owner_id, subject=subject, **values)
    changed = {name: row.excluded[name] for name in values if name != "created_at"}
    statement = row.on_conflict_do_update(index_elements=["owner_id", "subject"], set_=changed)
    return int((await session.execute(statement.returning(_COLUMNS.id))).scalar_one())


async def change(session: AsyncSession, owner_id: int, number: int, **values: object) -> None:
    """Set columns of a connection."""
    await session.execute(update(provider_connections).where(_is(owner_id, number)).values(**values))


async def end(session: AsyncSession, seen: ProviderLogin, error: str, now: int) -> bool:
    """Mark that a login has ended, unless it was connected again since it was read; return whether that changed it."""
    is_same = (_is(seen.owner_id, seen.id), _COLUMNS.state == "active", _COLUMNS.refresh_token == seen.refresh_token)
    values = {"state": "reauth_required", "last_error": error, "last_error_at": now}
    statement = update(provider_connections).where(*is_same).values(**values).returning(_COLUMNS.id)
    return (await session.execute(statement)).first() is not None


async def to_revoke(session: Executor, now: int, limit: int) -> list[ProviderLogin]:
    """Return disconnected logins whose consent is to be revoked now, of all owners."""
    columns = [_COLUMNS[name] for name in ProviderLogin._fields]
    query = select(*columns).where(_COLUMNS.revoke_at <= now).order_by(_COLUMNS.revoke_at).limit(limit)
    return [ProviderLogin._make(row) for row in await session.execute(query)]


async def revoking(session: Executor, owner_id: int) -> list[ProviderLogin]:
    """Return the disconnected logins of an owner whose consent is still to be revoked."""
    query = _rows(_COLUMNS.owner_id == owner_id, _COLUMNS.revoke_at.is_not(None))
    return [ProviderLogin._make(row) for row in await session.execute(query)]


async def tries(session: Executor, owner_id: int, number: int) -> int:
    """Return how often the revocation was tried."""
    return int((await session.execute(select(_COLUMNS.revoke_tries).where(_is(owner_id, number)))).scalar_one())


async def names_of(session: Executor, owner_id: int, number: int) -> list[str]:
    """Return the locations that a connection reaches."""
    query = select(locations.c.name).where(locations.c.owner_id == owner_id, locations.c.connection_id == number)
    return list((await session.execute(query.where(is_kept()).order_by(locations.c.name))).scalars())


class Contents(NamedTuple):
    """What is stored of a location: its profile and the source of its sync, as JSON."""

    name: str
    profile: str
    profile_read_at: int
    source: str | None


async def contents(session: Executor, owner_id: int, number: int) -> list[Contents]:
    """Return what is stored of the locations that a connection reaches."""
    columns = [locations.c[name] for name in Contents._fields]
    is_of_login = locations.c.owner_id == owner_id, locations.c.connection_id == number, is_kept()
    return [Contents._make(row) for row in await session.execute(select(*columns).where(*is_of_login).order_by("name"))]


async def posts_of(session: Executor, owner_id: int, names: Sequence[str]) -> dict[str, list[str]]:
    """Return the stored posts of locations, newest first."""
    found: dict[str, list[str]] = {}
    is_of_locations = posts.c.owner_id == owner_id, posts.c.location_name.in_(names)
    query = select(posts.c.location_name, posts.c.document).where(*is_of_locations)
    for row in await session.execute(query.order_by(posts.c.created_at.desc(), posts.c.post_id)):
        found.setdefault(row.location_name, []).append(row.document)
    return found


async def forget(session: AsyncSession, owner_id: int, names: Sequence[str], now: int) -> None:
    """Delete the provider's data of locations, and leave the rows that their keys refer to.

    Any owner can import the locations afterwards.
    """
    empty = {"profile": "{}", "profile_read_at": 0, "title": "", "account": "", "source": None, "last_sync": None}
    state = {"is_verified": False, "verification_state": "UNVERIFIED", "sync_enabled": False, "drift": None}
    apart = {"posts_read_at": None, "business_id": None, "assigned_at": None, "disconnected_at": now}
    ended = {"sync_lease": None, "sync_lease_until": None}
    is_location = locations.c.owner_id == owner_id, locations.c.name.in_(names)
    # In the order of the requests that store something of these locations: two orders could deadlock. This waits for
    # them, and later ones store nothing.
    is_of_locations = idempotency.c.owner_id == owner_id, idempotency.c.location_name.in_(names)
    await session.execute(delete(idempotency).where(*is_of_locations))
    await session.execute(update(locations).where(*is_location).values(**empty, **state, **apart, **ended))
    of_locations = {
        table: (table.c.owner_id == owner_id, table.c.location_name.in_(names))
        for table in (posts, syncs, readings, mirrors, drafts)
    }
    for table, conditions in of_locations.items():
        await session.execute(delete(table).where(*conditions))
    data = literal('{"location_id":"') + events.c.location_name + literal('"}')
    is_of_key = or_(*(events.c.type.startswith(prefix) for prefix in ("key.", "connection.", "token.")))
    is_event = events.c.owner_id == owner_id, events.c.location_name.in_(names), ~is_of_key
    await session.execute(update(events).where(*is_event).values(data=data))
    await session.execute(delete(changed_locations).where(changed_locations.c.location_name.in_(names)))
    await session.execute(delete(location_owners).where(location_owners.c.name.in_(names)))


async def owners_of(session: Executor, names: Sequence[str]) -> dict[str, int]:
    """Return the owners of locations, for those that have one."""
    query = select(location_owners.c.name, location_owners.c.owner_id).where(location_owners.c.name.in_(names))
    return {row.name: row.owner_id for row in await session.execute(query)}


async def claim(session: AsyncSession, owner_id: int, name: str) -> bool:
    """Make the owner the one of a location; return False if another owner has it."""
    row = insert_into(session, location_owners).values(name=name, owner_id=owner_id).on_conflict_do_nothing()
    await session.execute(row)
    return (await owners_of(session, [name]))[name] == owner_id
