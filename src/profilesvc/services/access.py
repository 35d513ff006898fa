"""Who is calling, what they may do, and which locations they reach: all decided here (D-03, D-14, D-19)."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy.ext.asyncio import AsyncSession

from profilesvc.contract.errors import AUTH_INSUFFICIENT_PERMISSIONS, AUTH_INVALID_TOKEN, NOT_FOUND
from profilesvc.domain.errors import ServiceError
from profilesvc.domain.permissions import ALL, Permission
from profilesvc.domain.request import RequestInfo
from profilesvc.domain.world import MINUTE
from profilesvc.limits.limiter import Kind
from profilesvc.services import origins
from profilesvc.services.context import Caller, Prefetch, Reached, Services, deactivated
from profilesvc.storage import keys, locations, users
from profilesvc.storage.connection import Beat
from profilesvc.storage.keys import KeyState
from profilesvc.storage.users import UserState
from profilesvc.tokens.claims import AccessClaims, ServiceClaims, UserClaims
from profilesvc.tokens.signer import TokenRefused

_EVERYTHING = frozenset(ALL)
_MESSAGES = {
    "missing": "Send an access token in the Authorization header.",
    "malformed": "The Authorization header must be `Bearer` and one access token.",
    "invalid": "The access token was not issued by this service.",
    "expired": "The access token has expired; get a new one.",
    "revoked": "The access token has been revoked; connect again with new credentials.",
}


@dataclass(frozen=True, slots=True)
class Access:
    """Which kinds of token an endpoint accepts, and the permission that a service token needs (D-17).

    `is_session`: a service token is as invalid as a foreign one. `records_contact`: the request of a deactivated key
    also shows that its site is alive (D-28).
    """

    user: bool
    service: bool
    permission: Permission | None = None
    is_session: bool = False
    records_contact: bool = False

    @property
    def public(self) -> bool:
        """Whether no bearer token is read at all."""
        return not (self.user or self.service)

    def require(self, caller: Caller) -> None:
        """Refuse the wrong kind of token, then a missing permission.

        Raises:
            ServiceError: AUTH_INSUFFICIENT_PERMISSIONS.
        """
        if caller.key is None:
            if not self.user:
                raise ServiceError(AUTH_INSUFFICIENT_PERMISSIONS, "Send a service token here, not a user token.")
            return
        if not self.service:
            raise ServiceError(AUTH_INSUFFICIENT_PERMISSIONS, "Send a user token here, not a service token.")
        if self.permission is not None and self.permission not in caller.permissions:
            message = f"The token lacks the permission {self.permission}."
            raise ServiceError(AUTH_INSUFFICIENT_PERMISSIONS, message, of_bearer=True, required=str(self.permission))


PUBLIC = Access(user=False, service=False)
USER = Access(user=True, service=False)
SESSION = Access(user=True, service=False, is_session=True)
HEARTBEAT = Access(user=False, service=True, records_contact=True)


def either(permission: Permission) -> Access:
    """Accept user tokens, and service tokens with the permission."""
    return Access(user=True, service=True, permission=permission)


def refused(reason: str) -> ServiceError:
    """Return the refusal of a bearer token; `details.reason` tells a client what to do next (D-04a)."""
    return ServiceError(AUTH_INVALID_TOKEN, _MESSAGES[reason], of_bearer=True, reason=reason)


async def admit(
    services: Services,
    request: RequestInfo,
    token: str,
    access: Access,
    kind: Kind | None,
    prefetch: Prefetch | None = None,
) -> Caller:
    """Authenticate, decide about the page, count, refuse a deactivated key, check the permission, enforce the origin.

    `kind` says which buckets to count in; None if the request was counted before.

    Raises:
        ServiceError: AUTH_INVALID_TOKEN, RATE_LIMITED, AUTH_INSUFFICIENT_PERMISSIONS, in this order (D-03).
    """
    caller = await authenticate(services, token, prefetch)
    key = caller.key
    if key is not None and access.is_session:
        raise refused("invalid")
    request.actor = caller.scope
    origins.decide(services, request, key)
    if kind is not None:
        await services.limiter.by_caller(kind, None if key is None else key.id, caller.user_id, caller.plan.reads)
    if key is not None and key.hold is not None:
        if access.records_contact:
            await services.beats.add(Beat(key.id, services.clock.now()))
        raise deactivated(services, key.hold)
    access.require(caller)
    origins.enforce(request)
    return caller


def admit_key(services: Services, request: RequestInfo, key: KeyState, outdated: ServiceError | None = None) -> None:
    """Do the same for a key that proved itself by its secret or a refresh token; `outdated` refuses an old token.

    Raises:
        ServiceError: AUTH_INSUFFICIENT_PERMISSIONS for a deactivated key, `outdated`, and
            AUTH_INSUFFICIENT_PERMISSIONS for a page of another origin, in this order.
    """
    request.actor = f"key:{key.id}"
    origins.decide(services, request, key)
    if key.hold is not None:
        raise deactivated(services, key.hold)
    if outdated is not None:
        raise outdated
    origins.enforce(request)


async def authenticate(services: Services, token: str, prefetch: Prefetch | None = None) -> Caller:
    """Return the caller whose access token this is, with what was prefetched.

    A deactivated key is a caller too, with its hold in `caller.key`: `admit` refuses it later.

    Raises:
        ServiceError: AUTH_INVALID_TOKEN.
    """
    now = services.clock.now()
    try:
        claims = services.signer.read(token, "at+jwt", now)
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
    """Return the user whose token this is, unless the token was ended."""
    async with services.storage.read() as session:
        user, prefetched = await users.token_user(session, int(claims["sub"]), ids(claims), prefetch)
    if user is None or user.suspended_at is not None or user.epoch != claims["epoch"]:
        return None, ()
    return user, prefetched


async def live_key(
    services: Services, claims: ServiceClaims, prefetch: Prefetch | None = None
) -> tuple[KeyState | None, Sequence[Any]]:
    """Return the key whose token this is, unless the token was ended; a held key is returned at any epoch."""
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
    """Return the refusal of an ended token: after its signing key was removed, its claims cannot be trusted either."""
    await services.signing_keys.reload()
    return refused("revoked" if claims["kid"] in services.signer.keyring.access else "invalid")


async def note_use(services: Services, key: KeyState, now: int) -> None:
    """Write `last_used_at`, at most once a minute and after the response (D-24)."""
    async with services.storage.write() as session:
        await keys.set_last_used(session, key.id, now)


async def reach(services: Services, caller: Caller, name: str) -> Reached:
    """Return the location if the caller may use it; `name` must be canonical (D-20).

    Raises:
        ServiceError: AUTH_INSUFFICIENT_PERMISSIONS for a key and any location but its own, decided without a query;
            NOT_FOUND for a user and another user's location or an unknown one, which must look the same (D-19).
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
    """Return the same refusal for what does not exist and for what is another user's (D-19)."""
    return ServiceError(NOT_FOUND, f"You have no such {what}.")


async def own_key(services: Services, session: AsyncSession, caller: Caller | None, client_id: str) -> KeyState:
    """Return a live key of the caller, locked until the transaction ends; without a caller anyone's, for the operator.

    Raises:
        ServiceError: NOT_FOUND.
    """
    key = await keys.locked(session, client_id, None if caller is None else caller.user_id)
    if key is None or key.gone(services.clock.now()):
        raise missing("API key")
    return key
