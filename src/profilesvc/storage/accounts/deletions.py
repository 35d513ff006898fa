"""Queries that delete an account, in pieces that lock little, and the rules of what is deleted and what stays.

Each table of a tenant is emptied unless RETAINED names it; `tests/storage/test_deletions.py` fails for a directory
without a rule.
"""

from typing import Any, NamedTuple

from sqlalchemy import Column, ColumnElement, Table, case, delete, exists, func, or_, select, tuple_, update
from sqlalchemy.exc import IntegrityError
from sqlalchemy.ext.asyncio import AsyncSession

from profilesvc.database.statements import Executor, columns, insert_new, record, records
from profilesvc.storage.domains import ANY
from profilesvc.storage.keys import domains_of
from profilesvc.storage.notify import deliveries as queued
from profilesvc.storage.notify.channels import put_notice, to_channel
from profilesvc.storage.tables import (
    TENANTS,
    audit,
    changed_locations,
    channels,
    deletions,
    deliveries,
    emails,
    identities,
    key_domains,
    keys,
    location_owners,
    locations,
    metadata,
    provider_connections,
    users,
)
from profilesvc.storage.users import UserState

PIECE = 500  # rows of one transaction
_FEW = {"photos": 10}  # of tables with large rows
# Directories, which have no index on the owner: their rows are deleted with the rows that they lead to.
DELETED_WITH = {"location_owners": "locations", "changed_locations": "locations", "key_domains": "keys"}
DELETED_AT_ONCE = frozenset({"emails", "identities"})  # by the request, so that the person can become a new user
RETAINED = {
    "audit": "what happened and when, without the network, the key and the details, until it is 400 days old",
    "deletions": "when the account was deleted, and the digest of its address, as long as the audit trail",
}
DELETED = TENANTS - {"users"} - RETAINED.keys()
_OWN_EVENTS = ("user.deletion_requested", "user.deleted")  # they keep their network, to investigate a stolen account


class Blocked(Exception):
    """A row refers to what was to be deleted: a request that had started before added it. The next pass deletes it."""


class Deletion(NamedTuple):
    """An account that is being deleted, or that was. Instants in milliseconds."""

    owner_id: int
    requested_at: int
    finished_at: int | None


_COLUMNS = columns(deletions, Deletion._fields)


def in_order() -> list[Table]:
    """Return the tables to delete from; a table comes before those that it refers to."""
    return [table for table in reversed(metadata.sorted_tables) if table.name in DELETED]


async def request(session: AsyncSession, user: UserState, digest: str, now: int) -> bool:
    """End an account; return False if that was done before. Its number stays, because the audit trail refers to it."""
    if not await insert_new(session, deletions, owner_id=user.id, requested_at=now, digest=digest):
        return False
    nameless = {"email": f"deleted-{user.id}@deleted.invalid", "name": "Deleted user", "suspended_at": now}
    await session.execute(update(users).where(users.c.id == user.id).values(**nameless, epoch=users.c.epoch + 1))
    await session.execute(delete(emails).where(emails.c.email == user.email, emails.c.owner_id == user.id))
    await session.execute(delete(identities).where(identities.c.owner_id == user.id))
    ended = update(channels).where(channels.c.owner_id == user.id, channels.c.disabled_at.is_(None))
    await session.execute(ended.values(disabled_at=now, disabled_reason="owner"))
    return True


async def find(session: Executor, owner_id: int) -> Deletion | None:
    return await record(session, Deletion, select(*_COLUMNS).where(deletions.c.owner_id == owner_id))


async def last_deletion(session: Executor, digest: str) -> Deletion | None:
    """Return the last deletion of an account that had an address, for the operator."""
    query = select(*_COLUMNS).where(deletions.c.digest == digest).order_by(deletions.c.requested_at.desc()).limit(1)
    return await record(session, Deletion, query)


async def unfinished(session: Executor, limit: int) -> list[Deletion]:
    """Return the deletions of all owners that are not finished, oldest first."""
    query = select(*_COLUMNS).where(deletions.c.finished_at.is_(None)).order_by(deletions.c.requested_at)
    return await records(session, Deletion, query.limit(limit))


async def finished(session: Executor, before: int, limit: int) -> list[Deletion]:
    """Return the deletions of all owners that were finished before an instant."""
    query = select(*_COLUMNS).where(deletions.c.finished_at < before).order_by(deletions.c.finished_at)
    return await records(session, Deletion, query.limit(limit))


async def finish(session: AsyncSession, owner_id: int, now: int) -> None:
    await session.execute(update(deletions).where(deletions.c.owner_id == owner_id).values(finished_at=now))


async def rows_by_table(session: Executor, owner_id: int) -> dict[str, int]:
    """Return how many rows of an owner each table has that is deleted from, by name, in one statement."""
    rows = (
        select(func.count()).select_from(table).where(table.c.owner_id == owner_id).scalar_subquery().label(table.name)
        for table in sorted(in_order(), key=lambda table: table.name)
    )
    return dict((await session.execute(select(*rows))).one()._asdict())


async def awaited_notice(session: Executor, owner_id: int) -> int | None:
    """Return the channel of the last message to an owner, as long as that is on its way."""
    is_pending = exists().where(
        deliveries.c.owner_id == owner_id, deliveries.c.channel_id == channels.c.id, deliveries.c.state == "pending"
    )
    query = select(channels.c.id).where(channels.c.owner_id == owner_id, channels.c.kind == "notice", is_pending)
    return (await session.execute(query)).scalar()


async def delete_piece(session: AsyncSession, table: Table, owner_id: int, notice: int | None) -> bool:
    """Delete the first rows of an owner in a table; return whether there may be more.

    The rows of the `notice` stay, and a login at the provider whose consent is not withdrawn.

    Raises:
        Blocked: a row of another table refers to one of them.
    """
    try:
        if table is locations:
            return await _delete_locations(session, owner_id)
        if table is keys:
            return await _delete_keys(session, owner_id)
        return await _delete(session, table, owner_id, _FEW.get(table.name, PIECE), *_spared(table, notice))
    except IntegrityError as error:
        raise Blocked(table.name) from error


def _spared(table: Table, notice: int | None) -> list[ColumnElement[bool]]:
    if table is provider_connections:
        return [provider_connections.c.refresh_token.is_(None), provider_connections.c.state == "disconnected"]
    if notice is None or table not in (channels, deliveries):
        return []
    return [(channels.c.id if table is channels else deliveries.c.channel_id) != notice]


async def _delete(
    session: AsyncSession, table: Table, owner_id: int, limit: int, *conditions: ColumnElement[bool]
) -> bool:
    """Delete rows by a range of the primary key, which costs the same however many rows there are."""
    wanted = (table.c.owner_id == owner_id, *conditions)
    place = [column for column in table.primary_key if column.name != "owner_id"]
    if not place:
        await session.execute(delete(table).where(*wanted))
        return False
    last = await _nth(session, place, wanted, limit)
    until = () if last is None else (tuple_(*place) <= last,)
    await session.execute(delete(table).where(*wanted, *until))
    return last is not None


async def _nth(
    session: AsyncSession, place: list[Column[Any]], wanted: tuple[ColumnElement[bool], ...], limit: int
) -> tuple[object, ...] | None:
    query = select(*place).where(*wanted).order_by(*place).offset(limit - 1).limit(1)
    row = (await session.execute(query)).first()
    return None if row is None else tuple(row)


async def _delete_locations(session: AsyncSession, owner_id: int) -> bool:
    query = select(locations.c.name).where(locations.c.owner_id == owner_id).order_by(locations.c.name).limit(PIECE)
    names = list((await session.execute(query)).scalars())
    for directory, column in ((changed_locations, "location_name"), (location_owners, "name")):
        of_owner = directory.c.owner_id == owner_id, directory.c[column].in_(names)
        await session.execute(delete(directory).where(*of_owner))
    await session.execute(delete(locations).where(locations.c.owner_id == owner_id, locations.c.name.in_(names)))
    return len(names) == PIECE


async def _delete_keys(session: AsyncSession, owner_id: int) -> bool:
    query = select(keys.c.id, keys.c.allowed_domains).where(keys.c.owner_id == owner_id).order_by(keys.c.id)
    rows = (await session.execute(query.limit(PIECE))).all()
    ids = [row.id for row in rows]
    named = {name for row in rows for name in domains_of(row.allowed_domains) or [ANY]}
    of_keys = key_domains.c.domain.in_(sorted(named)), key_domains.c.owner_id == owner_id, key_domains.c.key_id.in_(ids)
    await session.execute(delete(key_domains).where(*of_keys))
    await session.execute(delete(keys).where(keys.c.owner_id == owner_id, keys.c.id.in_(ids)))
    return len(rows) == PIECE


async def pseudonymise_piece(session: AsyncSession, owner_id: int) -> bool:
    """Leave of the first events only what happened, when, and by what kind of caller; return whether there are more."""
    emptied = [audit.c[name] for name in ("key_id", "ip_prefix", "request_id", "details", "once")]
    is_full = or_(*(column.is_not(None) for column in emptied))
    wanted = audit.c.owner_id == owner_id, audit.c.event.not_in(_OWN_EVENTS), is_full
    place = [audit.c.at, audit.c.id, audit.c.month]
    last = await _nth(session, place, wanted, PIECE)
    until = () if last is None else (tuple_(*place) <= last,)
    kinds = [(audit.c.actor.startswith(f"{kind}:"), kind) for kind in ("user", "key")]
    values = {**dict.fromkeys(column.name for column in emptied), "actor": case(*kinds, else_=audit.c.actor)}
    await session.execute(update(audit).where(*wanted, *until).values(values))
    return last is not None


async def forget(session: AsyncSession, owner_id: int) -> None:
    """Delete what stays of an account whose deletion was finished so long ago that its audit trail is old."""
    await session.execute(delete(audit).where(audit.c.owner_id == owner_id))
    await session.execute(delete(deletions).where(deletions.c.owner_id == owner_id))
    await session.execute(delete(users).where(users.c.id == owner_id))


async def add_notice(session: AsyncSession, owner_id: int, email: str, now: int) -> None:
    """Queue the last message to an owner: a delivery without an event to the address of the login."""
    no_types = ","  # no type of event is between two commas, so that it gets nothing else
    number = await put_notice(session, owner_id, email, no_types, now)
    await session.execute(delete(deliveries).where(to_channel(owner_id, number)))
    await queued.add(session, owner_id, number, None, now)
