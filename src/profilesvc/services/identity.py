"""Users who sign in at the identity provider: an ID token for a user token, once (D-15, RFC 8693)."""

from sqlalchemy.ext.asyncio import AsyncSession

from profilesvc.contract.errors import AUTH_INSUFFICIENT_PERMISSIONS, AUTH_INVALID_TOKEN, CONFLICT
from profilesvc.contract.tokens import TokenExchangeGrant, UserToken
from profilesvc.domain.errors import ServiceError, invalid
from profilesvc.domain.permissions import ALL
from profilesvc.domain.request import current
from profilesvc.domain.world import HOUR
from profilesvc.services import audit, origins, tokens, users
from profilesvc.services.context import Services
from profilesvc.storage import identities
from profilesvc.storage.users import UserState
from profilesvc.tokens.id_tokens import Identity
from profilesvc.tokens.signer import TokenRefused

_MESSAGES = {
    "malformed": "The subject_token is no ID token.",
    "invalid": "The ID token is not one that this service takes.",
    "expired": "The ID token is too old; sign in again.",
    "used": "The ID token was exchanged before; sign in again.",
    "suspended": "This user may not sign in.",
}


async def exchange(services: Services, body: TokenExchangeGrant) -> UserToken:
    """The token exchange grant: a user token for an ID token of the configured issuer.

    AUTH_INVALID_TOKEN for every fault of the ID token, with `details.reason` (D-04a); AUTH_INSUFFICIENT_PERMISSIONS
    for a login without a user and for a page that is no dashboard (D-31); SERVICE_UNAVAILABLE when the issuer's keys
    cannot be had; VALIDATION_ERROR where no issuer is configured.
    """
    if services.identity is None:
        raise invalid("body", "grant_type", "must be another grant: no identity provider is configured")
    now = services.clock.now()
    try:
        identity = await services.identity.read(body.subject_token, body.nonce, now)
    except TokenRefused as refusal:
        raise _refused(refusal.reason) from None
    request = current()
    origins.decide(services, request, None)  # the token is for a user, whatever client sends it
    origins.enforce(request)
    async with services.storage.write() as session:
        # Kept for an hour longer than the token is good for, as clocks of several processes differ.
        if not await identities.spend(session, identity.digest, identity.valid_until + HOUR, now):
            raise _refused("used")
        user = await _user(services, session, identity)
        if user.suspended_at is not None:
            raise _refused("suspended")
        request.actor = f"user:{user.id}"
        await audit.record(services, session, "user.login", user.id, issuer=identity.issuer)
    return UserToken(
        plan=user.plan,
        access_token=await tokens.sign_for_user(services, user),
        expires_in=services.settings.tokens.user_ttl_seconds,
        permissions=[name.value for name in ALL],
    )


def _refused(why: str) -> ServiceError:
    """The 401, with a word of D-04a: what is said of a token beyond `invalid` is said of a genuine one alone."""
    reason = "revoked" if why in {"used", "suspended"} else why
    return ServiceError(AUTH_INVALID_TOKEN, _MESSAGES[why], reason=reason)


async def _user(services: Services, session: AsyncSession, identity: Identity) -> UserState:
    """The user of the issuer's subject, never one found by e-mail (A036); made where that is configured."""
    user = await identities.user_of(session, identity.issuer, identity.subject)
    if user is not None:
        return user
    if not services.settings.identity.create_users:
        raise _unknown("Nobody here is linked to this login; ask the operator to link it.")
    try:
        user = await _created(services, session, identity)
    except ServiceError as refusal:
        # The same person's other first login may have been quicker by a moment.
        user = await identities.user_of(session, identity.issuer, identity.subject)
        if user is None:
            taken = refusal.kind is CONFLICT
            why = "its e-mail address belongs to another user" if taken else "its e-mail address cannot be used"
            raise _unknown(f"No user can be made of this login: {why}.") from None
    return user


async def _created(services: Services, session: AsyncSession, identity: Identity) -> UserState:
    """A new user of the login's claims. An address that the provider did not verify could be anyone's."""
    email, name = identity.claims.get("email"), identity.claims.get("name")
    if not isinstance(email, str) or identity.claims.get("email_verified") is not True:
        raise _unknown("No user can be made of this login: its e-mail address is not verified.")
    user = await users.insert_user(services, session, email, name if isinstance(name, str) else None)
    await identities.link(session, identity.issuer, identity.subject, user.id, services.clock.now())
    return user


def _unknown(message: str) -> ServiceError:
    return ServiceError(AUTH_INSUFFICIENT_PERMISSIONS, message)
