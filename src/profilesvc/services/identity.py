"""Sign users in: exchange an ID token of the identity provider for a user token, once (RFC 8693)."""

import logging

from sqlalchemy.ext.asyncio import AsyncSession

from profilesvc.contract.errors import AUTH_INVALID_TOKEN, CONFLICT, Forbidden
from profilesvc.contract.tokens import TokenExchangeGrant, UserToken
from profilesvc.domain.errors import ServiceError, forbidden, invalid
from profilesvc.domain.permissions import ALL
from profilesvc.domain.request import current_request
from profilesvc.domain.time import HOUR
from profilesvc.services import audit, origins, sessions, tokens, users
from profilesvc.services.access import require_origin
from profilesvc.services.context import Services
from profilesvc.storage import identities
from profilesvc.storage.users import UserState
from profilesvc.tokens.id_tokens import Identity
from profilesvc.tokens.signer import TokenRejected

log = logging.getLogger("profilesvc")
_MESSAGES = {
    "malformed": "The subject_token is not an ID token.",
    "invalid": "The ID token is not valid for this service.",
    "expired": "The ID token is too old; sign in again.",
    "used": "The ID token has already been used; sign in again.",
    "suspended": "This user may not sign in.",
}

_UNUSABLE = "its e-mail address or its name cannot be used"


async def exchange(services: Services, body: TokenExchangeGrant, user_agent: str = "") -> UserToken:
    """Run the token exchange grant: return a user token for an ID token of the configured issuer.

    `user_agent` is that of the client, for the user's list of sessions.

    Raises:
        ServiceError: AUTH_INVALID_TOKEN if the ID token is not accepted, with `details.reason` (D-04a);
            AUTH_INSUFFICIENT_PERMISSIONS for a login without a user, and for a page of another origin than the
            dashboard; SERVICE_UNAVAILABLE if the issuer's keys cannot be read; VALIDATION_ERROR if no issuer is
            configured.
    """
    if services.identity is None:
        raise invalid(
            "body", "grant_type", "must not be the token exchange, because no identity provider is configured"
        )
    now = services.clock.now()
    try:
        identity = await services.identity.verify(body.subject_token, body.nonce, now)
    except TokenRejected as error:
        raise _rejection(error.reason) from None
    request = current_request()
    origins.decide(services, request, None)  # the token is a user's, whatever client sends it
    require_origin(request)
    user, session_id = await services.background.finish(_start_session(services, identity, user_agent))
    return UserToken(
        plan=user.plan,
        access_token=await tokens.sign_for_user(services, user, session_id),
        expires_in=services.settings.tokens.user_ttl_seconds,
        permissions=[name.value for name in ALL],
    )


async def _start_session(services: Services, identity: Identity, user_agent: str) -> tuple[UserState, str]:
    """Use up an ID token, and return the user and the id of the new session."""
    async with services.storage.write() as session:
        # Stored for an hour longer than the token is valid, because the clocks of processes differ.
        if not await identities.mark_used(session, identity.digest, identity.valid_until + HOUR):
            raise _rejection("used")
        user = await _user(services, session, identity)
        if user.suspended_at is not None:
            raise _rejection("suspended")
        current_request().actor = f"user:{user.id}"
        await audit.record(services, session, "user.login", user.id, issuer=identity.issuer)
        return user, await sessions.start(services, session, user, user_agent)


def _rejection(cause: str) -> ServiceError:
    """Return the error for an ID token. A used token and that of a suspended user are `revoked` for clients."""
    reason = "revoked" if cause in {"used", "suspended"} else cause
    return ServiceError(AUTH_INVALID_TOKEN, _MESSAGES[cause], reason=reason)


async def _user(services: Services, session: AsyncSession, identity: Identity) -> UserState:
    """Return the user of the login, by its subject only, because e-mail addresses do not identify users (A036)."""
    user = await identities.user_of(session, identity.issuer, identity.subject)
    if user is not None:
        return user
    if not services.settings.identity.create_users:
        log.warning("no user is linked to the subject %r of %s", identity.subject, identity.issuer)
        raise _no_user("No user is linked to this login. Ask the operator to link it.")
    try:
        user = await _create(services, session, identity)
    except ServiceError as error:
        # A simultaneous login of the same person may have created the user.
        user = await identities.user_of(session, identity.issuer, identity.subject)
        if user is None:
            is_taken = error.kind is CONFLICT
            cause = "its e-mail address belongs to another user" if is_taken else _UNUSABLE
            raise _no_user(f"No user can be created for this login: {cause}.") from None
    return user


async def _create(services: Services, session: AsyncSession, identity: Identity) -> UserState:
    """Create a user from the login's claims. An unverified address may be someone else's, so it is rejected."""
    email, name = identity.claims.get("email"), identity.claims.get("name")
    if not isinstance(email, str) or identity.claims.get("email_verified") is not True:
        raise _no_user("No user can be created for this login: its e-mail address is not verified.")
    name = name if isinstance(name, str) and not users.is_blank(name) else None  # some providers send an empty one
    user = await users.insert_user(services, session, email, name)
    await identities.link(session, identity.issuer, identity.subject, user.id, services.clock.now())
    return user


def _no_user(message: str) -> ServiceError:
    return forbidden(Forbidden.NO_USER, message)
