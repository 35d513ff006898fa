"""Refresh tokens are single-use: each exchange creates the one successor of a generation (D-10)."""

from dataclasses import asdict, dataclass
from typing import TypedDict

import orjson
from sqlalchemy.ext.asyncio import AsyncSession

from profilesvc.contract.common import PermissionName
from profilesvc.domain.time import DAY, SECOND
from profilesvc.services import audit
from profilesvc.services.context import Services
from profilesvc.services.key_events import publish
from profilesvc.storage import families, revocations
from profilesvc.storage.families import Exchange
from profilesvc.storage.keys import KeyState
from profilesvc.tokens.claims import LONGEST_TOKEN, Grant, RefreshClaims
from profilesvc.tokens.signer import random_id

FAMILY_LIFETIME = 365 * DAY


class RefreshRejected(Exception):
    """The error for a token that was exchanged before, or whose family or signing key is unknown."""


class _Generation(TypedDict):
    """The place of a pair in its family."""

    fam: str
    gen: int
    auth_time: int


@dataclass(frozen=True, slots=True)
class Pair:
    """An access token and its refresh token before they are signed. The same pair signs to the same bytes.

    `now` in milliseconds, lifetimes in seconds, each `kid` the key that signs.
    """

    access_kid: str
    refresh_kid: str
    now: int
    access_ttl: int
    refresh_ttl: int
    access_jti: str
    refresh_jti: str
    claims: Grant

    @property
    def permissions(self) -> list[PermissionName]:
        return list(self.claims["permissions"])

    def access_token(self, services: Services) -> str:
        """Return the access token, signed."""
        claims = {**self.claims, "jti": self.access_jti}
        return services.signer.issue("at+jwt", claims, self.now, self.access_ttl, self.access_kid)

    def refresh_token(self, services: Services) -> str:
        """Return the refresh token, signed."""
        claims = {**self.claims, "jti": self.refresh_jti}
        return services.signer.issue("rt+jwt", claims, self.now, self.refresh_ttl, self.refresh_kid)


def first_pair(services: Services, key: KeyState, permissions: list[PermissionName]) -> Pair:
    """Return the first pair of a family. It is not stored."""
    now = services.clock.now()
    return _pair(services, key, permissions, {"fam": random_id(services.entropy), "gen": 0, "auth_time": now // SECOND})


def _pair(services: Services, key: KeyState, permissions: list[PermissionName], generation: _Generation) -> Pair:
    now, lifetimes = services.clock.now(), services.settings.tokens
    ring = services.signer.keyring
    issued = now // SECOND
    access_ttl = lifetimes.access_ttl_seconds
    refresh_ttl = min(lifetimes.refresh_ttl_seconds, generation["auth_time"] + FAMILY_LIFETIME // SECOND - issued)
    if key.expires_at is not None:  # the token must expire before its key does (D-11)
        remaining = key.expires_at // SECOND - issued
        access_ttl, refresh_ttl = min(access_ttl, remaining), min(refresh_ttl, remaining)
    return Pair(
        access_kid=ring.access.active(now).kid,
        refresh_kid=ring.refresh.active(now).kid,
        now=now,
        access_ttl=access_ttl,
        refresh_ttl=refresh_ttl,
        access_jti=random_id(services.entropy),
        refresh_jti=random_id(services.entropy),
        claims={
            "sub": key.client_id,
            "client_id": key.client_id,
            "scope": "service",
            "permissions": permissions,
            "location": key.location_name,
            "business_id": key.business_id,
            "epoch": key.epoch,
            **generation,
        },
    )


async def exchange(
    services: Services, key: KeyState, presented: RefreshClaims, permissions: list[PermissionName]
) -> Pair:
    """Return the pair that replaces a refresh token with these claims.

    A conditional write advances the generation, so only one of several simultaneous exchanges creates the successor.
    During a short grace period the others get the same pair, signed again from its stored claims. Any other use of a
    generation that was exchanged means that two parties have the token, so the family ends with its access tokens.

    Raises:
        RefreshRejected: The token was exchanged before, or a key that signed the pair was removed.
    """
    successor = _pair(
        services,
        key,
        permissions,
        {"fam": presented["fam"], "gen": presented["gen"] + 1, "auth_time": presented["auth_time"]},
    )
    exchange = Exchange(
        owner_id=key.owner_id,
        family=presented["fam"],
        key_id=key.id,
        generation=presented["gen"],
        successor=orjson.dumps(asdict(successor)).decode(),
        # The row outlives both: after the lifetime was made shorter, the presented token may be valid for longer.
        expires_at=max(successor.now // SECOND + successor.refresh_ttl, presented["exp"]) * SECOND,
    )
    async with services.storage.write() as session:
        if await families.advance(session, exchange, successor.now):
            await audit.count(services, session, "token.refreshed", key)
            pair: Pair | None = successor
        else:
            pair = await _repeated(services, session, key, exchange)
    ring = services.signer.keyring
    if pair is None or pair.access_kid not in ring.access or pair.refresh_kid not in ring.refresh:
        raise RefreshRejected  # the stored pair is not valid if its signing key was removed
    return pair


async def _repeated(services: Services, session: AsyncSession, key: KeyState, exchange: Exchange) -> Pair | None:
    """Return the existing pair within the grace period. After that, end the family."""
    family, now = await families.find(session, exchange.owner_id, exchange.family), services.clock.now()
    if family is None:
        return None
    grace = services.settings.tokens.refresh_grace_seconds * SECOND
    # The response was lost or a parallel worker has exchanged the token just now, and its successor is unused.
    if exchange.generation == family.generation - 1 and now - family.rotated_at <= grace:
        await audit.count(services, session, "token.refresh_replayed", key)
        return Pair(**orjson.loads(family.successor))
    if exchange.generation < family.generation:
        if await revocations.add(session, exchange.owner_id, "family", exchange.family, now, now + LONGEST_TOKEN):
            await publish(services, session, "token.reuse_detected", key.owner_id, [key.id])
        await audit.record(
            services, session, "token.refresh_reuse", key.owner_id, key.id, generation=exchange.generation
        )
    return None
