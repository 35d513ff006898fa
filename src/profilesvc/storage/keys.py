"""Queries on API keys, their secrets and holds."""

import json
from typing import NamedTuple

from sqlalchemy import ColumnElement, Select, String, and_, bindparam, cast, func, insert, or_, select, update
from sqlalchemy.ext.asyncio import AsyncSession

from profilesvc.contract.common import DeactivationReason
from profilesvc.database.statements import Executor, Prefetch, Prepared, Row, fetch, fetch_one, separated
from profilesvc.domain.keys import Hold
from profilesvc.storage import domains, signing_keys
from profilesvc.storage.revocations import NO_TOKEN, TokenIds, any_of
from profilesvc.storage.tables import holds, keys, locations, secrets, users


class KeyState(NamedTuple):
    """The columns that decide whether a request of a key is allowed. They are read for each request."""

    id: int
    client_id: str
    user_id: int
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
        return self.revoked_at is None and (self.expires_at is None or self.expires_at > now)

    def may_authenticate(self, now: int) -> bool:
        """Return whether its secret and tokens are valid: it is live, and its owner is not suspended."""
        return self.is_live(now) and self.owner_suspended_at is None


_STATES = (
    select(
        keys.c.id,
        keys.c.client_id,
        keys.c.user_id,
        keys.c.business_id,
        keys.c.location_name,
        keys.c.permissions,
        keys.c.allowed_domains,
        keys.c.epoch,
        keys.c.created_at,
        keys.c.expires_at,
        keys.c.revoked_at,
        keys.c.last_used_at,
        users.c.plan,
        locations.c.account,
        users.c.suspended_at,
        holds.c.reason,
        holds.c.set_at,
        any_of.label("token_revoked"),
    )
    .select_from(
        keys.join(users, users.c.id == keys.c.user_id)
        .join(locations, locations.c.name == keys.c.location_name)
        .outerjoin(holds, holds.c.key_id == keys.c.id)
    )
    .order_by(holds.c.severity.desc())
    .limit(1)
)
STATE = _STATES.where(keys.c.client_id == bindparam("client_id"))
_STATE = Prepared(STATE)
_OWN = Prepared(STATE.where(keys.c.user_id == bindparam("user_id")))


async def state(session: Executor, client_id: str, ids: TokenIds = NO_TOKEN) -> KeyState | None:
    """Return the state of a key; its `token_revoked` shows whether one of a token's `ids` is revoked."""
    return (await token_key(session, client_id, ids))[0]


async def own(session: Executor, client_id: str, user_id: int) -> KeyState | None:
    """Return the state of a key of this user.

    The owner is part of the condition, so that reading another user's key takes as long as reading one that does not
    exist.
    """
    rows = await fetch(session, _OWN, client_id=client_id, user_id=user_id, **NO_TOKEN)
    return KeyState._make(rows[0]) if rows else None


async def token_key(
    session: Executor, client_id: str, ids: TokenIds, prefetch: Prefetch | None = None
) -> tuple[KeyState | None, Row]:
    """Return the state of a key as `state` does, and the prefetched row."""
    row, prefetched = await fetch_one(session, _STATE, prefetch, client_id=client_id, **ids)
    return (None if row is None else KeyState._make(row)), prefetched


async def locked(session: AsyncSession, client_id: str, user_id: int | None) -> KeyState | None:
    """Lock a user's key (None: anyone's) until the transaction ends, and return its state.

    Another user's key is not locked, because a lock is a write to its row. There are two statements, so that the second
    one reads what the previous holder of the lock has committed.
    """
    lock = select(keys.c.id).where(keys.c.client_id == client_id).with_for_update(key_share=True)
    if user_id is not None:
        lock = lock.where(keys.c.user_id == user_id)
    return None if (await session.execute(lock)).first() is None else await state(session, client_id)


_DIGESTS = (
    select(separated(secrets.c.digest + ":" + func.coalesce(cast(secrets.c.expires_at, String), ""), " "))
    .where(secrets.c.key_id == keys.c.id)
    .correlate(keys)
    .scalar_subquery()
)
_same, _any = keys.alias("same"), keys.alias("any_key")
_REQUESTED = select(_same.c.client_id).where(_same.c.client_id == bindparam("client_id")).scalar_subquery()
_DECOY = select(func.min(_any.c.client_id)).scalar_subquery()
_CREDENTIALS = Prepared(
    _STATES.where(keys.c.client_id == func.coalesce(_REQUESTED, _DECOY)).add_columns(_DIGESTS, signing_keys.STAMP)
)


async def credentials(session: Executor, client_id: str, now: int) -> tuple[KeyState | None, list[str], str | None]:
    """Return the state of a key, the digests of its valid secrets, and the stamp of the signing keys.

    One statement reads all that a grant needs. If the id is unknown, it reads a decoy key and returns its digests
    without a state, so that timing does not reveal which ids exist.
    """
    rows = await fetch(session, _CREDENTIALS, client_id=client_id, **NO_TOKEN)
    if not rows:
        return None, [], None
    *state, digests, stamp = rows[0]
    stored = [each.split(":") for each in (digests or "").split()]
    valid = [digest for digest, expires_at in stored if not expires_at or int(expires_at) > now]
    key = KeyState._make(state)
    return (key if key.client_id == client_id else None), valid, stamp


class NewKey(NamedTuple):
    """The columns of a new key."""

    user_id: int
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
    await session.execute(insert(secrets).values(key_id=key_id, digest=digest, created_at=new.created_at))
    await domains.add(session, key_id, domains_of(new.allowed_domains), new.expires_at)
    return key_id


async def retiring_until(session: AsyncSession, key_id: int, now: int) -> int | None:
    """Return when the previous secret ends, or None if it has ended or there is none."""
    query = select(func.max(secrets.c.expires_at)).where(secrets.c.key_id == key_id, secrets.c.expires_at > now)
    until = (await session.execute(query)).scalar_one()
    return None if until is None else int(until)


async def replace_secret(session: AsyncSession, key_id: int, digest: str, now: int, until: int) -> None:
    """Add a secret; the older ones end at `until`, unless they end before."""
    older = or_(secrets.c.expires_at.is_(None), secrets.c.expires_at > until)
    await session.execute(update(secrets).where(secrets.c.key_id == key_id, older).values(expires_at=until))
    await session.execute(insert(secrets).values(key_id=key_id, digest=digest, created_at=now))


async def client_id_taken(session: Executor, client_id: str) -> bool:
    """Return whether a key, live or not, has this client id."""
    return (await session.execute(select(keys.c.id).where(keys.c.client_id == client_id))).first() is not None


async def count_live(session: Executor, location: str, now: int) -> int:
    """Return how many live keys a location has."""
    query = select(func.count()).where(keys.c.location_name == location, live(now))
    return int((await session.execute(query)).scalar_one())


def live(now: int | ColumnElement[int]) -> ColumnElement[bool]:
    """Return the condition that a key is neither revoked nor expired."""
    return and_(keys.c.revoked_at.is_(None), or_(keys.c.expires_at.is_(None), keys.c.expires_at > now))


class ListedKey(NamedTuple):
    """A key as lists show it, with its most severe hold."""

    id: int
    client_id: str
    name: str
    location_name: str
    primary_domain: str | None
    created_at: int
    last_used_at: int | None
    expires_at: int | None
    revoked_at: int | None
    hold_reason: DeactivationReason | None


_MOST_SEVERE = (
    select(holds.c.reason)
    .where(holds.c.key_id == keys.c.id)
    .order_by(holds.c.severity.desc())
    .limit(1)
    .scalar_subquery()
)
_LISTED = select(*(keys.c[name] for name in ListedKey._fields[:-1]), _MOST_SEVERE)


async def listed(session: Executor, user_id: int, client_id: str) -> ListedKey | None:
    """Return one key of a user, live or not."""
    query = _LISTED.where(keys.c.client_id == client_id, keys.c.user_id == user_id)
    row = (await session.execute(query)).first()
    return None if row is None else ListedKey._make(row)


async def listing(
    session: Executor, user_id: int | None, live_at: int | None, before: int | None = None, limit: int | None = None
) -> list[ListedKey]:
    """Return the keys of a user (None: of everyone), newest first.

    `live_at` restricts them to those live at an instant, `before` to those older than the key with that id, and `limit`
    their number.
    """
    query = listing_query(user_id, live_at, before, limit)
    return [ListedKey._make(row) for row in await session.execute(query)]


def listing_query(
    user_id: int | None, live_at: int | None, before: int | None, limit: int | None
) -> Select[*tuple[object, ...]]:
    """Return the statement of `listing`, whose plan a test checks."""
    query = _LISTED.order_by(keys.c.id.desc()).limit(limit)
    if before is not None:
        query = query.where(keys.c.id < before)
    if user_id is not None:
        query = query.where(keys.c.user_id == user_id)
    return query if live_at is None else query.where(live(live_at))


async def revoke(session: AsyncSession, key_id: int, now: int) -> None:
    await session.execute(update(keys).where(keys.c.id == key_id).values(revoked_at=now))
    await domains.drop(session, key_id)


async def set_last_used(session: AsyncSession, key_id: int, now: int) -> None:
    """Store when a key was used, unless a later use is stored."""
    await session.execute(
        update(keys)
        .where(keys.c.id == key_id, (keys.c.last_used_at.is_(None)) | (keys.c.last_used_at < now))
        .values(last_used_at=now)
    )


async def advance_billing(session: AsyncSession, which: ColumnElement[bool], version: int) -> list[int]:
    """Store a billing event on the keys that have no newer one; return their ids."""
    statement = update(keys).where(which, keys.c.billing_version < version).values(billing_version=version)
    return list((await session.execute(statement.returning(keys.c.id))).scalars())


async def raise_epoch(session: AsyncSession, key_id: int) -> None:
    """End every token issued with the key so far."""
    await session.execute(update(keys).where(keys.c.id == key_id).values(epoch=keys.c.epoch + 1))


def domains_of(stored: str) -> list[str]:
    return [str(domain) for domain in json.loads(stored)]


async def set_badge(session: AsyncSession, key_id: int, digest: str | None) -> None:
    """Store the digest of a badge's link, or None to remove the badge."""
    await session.execute(update(keys).where(keys.c.id == key_id).values(badge_digest=digest))
