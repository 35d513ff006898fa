"""Authenticate callers, and check their permissions and which locations they may use."""

import contextlib
from dataclasses import dataclass

from sqlalchemy.ext.asyncio import AsyncSession

from profilesvc.contract.errors import AUTH_INVALID_TOKEN, NOT_FOUND, PLAN_RESTRICTION, Forbidden
from profilesvc.database.statements import Row
from profilesvc.domain.errors import ServiceError, forbidden
from profilesvc.domain.permissions import ALL, Permission
from profilesvc.domain.plans import Feature
from profilesvc.domain.request import RequestInfo, current_request
from profilesvc.domain.time import MINUTE
from profilesvc.limits.limiter import Kind
from profilesvc.services import origins, sessions
from profilesvc.services.context import AllowedLocation, Caller, Prefetch, Services, deactivated
from profilesvc.storage import keys, locations, users
from profilesvc.storage.heartbeats import Beat
from profilesvc.storage.keys import KeyState
from profilesvc.storage.revocations import TokenIds
from profilesvc.storage.users import TokenUser
from profilesvc.tokens.claims import AccessClaims, RefreshClaims, ServiceClaims, UserClaims
from profilesvc.tokens.signer import TokenRejected

_ALL_PERMISSIONS = frozenset(ALL)
_MESSAGES = {
    "missing": "Send an access token in the Authorization header.",
    "malformed": "The Authorization header must be `Bearer` and one access token.",
    "invalid": "The access token was not issued by this service.",
    "expired": "The access token has expired; get a new one.",
    "revoked": "The access token has been revoked; connect again with new credentials.",
}


@dataclass(frozen=True, slots=True)
class Access:
    """The kinds of token that an endpoint accepts, and the permission that a service token needs (D-17).

    With `is_session` a service token is as invalid as a token of another issuer. With `records_contact` the request of
    a deactivated key is recorded, because it shows that the site is running (D-28).
    """

    user: bool
    service: bool
    permission: Permission | None = None
    is_session: bool = False
    records_contact: bool = False

    @property
    def public(self) -> bool:
        """Return whether the endpoint reads no bearer token."""
        return not (self.user or self.service)

    def require(self, caller: Caller) -> None:
        """Reject the wrong kind of token, then a missing permission.

        Raises:
            ServiceError: AUTH_INSUFFICIENT_PERMISSIONS.
        """
        if caller.key is None:
            if not self.user:
                raise forbidden(Forbidden.SERVICE_TOKEN_REQUIRED, "Send a service token here, not a user token.")
            return
        if not self.service:
            raise forbidden(Forbidden.USER_TOKEN_REQUIRED, "Send a user token here, not a service token.")
        if self.permission is not None and self.permission not in caller.permissions:
            message = f"The token lacks the permission {self.permission}."
            raise forbidden(Forbidden.PERMISSION_MISSING, message, of_bearer=True, required=str(self.permission))


PUBLIC = Access(user=False, service=False)
USER = Access(user=True, service=False)
SESSION = Access(user=True, service=False, is_session=True)
HEARTBEAT = Access(user=False, service=True, records_contact=True)


def user_or_service(permission: Permission) -> Access:
    """Accept user tokens, and service tokens with the permission."""
    return Access(user=True, service=True, permission=permission)


def invalid_token(reason: str) -> ServiceError:
    """Return the error for a bearer token; its `details.reason` shows clients what to do next (D-04a)."""
    return ServiceError(AUTH_INVALID_TOKEN, _MESSAGES[reason], of_bearer=True, reason=reason)


async def admit(
    services: Services,
    request: RequestInfo,
    token: str,
    access: Access,
    kind: Kind | None,
    prefetch: Prefetch | None = None,
) -> Caller:
    """Authenticate the caller, count the request, and check the key's holds, the permission and the origin.

    `kind` selects the rate limit. It is None if the request was counted before.

    Raises:
        ServiceError: AUTH_INVALID_TOKEN, RATE_LIMITED, AUTH_INSUFFICIENT_PERMISSIONS, in this order (D-03).
    """
    caller = await authenticate(services, token, prefetch)
    key = caller.key
    if key is not None and access.is_session:
        raise invalid_token("invalid")
    _note_caller(services, request, caller.scope, key)
    if kind is not None:
        await services.limiter.by_caller(kind, None if key is None else key.id, caller.owner_id, caller.plan.reads)
    if key is not None and key.hold is not None:
        if access.records_contact:
            await services.beats.add(Beat(key.owner_id, key.id, services.clock.now()))
        raise deactivated(services, key.hold)
    access.require(caller)
    require_origin(request)
    if key is not None:
        record_use(services, key)
    return caller


def admit_key(services: Services, request: RequestInfo, key: KeyState, outdated: ServiceError | None = None) -> None:
    """Check the holds and the origin of a key that was authenticated by its secret or a refresh token.

    `outdated` is the error for a refresh token that is no longer valid.

    Raises:
        ServiceError: AUTH_INSUFFICIENT_PERMISSIONS for a deactivated key, `outdated`, and
            AUTH_INSUFFICIENT_PERMISSIONS for a page of another origin, in this order.
    """
    _note_caller(services, request, f"key:{key.id}", key)
    if key.hold is not None:
        raise deactivated(services, key.hold)
    if outdated is not None:
        raise outdated
    require_origin(request)


def _note_caller(services: Services, request: RequestInfo, scope: str, key: KeyState | None) -> None:
    """Store who is calling, and whether a page may read the response, so that it can read every later error (D-03)."""
    request.actor = scope
    if key is not None:
        request.key = key.owner_id, key.id
    if request.origin is not None:
        origins.decide(services, request, key)


def require_origin(request: RequestInfo) -> None:
    """Reject a page that may not read the response. A request without an Origin header is not from a page.

    Raises:
        ServiceError: AUTH_INSUFFICIENT_PERMISSIONS.
    """
    if request.origin_header is not None and not request.may_read:
        raise forbidden(
            Forbidden.ORIGIN_NOT_ALLOWED,
            "These credentials may not be used from this origin. For an API key, add the domain to its "
            "`allowed_domains`.",
        )


async def authenticate(services: Services, token: str, prefetch: Prefetch | None = None) -> Caller:
    """Return the caller of an access token, with the prefetched rows.

    A deactivated key is returned with its hold in `caller.key`; `admit` rejects it later.

    Raises:
        ServiceError: AUTH_INVALID_TOKEN.
    """
    now = services.clock.now()
    try:
        claims = services.signer.verify(token, "at+jwt", now)
    except TokenRejected as error:
        note_rejected(error.claims)
        raise invalid_token(error.reason) from None
    if prefetch is not None and prefetch.location != claims.get("location"):
        prefetch = None
    if claims["scope"] == "user":
        user, used_at, prefetched = await live_user(services, claims, prefetch)
        if user is None:
            raise await _ended(services, claims)
        sessions.record_use(services, claims, used_at)
        return Caller(user.id, services.plans[user.plan], _ALL_PERMISSIONS, prefetched=prefetched)
    key, prefetched = await live_key(services, claims, prefetch)
    if key is None:
        raise await _ended(services, claims)
    granted = frozenset(key.permissions.split()).intersection(claims["permissions"])
    return Caller(key.owner_id, services.plans[key.plan], granted, key, prefetched)


def ids(claims: AccessClaims) -> TokenIds:
    """Return the ids by which a token can be revoked: its own, that of its family, that of its signing key."""
    family = claims["fam"] if claims["scope"] == "service" else ""
    return {"jti": claims["jti"], "fam": family, "kid": claims["kid"]}


async def live_user(services: Services, claims: UserClaims, prefetch: Prefetch | None = None) -> TokenUser:
    """Return the user of a token, or None in its place if the token is no longer valid."""
    async with services.storage.read() as session:
        state = await users.token_user(session, int(claims["sub"]), ids(claims), prefetch)
    user = state.user
    if user is None or user.suspended_at is not None or user.epoch != claims["epoch"]:
        return TokenUser(None)
    return state


async def live_key(
    services: Services, claims: ServiceClaims, prefetch: Prefetch | None = None
) -> tuple[KeyState | None, Row]:
    """Return the key of a token, or None if the token is no longer valid. A held key is returned at any epoch."""
    async with services.storage.read() as session:
        key, prefetched = await keys.token_key(session, claims["client_id"], ids(claims), prefetch)
    if key is None or not key.may_authenticate(services.clock.now()) or key.token_revoked:
        return None, ()
    if key.hold is None and key.epoch != claims["epoch"]:
        return None, ()
    return key, prefetched


async def _ended(services: Services, claims: AccessClaims) -> ServiceError:
    """Return the error for an ended token. If its signing key was removed, its claims may be forged: `invalid`."""
    await services.signing_keys.reload()
    if claims["kid"] not in services.signer.keyring.access:
        return invalid_token("invalid")
    note_rejected(claims)
    return invalid_token("revoked")


def note_rejected(claims: AccessClaims | RefreshClaims | None) -> None:
    """Note the key of a token of ours that is not valid any more, for its owner's log."""
    if claims is not None and claims["scope"] == "service":
        current_request().key = keys.owner_of(claims["client_id"]), claims["client_id"]


def note_bearer(services: Services, token: str) -> None:
    """Note the key of a token, for a request that was rejected before its caller was authenticated."""
    with contextlib.suppress(TokenRejected):
        note_rejected(services.signer.verify(token, "at+jwt", services.clock.now()))


def record_use(services: Services, key: KeyState) -> None:
    """Store when a key was last used, in a task and at most once a minute (D-24)."""
    now = services.clock.now()
    if key.last_used_at is None or key.last_used_at < now - MINUTE:
        services.background.spawn(_store_use(services, key, now))


async def _store_use(services: Services, key: KeyState, now: int) -> None:
    async with services.storage.write() as session:
        await keys.set_last_used(session, key.owner_id, key.id, now)


async def require_location(services: Services, caller: Caller, name: str) -> AllowedLocation:
    """Return a location that the caller may use; `name` must be canonical (D-20).

    Raises:
        ServiceError: AUTH_INSUFFICIENT_PERMISSIONS if a key names another location than its own; this needs no query.
            NOT_FOUND if a user names an unknown location or another user's, which must look the same.
    """
    if caller.key is not None:
        if caller.key.location_name != name:
            raise forbidden(Forbidden.OTHER_LOCATION, "The key is bound to another location.")
        key = caller.key
        return AllowedLocation(name, caller.owner_id, caller.plan, key.account, key.connection_id, key.id)
    async with services.storage.read() as session:
        place = await locations.place_of(session, caller.owner_id, name)
    if place is None:
        raise missing("location")
    return AllowedLocation(name, caller.owner_id, caller.plan, *place)


def require_plan(owner: AllowedLocation | Caller, feature: Feature) -> None:
    """Reject a request for a feature that is not in the plan of a caller, or of a location's owner (D-80, D-90).

    Raises:
        ServiceError: PLAN_RESTRICTION.
    """
    if not getattr(owner.plan, feature):
        raise ServiceError(PLAN_RESTRICTION, f"The plan {owner.plan.display_name} does not include {feature}.")


def missing(what: str) -> ServiceError:
    """Return the error for a missing resource and for another user's, which must look the same (D-19)."""
    return ServiceError(NOT_FOUND, f"There is no such {what}.")


async def own_key(services: Services, session: AsyncSession, caller: Caller | None, client_id: str) -> KeyState:
    """Return a live key of the caller, locked until the transaction ends. The operator (None) may use every key.

    Raises:
        ServiceError: NOT_FOUND.
    """
    key = await keys.locked(session, client_id, None if caller is None else caller.owner_id)
    if key is None or not key.is_live(services.clock.now()):
        raise missing("API key")
    return key
