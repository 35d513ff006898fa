"""Refresh tokens are single-use: each exchange makes the one successor of a generation (D-10).

A generation is exchanged by a conditional write, so that of any number of simultaneous exchanges one makes the
successor. The others get the very same pair for a short grace: what is stored are its claims, and RS256 signs the
same claims to the same bytes. Whatever else presents a generation that was exchanged is a copy in two hands: the
family ends, with its access tokens.
"""

from dataclasses import asdict, dataclass
from typing import Any

import orjson
from sqlalchemy.ext.asyncio import AsyncSession

from profilesvc.domain.world import DAY, SECOND
from profilesvc.services import audit
from profilesvc.services.context import Services
from profilesvc.storage import families, revocations
from profilesvc.storage.families import Family, Step
from profilesvc.storage.keys import KeyState
from profilesvc.tokens.signer import LONGEST_TOKEN, random_id

FAMILY_LIFETIME = 365 * DAY


class RefreshRefused(Exception):
    """The token was exchanged before, or nobody knows its family. The caller says so in the route's own words."""


@dataclass(frozen=True, slots=True)
class Pair:
    """An access token and its refresh token before they are signed; the same pair signs to the same bytes.

    `now` in milliseconds, lifetimes in seconds, `kid` the key that signs.
    """

    kid: str
    now: int
    access_ttl: int
    refresh_ttl: int
    access_jti: str
    refresh_jti: str
    claims: dict[str, Any]

    @property
    def permissions(self) -> list[str]:
        """What both tokens carry."""
        return list(self.claims["permissions"])

    def access_token(self, services: Services) -> str:
        """The access token, signed."""
        claims = {**self.claims, "jti": self.access_jti}
        return services.signer.issue("at+jwt", claims, self.now, self.access_ttl, self.kid)

    def refresh_token(self, services: Services) -> str:
        """The refresh token, signed."""
        claims = {**self.claims, "jti": self.refresh_jti}
        return services.signer.issue("rt+jwt", claims, self.now, self.refresh_ttl, self.kid)


def first_pair(services: Services, key: KeyState, permissions: list[str]) -> Pair:
    """The pair that begins a family. Nothing is stored of it."""
    now = services.clock.now()
    family = {"fam": random_id(services.entropy), "gen": 0, "auth_time": now // SECOND}
    return _pair(services, key, permissions, family)


def _pair(services: Services, key: KeyState, permissions: list[str], family: dict[str, Any]) -> Pair:
    now, lifetimes = services.clock.now(), services.settings.tokens
    issued = now // SECOND
    access_ttl = lifetimes.access_ttl_seconds
    refresh_ttl = min(lifetimes.refresh_ttl_seconds, family["auth_time"] + FAMILY_LIFETIME // SECOND - issued)
    if key.expires_at is not None:  # what dies with the key must not promise more (D-11)
        left = key.expires_at // SECOND - issued
        access_ttl, refresh_ttl = min(access_ttl, left), min(refresh_ttl, left)
    claims = {
        "sub": key.client_id,
        "client_id": key.client_id,
        "scope": "service",
        "permissions": permissions,
        "location": key.location_name,
        "business_id": key.business_id,
        "epoch": key.epoch,
        **family,
    }
    jtis = random_id(services.entropy), random_id(services.entropy)
    return Pair(services.signer.keyring.active(now).kid, now, access_ttl, refresh_ttl, *jtis, claims)


async def exchange(services: Services, key: KeyState, presented: dict[str, Any], permissions: list[str]) -> Pair:
    """The pair that follows a refresh token with these claims. RefreshRefused."""
    family = {name: presented[name] for name in ("fam", "gen", "auth_time")}
    successor = _pair(services, key, permissions, {**family, "gen": family["gen"] + 1})
    step = Step(
        family=family["fam"],
        key_id=key.id,
        of=family["gen"],
        successor=orjson.dumps(asdict(successor)).decode(),
        expires_at=successor.now + successor.refresh_ttl * SECOND,
    )
    async with services.storage.write() as session:
        if await families.advance(session, step, successor.now):
            await audit.record(services, session, "token.refreshed", key.user_id, key.id, generation=step.of + 1)
            pair: Pair | None = successor
        else:
            pair = await _repeated(services, session, key, step)
    if pair is None or pair.kid not in services.signer.keyring:  # removed since: the pair is as dead as its key
        raise RefreshRefused
    return pair


async def _repeated(services: Services, session: AsyncSession, key: KeyState, step: Step) -> Pair | None:
    """The pair that there is already, if the repeat is within the grace; a late one ends the family."""
    known, now = await families.find(session, step.family), services.clock.now()
    if known is None:
        return None
    if _within_grace(services, known, step.of):
        await audit.record(services, session, "token.refresh_replayed", key.user_id, key.id, generation=step.of)
        return Pair(**orjson.loads(known.successor))
    if step.of < known.generation:
        await revocations.add(session, "family", step.family, now, now + LONGEST_TOKEN)
        await audit.record(services, session, "token.refresh_reuse", key.user_id, key.id, generation=step.of)
    return None


def _within_grace(services: Services, known: Family, presented: int) -> bool:
    """A lost answer or a parallel worker: the immediate predecessor, just exchanged, its successor still unused."""
    grace = services.settings.tokens.refresh_grace_seconds * SECOND
    return presented == known.generation - 1 and services.clock.now() - known.rotated_at <= grace
