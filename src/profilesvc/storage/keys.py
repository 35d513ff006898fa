"""Queries on API keys, their secrets and holds."""

import json
from typing import Any, NamedTuple

from sqlalchemy import ColumnElement, Row, Select, and_, bindparam, delete, func, insert, or_, select, update
from sqlalchemy.ext.asyncio import AsyncSession

from profilesvc.domain.keys import SEVERITY, Hold
from profilesvc.storage import domains, revocations
from profilesvc.storage.engine import Executor
from profilesvc.storage.prepared import Prepared, fetch
from profilesvc.storage.tables import businesses, holds, keys, secrets, users


class KeyState(NamedTuple):
    """What a key's requests are decided upon, read anew for each of them (D-14)."""

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
    owner_suspended_at: int | None
    hold_reason: str | None
    hold_set_at: int | None
    revoked: bool

    @property
    def hold(self) -> Hold | None:
        """The most severe hold."""
        return None if self.hold_reason is None else Hold(self.hold_reason, self.hold_set_at or 0)

    def ended(self, now: int) -> bool:
        """Revoked, expired, or its owner is suspended: its secret and tokens are worth nothing."""
        expired = self.expires_at is not None and self.expires_at <= now
        return self.revoked_at is not None or expired or self.owner_suspended_at is not None


_STATE = Prepared(
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
        users.c.suspended_at,
        holds.c.reason,
        holds.c.set_at,
        revocations.any_of.label("revoked"),
    )
    .select_from(keys.join(users, users.c.id == keys.c.user_id).outerjoin(holds, holds.c.key_id == keys.c.id))
    .where(keys.c.client_id == bindparam("client_id"))
    .order_by(holds.c.severity.desc())
    .limit(1)
)


async def state(session: Executor, client_id: str, *ids: str) -> KeyState | None:
    """The state of a key, one statement by unique index; `revoked` tells of the ids that a token of it carries."""
    rows = await fetch(session, _STATE, client_id=client_id, **revocations.ids_of(*ids))
    return KeyState._make(rows[0]) if rows else None


async def digests(session: Executor, key_id: int, now: int) -> list[str]:
    """The digests of the secrets that are good now."""
    query = select(secrets.c.digest, secrets.c.expires_at).where(secrets.c.key_id == key_id)
    return [row.digest for row in await session.execute(query) if row.expires_at is None or row.expires_at > now]


async def add(session: AsyncSession, values: dict[str, Any], digest: str) -> int:
    """Add a key with its first secret and its domains."""
    key_id = int((await session.execute(insert(keys).values(values).returning(keys.c.id))).scalar_one())
    await session.execute(insert(secrets).values(key_id=key_id, digest=digest, created_at=values["created_at"]))
    await domains.add(session, key_id, domains_of(values["allowed_domains"]), values["expires_at"])
    return key_id


async def client_id_taken(session: Executor, client_id: str) -> bool:
    """True when a key, live or not, has this client id."""
    return (await session.execute(select(keys.c.id).where(keys.c.client_id == client_id))).first() is not None


async def count_live(session: Executor, location: str, now: int) -> int:
    """Keys of a location that are neither revoked nor expired."""
    query = select(func.count()).where(keys.c.location_name == location, _is_live(now))
    return int((await session.execute(query)).scalar_one())


def _is_live(now: int) -> ColumnElement[bool]:
    return and_(keys.c.revoked_at.is_(None), or_(keys.c.expires_at.is_(None), keys.c.expires_at > now))


def _listing() -> Select[Any]:
    worst = (
        select(holds.c.reason)
        .where(holds.c.key_id == keys.c.id)
        .order_by(holds.c.severity.desc())
        .limit(1)
        .scalar_subquery()
    )
    return select(
        keys.c.id,
        keys.c.client_id,
        keys.c.user_id,
        keys.c.name,
        keys.c.business_id,
        businesses.c.name.label("business_name"),
        keys.c.location_name,
        keys.c.primary_domain,
        keys.c.created_at,
        keys.c.last_used_at,
        keys.c.expires_at,
        keys.c.revoked_at,
        worst.label("hold_reason"),
    ).join(businesses, businesses.c.id == keys.c.business_id)


async def listing(session: Executor, user_id: int | None, include_revoked: bool) -> list[Row[Any]]:
    """The keys of a user (None: of everyone), newest first."""
    query = _listing().order_by(keys.c.id.desc())
    if user_id is not None:
        query = query.where(keys.c.user_id == user_id)
    if not include_revoked:
        query = query.where(keys.c.revoked_at.is_(None))
    return list(await session.execute(query))


async def revoke(session: AsyncSession, client_id: str, user_id: int, now: int) -> bool:
    """Revoke a live key of its owner; False when there is none."""
    statement = (
        update(keys)
        .where(keys.c.client_id == client_id, keys.c.user_id == user_id, keys.c.revoked_at.is_(None))
        .values(revoked_at=now)
        .returning(keys.c.id)
    )
    revoked = (await session.execute(statement)).first()
    if revoked is not None:
        await domains.drop(session, revoked.id)
    return revoked is not None


async def set_last_used(session: AsyncSession, key_id: int, now: int) -> None:
    """Note the use of a key; never backwards."""
    await session.execute(
        update(keys)
        .where(keys.c.id == key_id, (keys.c.last_used_at.is_(None)) | (keys.c.last_used_at < now))
        .values(last_used_at=now)
    )


async def add_hold(session: AsyncSession, key_id: int, reason: str, now: int) -> bool:
    """Put a hold on a key; False when it already has it."""
    present = select(holds.c.key_id).where(holds.c.key_id == key_id, holds.c.reason == reason)
    if (await session.execute(present)).first() is not None:
        return False
    values = {"key_id": key_id, "reason": reason, "severity": SEVERITY[reason], "set_at": now}
    await session.execute(insert(holds).values(values))
    return True


async def remove_holds(session: AsyncSession, key_id: int, reasons: list[str]) -> int:
    """Lift holds; the number that was there."""
    statement = delete(holds).where(holds.c.key_id == key_id, holds.c.reason.in_(reasons)).returning(holds.c.reason)
    return len((await session.execute(statement)).all())


async def hold_locations(session: AsyncSession, names: list[str], reason: str, now: int) -> list[str]:
    """Put a hold on every live key of these locations that does not have it; the client ids."""
    held = select(holds.c.key_id).where(holds.c.key_id == keys.c.id, holds.c.reason == reason).exists()
    query = (
        select(keys.c.id, keys.c.client_id)
        .where(keys.c.location_name.in_(names), _is_live(now), ~held)
        .order_by(keys.c.id)
    )
    found = list(await session.execute(query))
    if found:
        hold = {"reason": reason, "severity": SEVERITY[reason], "set_at": now}
        await session.execute(insert(holds), [{"key_id": row.id, **hold} for row in found])
    return [row.client_id for row in found]


async def release_locations(session: AsyncSession, names: list[str], reason: str) -> list[str]:
    """Lift a hold from every key of these locations that has it; the client ids."""
    query = (
        select(keys.c.id, keys.c.client_id)
        .join(holds, holds.c.key_id == keys.c.id)
        .where(keys.c.location_name.in_(names), holds.c.reason == reason)
        .order_by(keys.c.id)
    )
    found = list(await session.execute(query))
    ids = [row.id for row in found]
    await session.execute(delete(holds).where(holds.c.key_id.in_(ids), holds.c.reason == reason))
    return [row.client_id for row in found]


async def raise_epoch(session: AsyncSession, key_id: int) -> None:
    """End every token issued with the key so far."""
    await session.execute(update(keys).where(keys.c.id == key_id).values(epoch=keys.c.epoch + 1))


def domains_of(stored: str) -> list[str]:
    """The allowed domains as a list."""
    return [str(domain) for domain in json.loads(stored)]
