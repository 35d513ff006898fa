"""Who is calling, and which locations they reach: the one place that decides either (D-03, D-14, D-19)."""

import re
from collections.abc import Sequence
from typing import Any

from sqlalchemy.ext.asyncio import AsyncSession

from profilesvc.contract.errors import AUTH_INSUFFICIENT_PERMISSIONS, AUTH_INVALID_TOKEN, NOT_FOUND
from profilesvc.domain.errors import ServiceError
from profilesvc.domain.permissions import ALL
from profilesvc.domain.world import MINUTE
from profilesvc.services.context import Caller, Prefetch, Reached, Services
from profilesvc.storage import accounts, keys, locations
from profilesvc.storage.accounts import UserState
from profilesvc.storage.keys import KeyState
from profilesvc.tokens.claims import AccessClaims, ServiceClaims, UserClaims
from profilesvc.tokens.signer import TokenRefused

_EVERYTHING = frozenset(ALL)
_BEARER = re.compile(r"bearer ([^ ]+)\Z", re.IGNORECASE)
_MESSAGES = {
    "missing": "Send an access token in the Authorization header.",
    "malformed": "The Authorization header must be `Bearer` and one access token.",
    "invalid": "The access token is not one of ours.",
    "expired": "The access token has expired; get a new one.",
    "revoked": "The access token has been revoked; connect again with new credentials.",
}


def refused(reason: str) -> ServiceError:
    """The 401 of a bearer route: `details.reason` tells a client what to do next (D-04a)."""
    challenge = "Bearer" if reason == "missing" else 'Bearer error="invalid_token"'  # RFC 6750 §3
    return ServiceError(AUTH_INVALID_TOKEN, _MESSAGES[reason], headers={"WWW-Authenticate": challenge}, reason=reason)


def bearer_token(headers: list[str]) -> str:
    """The token of exactly one `Authorization: Bearer …` header."""
    if not headers or not any(headers):
        raise refused("missing")
    match = _BEARER.match(headers[0]) if len(headers) == 1 else None
    if match is None:
        raise refused("malformed")
    return match.group(1)


async def authenticate(services: Services, authorization: list[str], prefetch: Prefetch | None = None) -> Caller:
    """The caller behind the Authorization headers; `prefetch` is read in the same statement.

    A deactivated key comes back as a caller too, with its hold in `caller.key`, so that the route can record its
    last contact (D-28) before `require_active` refuses it. AUTH_INVALID_TOKEN otherwise.
    """
    now = services.clock.now()
    try:
        claims = services.signer.read(bearer_token(authorization), "at+jwt", now)
    except TokenRefused as refusal:
        raise refused(refusal.reason) from None
    if prefetch is not None and prefetch.location != claims.get("location"):
        prefetch = None
    if claims["scope"] == "user":
        return await _user(services, claims, prefetch)
    return await _service(services, claims, prefetch)


def ids(claims: AccessClaims) -> tuple[str, str, str]:
    """Return what of a token can be revoked on its own: the token, its family, the key that signed it."""
    return claims["jti"], claims["fam"] if claims["scope"] == "service" else "", claims["kid"]


async def live_user(
    services: Services, claims: UserClaims, prefetch: Prefetch | None = None
) -> tuple[UserState | None, Sequence[Any]]:
    """The user whose token this is, unless the token was ended."""
    async with services.storage.read() as session:
        user, prefetched = await accounts.token_user(session, int(claims["sub"]), ids(claims), prefetch)
    if user is None or user.suspended_at is not None or user.epoch != claims["epoch"]:
        return None, ()
    return user, prefetched


async def live_key(
    services: Services, claims: ServiceClaims, prefetch: Prefetch | None = None
) -> tuple[KeyState | None, Sequence[Any]]:
    """The key whose token this is, unless the token was ended; a key under a hold comes back whatever the epoch."""
    async with services.storage.read() as session:
        key, prefetched = await keys.token_key(session, claims["client_id"], ids(claims), prefetch)
    if key is None or key.ended(services.clock.now()) or key.revoked:
        return None, ()
    if key.hold is None and key.epoch != claims["epoch"]:
        return None, ()
    return key, prefetched


async def _user(services: Services, claims: UserClaims, prefetch: Prefetch | None) -> Caller:
    user, prefetched = await live_user(services, claims, prefetch)
    if user is None:
        raise await _ended(services, claims)
    return Caller(user.id, services.plans.get(user.plan), _EVERYTHING, prefetched=prefetched)


async def _service(services: Services, claims: ServiceClaims, prefetch: Prefetch | None) -> Caller:
    key, prefetched = await live_key(services, claims, prefetch)
    if key is None:
        raise await _ended(services, claims)
    now = services.clock.now()
    if key.hold is None and (key.last_used_at is None or key.last_used_at < now - MINUTE):
        services.background.spawn(note_use(services, key, now))
    granted = frozenset(key.permissions.split()).intersection(claims["permissions"])
    return Caller(key.user_id, services.plans.get(key.plan), granted, key, prefetched)


async def _ended(services: Services, claims: AccessClaims) -> ServiceError:
    """What was revoked may be the key that signed: then nobody knows whose token it is, and a new one is the cure."""
    await services.signing_keys.reload()
    return refused("revoked" if claims["kid"] in services.signer.keyring.access else "invalid")


async def note_use(services: Services, key: KeyState, now: int) -> None:
    """Write `last_used_at`, at most once a minute and after the answer (D-24)."""
    async with services.storage.write() as session:
        await keys.set_last_used(session, key.id, now)


async def reach(services: Services, caller: Caller, name: str) -> Reached:
    """The location if the caller may use it; `name` must come from the canonicaliser (D-20).

    A key: anything but its own is 403, decided without a look-up. A user: another's and an unknown one are the
    same 404 (D-19).
    """
    if caller.key is not None:
        if caller.key.location_name != name:
            raise ServiceError(AUTH_INSUFFICIENT_PERMISSIONS, "The key is bound to another location.")
        return Reached(name, caller.user_id, caller.plan, caller.key.account)
    async with services.storage.read() as session:
        account = await locations.account_of(session, name, caller.user_id)
    if account is None:
        raise ServiceError(NOT_FOUND, "There is no such location.")
    return Reached(name, caller.user_id, caller.plan, account)


def missing(what: str) -> ServiceError:
    """The same answer for what does not exist and for what is another user's (D-19)."""
    return ServiceError(NOT_FOUND, f"You have no such {what}.")


async def own_key(services: Services, session: AsyncSession, caller: Caller | None, client_id: str) -> KeyState:
    """A live key of the caller, which nobody else changes until the transaction ends; NOT_FOUND.

    Without a caller anyone's, for the operator.
    """
    key = await keys.locked(session, client_id, None if caller is None else caller.user_id)
    if key is None or key.gone(services.clock.now()):
        raise missing("API key")
    return key
