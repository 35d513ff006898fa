"""Queries on owners' logins at the provider, and on the locations that they reach."""

from collections.abc import Sequence
from typing import NamedTuple

from sqlalchemy import delete, func, literal, or_, select, update
from sqlalchemy.ext.asyncio import AsyncSession

from profilesvc.database.statements import Executor, columns, insert_into, records
from profilesvc.storage.locations import is_kept
from profilesvc.storage.provider_logins import ProviderLogin, is_login, rows
from profilesvc.storage.tables import (
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


async def listing(session: Executor, owner_id: int) -> list[ProviderLogin]:
    """Return the connections of an owner that are not disconnected, oldest first."""
    query = rows(_COLUMNS.owner_id == owner_id, _COLUMNS.state != "disconnected")
    return await records(session, ProviderLogin, query)


async def all_logins(session: Executor) -> list[ProviderLogin]:
    """Return the connections of all owners, for the operator."""
    return await records(session, ProviderLogin, rows())


async def locations_by_login(session: Executor, owner_id: int) -> dict[int, int]:
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


async def to_revoke(session: Executor, now: int, limit: int) -> list[ProviderLogin]:
    """Return disconnected logins whose consent is to be revoked now, of all owners."""
    query = select(*columns(provider_connections, ProviderLogin._fields)).where(_COLUMNS.revoke_at <= now)
    return await records(session, ProviderLogin, query.order_by(_COLUMNS.revoke_at).limit(limit))


async def revoking(session: Executor, owner_id: int) -> list[ProviderLogin]:
    """Return the disconnected logins of an owner whose consent is still to be revoked."""
    query = rows(_COLUMNS.owner_id == owner_id, _COLUMNS.revoke_at.is_not(None))
    return await records(session, ProviderLogin, query)


async def tries(session: Executor, owner_id: int, number: int) -> int:
    """Return how often the revocation was tried."""
    return int((await session.execute(select(_COLUMNS.revoke_tries).where(is_login(owner_id, number)))).scalar_one())


async def names_of(session: Executor, owner_id: int, number: int) -> list[str]:
    """Return the locations that a connection reaches."""
    query = select(locations.c.name).where(locations.c.owner_id == owner_id, locations.c.connection_id == number)
    return list((await session.execute(query.where(is_kept()).order_by(locations.c.name))).scalars())


class Contents(NamedTuple):
    """The stored data of a location: its profile and the source of its sync, as JSON."""

    name: str
    profile: str
    profile_read_at: int
    source: str | None


async def contents(session: Executor, owner_id: int, number: int) -> list[Contents]:
    """Return what is stored of the locations that a connection reaches."""
    is_of_login = locations.c.owner_id == owner_id, locations.c.connection_id == number, is_kept()
    query = select(*columns(locations, Contents._fields)).where(*is_of_login).order_by("name")
    return await records(session, Contents, query)


async def posts_of(session: Executor, owner_id: int, names: Sequence[str]) -> dict[str, list[str]]:
    """Return the stored posts of locations, newest first."""
    documents: dict[str, list[str]] = {}
    is_of_locations = posts.c.owner_id == owner_id, posts.c.location_name.in_(names)
    query = select(posts.c.location_name, posts.c.document).where(*is_of_locations)
    for row in await session.execute(query.order_by(posts.c.created_at.desc(), posts.c.post_id)):
        documents.setdefault(row.location_name, []).append(row.document)
    return documents


async def forget(session: AsyncSession, owner_id: int, names: Sequence[str], now: int) -> None:
    """Delete the provider's data of locations, which any owner can import then; the rows that their keys need stay."""
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
    for table in (posts, syncs, readings, mirrors, drafts):
        await session.execute(delete(table).where(table.c.owner_id == owner_id, table.c.location_name.in_(names)))
    data = literal('{"location_id":"') + events.c.location_name + literal('"}')
    is_of_key = or_(*(events.c.type.startswith(prefix) for prefix in ("key.", "connection.", "token.")))
    is_event = events.c.owner_id == owner_id, events.c.location_name.in_(names), ~is_of_key
    await session.execute(update(events).where(*is_event).values(data=data))
    await session.execute(delete(changed_locations).where(changed_locations.c.location_name.in_(names)))
    await session.execute(delete(location_owners).where(location_owners.c.name.in_(names)))
