"""Queries on API keys, their secrets and holds."""

import json
import re
from typing import NamedTuple

from sqlalchemy import ColumnElement, FromClause, Select, String, and_, bindparam, cast, func, insert, select, update
from sqlalchemy.ext.asyncio import AsyncSession

from profilesvc.contract.common import DeactivationReason
from profilesvc.database.statements import (
    Executor,
    Prefetch,
    Prepared,
    Row,
    columns,
    fetch,
    fetch_one,
    has_row,
    record,
    records,
    separated,
)
from profilesvc.domain.keys import Hold
from profilesvc.storage import domains, signing_keys
from profilesvc.storage.domains import Entry
from profilesvc.storage.revocations import NO_TOKEN, TokenIds, any_of
from profilesvc.storage.tables import OWNER, holds, keys, locations, secrets, users

_OWNER = re.compile(r"svcid_([0-9]{1,19})_", re.ASCII)
_NOBODY = 0  # the number of no user


def owner_of(client_id: str) -> int:
    """Return the number of the owner that a client id contains; _NOBODY if it has none that a database can store."""
    match = _OWNER.match(client_id)
    owner = _NOBODY if match is None else int(match[1])
    return owner if owner < 2**63 else _NOBODY


def has_ended(revoked_at: int | None, expires_at: int | None, now: int) -> bool:
    """Return whether a key is revoked or has expired. A key that has not ended may have a hold."""
    return revoked_at is not None or (expires_at is not None and expires_at <= now)


class KeyState(NamedTuple):
    """The columns that decide whether a request of a key is allowed. They are read for each request."""

    id: int
    client_id: str
    owner_id: int
    business_id: int
    location_name: str
    permissions: str
    allowed_domains: str
    epoch: int
    created_at: int
    expires_at: int | None
    revoked_at: int | None
    last_used_at: int | None
    plan: str
    account: str
    connection_id: int | None
    owner_suspended_at: int | None
    hold_reason: str | None
    hold_set_at: int | None
    token_revoked: bool

    @property
    def hold(self) -> Hold | None:
        """The most severe hold."""
        return None if self.hold_reason is None else Hold(self.hold_reason, self.hold_set_at or 0)

    def is_live(self, now: int) -> bool:
        """Return whether the key is neither revoked nor expired. A live key may have a hold."""
        return not has_ended(self.revoked_at, self.expires_at, now)

    def may_authenticate(self, now: int) -> bool:
        """Return whether its secret and tokens are valid: it is live, and its owner is not suspended."""
        return self.is_live(now) and self.owner_suspended_at is None


_HOLDS = and_(holds.c.owner_id == keys.c.owner_id, holds.c.key_id == keys.c.id)
_FROM_KEYS = (
    select(
        *columns(keys, KeyState._fields[:12]),
        users.c.plan,
        locations.c.account,
        locations.c.connection_id,
        users.c.suspended_at,
        holds.c.reason,
        holds.c.set_at,
        any_of.label("token_revoked"),
    )
    .select_from(
        keys.join(users, users.c.id == keys.c.owner_id)
        .join(locations, and_(locations.c.owner_id == keys.c.owner_id, locations.c.name == keys.c.location_name))
        .outerjoin(holds, _HOLDS)
    )
    .where(keys.c.owner_id == OWNER)
    .order_by(holds.c.severity.desc())
    .limit(1)
)
# `token_key` runs it on each request of a key.
_STATE = Prepared(_FROM_KEYS.where(keys.c.client_id == bindparam("client_id")))


async def state(session: Executor, client_id: str, ids: TokenIds = NO_TOKEN) -> KeyState | None:
    """Return the state of a key; its `token_revoked` shows whether one of a token's `ids` is revoked."""
    return (await token_key(session, client_id, ids))[0]


async def own(session: Executor, client_id: str, owner_id: int) -> KeyState | None:
    """Return the state of a key of this user. Another user's takes as long to read as one that does not exist."""
    rows = await fetch(session, _STATE, client_id=client_id, owner_id=owner_id, **NO_TOKEN)
    return KeyState._make(rows[0]) if rows else None


async def token_key(
    session: Executor, client_id: str, ids: TokenIds, prefetch: Prefetch | None = None
) -> tuple[KeyState | None, Row]:
    """Return the state of a key as `state` does, and the prefetched row."""
    owner_id = owner_of(client_id)
    row, prefetched = await fetch_one(session, _STATE, prefetch, owner_id=owner_id, client_id=client_id, **ids)
    return (None if row is None else KeyState._make(row)), prefetched


async def locked(session: AsyncSession, client_id: str, owner_id: int | None) -> KeyState | None:
    """Lock a user's key (None: anyone's) until the transaction ends, and return its state.

    Another user's key is not locked, because a lock is a write to its row. There are two statements, so that the second
    one reads what the previous holder of the lock has committed.
    """
    owner = owner_of(client_id) if owner_id is None else owner_id
    lock = select(keys.c.id).where(keys.c.owner_id == owner, keys.c.client_id == client_id)
    is_found = await has_row(session, lock.with_for_update(key_share=True))
    return await own(session, client_id, owner) if is_found else None


_DIGESTS = (
    select(separated(secrets.c.digest + ":" + func.coalesce(cast(secrets.c.expires_at, String), ""), " "))
    .where(secrets.c.owner_id == OWNER, secrets.c.key_id == keys.c.id)
    .correlate(keys)
    .scalar_subquery()
)
_same, _any = keys.alias("same"), keys.alias("any_key")
_IS_REQUESTED = (_same.c.owner_id == OWNER, _same.c.client_id == bindparam("client_id"))
_REQUESTED = select(_same.c.client_id).where(*_IS_REQUESTED).scalar_subquery()
_DECOY = select(func.min(_any.c.client_id)).where(_any.c.owner_id == OWNER).scalar_subquery()
_CREDENTIALS = Prepared(
    _FROM_KEYS.where(keys.c.client_id == func.coalesce(_REQUESTED, _DECOY)).add_columns(_DIGESTS, signing_keys.STAMP)
)


async def credentials(session: Executor, client_id: str, now: int) -> tuple[KeyState | None, list[str], str | None]:
    """Return the state of a key, the digests of its valid secrets, and the stamp of the signing keys.

    One statement reads all that a grant needs. If the id is unknown, it reads a decoy key of the same owner and returns
    its digests without a state, so that timing does not reveal which ids exist.
    """
    rows = await fetch(session, _CREDENTIALS, owner_id=owner_of(client_id), client_id=client_id, **NO_TOKEN)
    if not rows:
        return None, [], None
    *state, digests, stamp = rows[0]
    stored = [each.split(":") for each in (digests or "").split()]
    valid = [digest for digest, expires_at in stored if not expires_at or int(expires_at) > now]
    key = KeyState._make(state)
    return (key if key.client_id == client_id else None), valid, stamp


def _is(owner_id: int, key_id: int) -> ColumnElement[bool]:
    return and_(keys.c.owner_id == owner_id, keys.c.id == key_id)


class NewKey(NamedTuple):
    """The columns of a new key."""

    owner_id: int
    business_id: int
    location_name: str
    name: str
    permissions: str
    primary_domain: str | None
    allowed_domains: str
    created_at: int
    expires_at: int | None
    client_id: str = ""
    billing_version: int = 0


async def add(session: AsyncSession, new: NewKey, digest: str) -> int:
    """Add a key with its first secret and its domains."""
    key_id = int((await session.execute(insert(keys).values(new._asdict()).returning(keys.c.id))).scalar_one())
    of_key = {"owner_id": new.owner_id, "key_id": key_id}
    await session.execute(insert(secrets).values(**of_key, digest=digest, created_at=new.created_at))
    await domains.add(session, Entry(**of_key, expires_at=new.expires_at), domains_of(new.allowed_domains))
    return key_id


def _is_key(owner_id: int, key_id: int) -> ColumnElement[bool]:
    return and_(secrets.c.owner_id == owner_id, secrets.c.key_id == key_id)


async def retiring_until(session: Executor, owner_id: int, key_id: int, now: int) -> int | None:
    """Return when the previous secret ends, or None if it has ended or there is none."""
    query = select(func.max(secrets.c.expires_at)).where(_is_key(owner_id, key_id), secrets.c.expires_at > now)
    until = (await session.execute(query)).scalar_one()
    return None if until is None else int(until)


async def replace_secret(session: AsyncSession, owner_id: int, key_id: int, digest: str, now: int, until: int) -> None:
    """Add a secret; the older ones end at `until`, unless they end before."""
    older = secrets.c.expires_at.is_(None) | (secrets.c.expires_at > until)
    await session.execute(update(secrets).where(_is_key(owner_id, key_id), older).values(expires_at=until))
    await session.execute(insert(secrets).values(owner_id=owner_id, key_id=key_id, digest=digest, created_at=now))


async def end_retiring(session: AsyncSession, owner_id: int, key_id: int, now: int) -> bool:
    """End the previous secret now; return whether there was one."""
    retiring = (_is_key(owner_id, key_id), secrets.c.expires_at > now)
    ended = await session.execute(update(secrets).where(*retiring).values(expires_at=now).returning(secrets.c.digest))
    return bool(ended.all())


async def client_id_taken(session: Executor, client_id: str) -> bool:
    """Return whether a key, live or not, has this client id."""
    query = select(keys.c.id).where(keys.c.owner_id == owner_of(client_id), keys.c.client_id == client_id)
    return await has_row(session, query)


async def count_live(session: Executor, owner_id: int, location: str, now: int) -> int:
    """Return how many live keys a location has."""
    query = select(func.count()).where(keys.c.owner_id == owner_id, keys.c.location_name == location, live(now))
    return int((await session.execute(query)).scalar_one())


def live(now: int | ColumnElement[int], of: FromClause = keys) -> ColumnElement[bool]:
    """Return the condition that a key is neither revoked nor expired."""
    return and_(of.c.revoked_at.is_(None), of.c.expires_at.is_(None) | (of.c.expires_at > now))


class ListedKey(NamedTuple):
    """A key as lists show it, with its most severe hold."""

    id: int
    client_id: str
    name: str
    location_name: str
    primary_domain: str | None
    allowed_domains: str
    created_at: int
    last_used_at: int | None
    expires_at: int | None
    revoked_at: int | None
    hold_reason: DeactivationReason | None


def _listed(owner_id: int | None) -> Select[*tuple[object, ...]]:
    """Select the keys of a user (None: of everyone) with their most severe holds."""
    severest = select(holds.c.reason).where(_HOLDS).order_by(holds.c.severity.desc()).limit(1)
    listed = select(*columns(keys, ListedKey._fields[:-1]))
    if owner_id is None:
        return listed.add_columns(severest.scalar_subquery().label("hold_reason"))
    held = severest.where(holds.c.owner_id == owner_id).scalar_subquery()
    return listed.add_columns(held.label("hold_reason")).where(keys.c.owner_id == owner_id)


async def listed(session: Executor, owner_id: int, client_id: str) -> ListedKey | None:
    """Return one key of a user, live or not."""
    return await record(session, ListedKey, _listed(owner_id).where(keys.c.client_id == client_id))


async def listed_of(session: Executor, owner_id: int, ids: list[int]) -> list[ListedKey]:
    """Return these keys of a user, live or not, oldest first."""
    if not ids:
        return []
    query = _listed(owner_id).where(keys.c.id.in_(ids)).order_by(keys.c.id)
    return await records(session, ListedKey, query)


async def listing(
    session: Executor, owner_id: int | None, live_at: int | None, before: int | None = None, limit: int | None = None
) -> list[ListedKey]:
    """Return keys of a user (None: of everyone), newest first: those live at an instant, older than a key `before`."""
    return await records(session, ListedKey, listing_query(owner_id, live_at, before, limit))


def listing_query(
    owner_id: int | None, live_at: int | None, before: int | None, limit: int | None
) -> Select[*tuple[object, ...]]:
    """Return the statement of `listing`, whose plan a test checks."""
    query = _listed(owner_id).order_by(keys.c.id.desc()).limit(limit)
    if before is not None:
        query = query.where(keys.c.id < before)
    return query if live_at is None else query.where(live(live_at))


async def change(session: AsyncSession, owner_id: int, key_id: int, **values: object) -> None:
    """Set columns of a key."""
    await session.execute(update(keys).where(_is(owner_id, key_id)).values(**values))


async def set_domains(session: AsyncSession, key: KeyState, primary: str | None, allowed: list[str]) -> None:
    """Replace the domains of a key, also in the directory of preflights."""
    await change(session, key.owner_id, key.id, primary_domain=primary, allowed_domains=json.dumps(allowed))
    entry = Entry(key.owner_id, key.id, key.expires_at)
    await domains.drop(session, entry, domains_of(key.allowed_domains))
    await domains.add(session, entry, allowed)


async def revoke(session: AsyncSession, key: KeyState, now: int) -> None:
    """Revoke a key, and remove it from the directory of preflights."""
    await change(session, key.owner_id, key.id, revoked_at=now)
    entry = Entry(key.owner_id, key.id, key.expires_at)
    await domains.drop(session, entry, domains_of(key.allowed_domains))


async def set_last_used(session: AsyncSession, owner_id: int, key_id: int, now: int) -> None:
    """Store when a key was used, unless a later use is stored."""
    is_later = keys.c.last_used_at.is_(None) | (keys.c.last_used_at < now)
    await session.execute(update(keys).where(_is(owner_id, key_id), is_later).values(last_used_at=now))


async def advance_billing(session: AsyncSession, owner_id: int, which: ColumnElement[bool], version: int) -> list[int]:
    """Store a billing event on the owner's keys among these that have no newer one; return their ids."""
    is_older = (keys.c.owner_id == owner_id, which, keys.c.billing_version < version)
    statement = update(keys).where(*is_older).values(billing_version=version)
    return list((await session.execute(statement.returning(keys.c.id))).scalars())


async def raise_epoch(session: AsyncSession, owner_id: int, key_id: int) -> None:
    """End every token issued with the key so far."""
    await change(session, owner_id, key_id, epoch=keys.c.epoch + 1)


def domains_of(stored: str) -> list[str]:
    return [str(domain) for domain in json.loads(stored)]
