"""Issue tokens for credentials and refresh tokens, and user tokens for the operator."""

from profilesvc.contract.errors import AUTH_INVALID_TOKEN, NOT_FOUND
from profilesvc.contract.tokens import AccessToken, ClientCredentialsGrant, RefreshGrant, Token
from profilesvc.domain.errors import ServiceError
from profilesvc.domain.keys import CLIENT_ID, secret_digest, secret_matches, spoilt_secret
from profilesvc.domain.permissions import grant
from profilesvc.domain.request import current_request
from profilesvc.services import rotation, sessions
from profilesvc.services.access import admit_key, ids, note_rejected, record_use
from profilesvc.services.audit import PendingEvents
from profilesvc.services.context import Services
from profilesvc.storage import keys, users
from profilesvc.storage.keys import KeyState
from profilesvc.tokens.signer import TokenRejected


def _bad_refresh_token(expired: bool = False) -> ServiceError:
    hint = " Use the client credentials grant." if expired else ""
    return ServiceError(AUTH_INVALID_TOKEN, f"Invalid or expired refresh token.{hint}")


async def verify_secret(services: Services, client_id: str, client_secret: str) -> KeyState | None:
    """Return the key with this id and secret, live or deactivated; None otherwise.

    An unknown id costs the same work as a wrong secret, so that timing does not reveal which ids exist (D-21). If there
    is a key, the keyring is reloaded if necessary, because most callers issue a token next.

    Raises:
        ServiceError: RATE_LIMITED (D-50).
    """
    now = services.clock.now()
    key, digests = None, list[str]()
    stamp = None
    if CLIENT_ID.match(client_id):
        async with services.storage.read() as session:
            key, digests, stamp = await keys.credentials(session, client_id, now)
    if key is not None:
        current_request().key = key.owner_id, key.id
    decoy = secret_digest("", services.pepper)
    matches = [secret_matches(client_secret, digest, services.pepper) for digest in digests or [decoy]]
    pending = services.part(PendingEvents)  # also for an unknown id, which must not be quicker
    if key is None or not digests or not any(matches) or not key.may_authenticate(now):
        await services.limiter.wrong_secret(client_id)
        if key is not None:
            current_request().rejected = "wrong_secret"
            pending.secret_failed(services, key)
        return None
    await services.limiter.by_client(client_id)  # only now, so that others cannot use up the limit of an id
    if stamp != services.signer.keyring.stamp:
        await services.signing_keys.reload()
    return key


async def authenticate(services: Services, client_id: str, client_secret: str) -> KeyState:
    """Return the key with this id and secret.

    Raises:
        ServiceError: AUTH_INVALID_TOKEN for wrong credentials; AUTH_INSUFFICIENT_PERMISSIONS for a deactivated key,
            with the three details, and for a page of another origin (D-30); RATE_LIMITED.
    """
    key = await verify_secret(services, client_id, client_secret)
    if key is None:
        raise ServiceError(AUTH_INVALID_TOKEN, f"Invalid client credentials.{spoilt_secret(client_secret)}")
    admit_key(services, current_request(), key)
    return key


async def client_credentials(services: Services, body: ClientCredentialsGrant) -> Token:
    """Run the client credentials grant and return an access token and a refresh token."""
    return await _token(services, *await _grant(services, body))


async def access_token(services: Services, body: ClientCredentialsGrant) -> AccessToken:
    """Run the client credentials grant without a refresh token (RFC 6749 §4.4.3)."""
    key, pair = await _grant(services, body)
    record_use(services, key)
    return AccessToken(
        scope="service",
        plan=key.plan,
        access_token=pair.access_token(services),
        expires_in=pair.access_ttl,
        permissions=pair.permissions,
    )


async def _grant(services: Services, body: ClientCredentialsGrant) -> tuple[KeyState, rotation.Pair]:
    """Return the key and its first pair of tokens."""
    key = await authenticate(services, body.client_id, body.client_secret)
    granted = grant(key.permissions.split(), body.permissions)
    services.part(PendingEvents).token_issued(services, key, granted)
    return key, rotation.first_pair(services, key, granted)


async def refresh(services: Services, body: RefreshGrant) -> Token:
    """Run the refresh grant: return the one successor of this token, with the permissions the key still allows (D-10).

    Raises:
        ServiceError: AUTH_INVALID_TOKEN, also for a token that was exchanged before, which ends its whole family unless
            that was within the grace period; AUTH_INSUFFICIENT_PERMISSIONS for a deactivated key, a page
            of another origin, or if no permission is left to grant.
    """
    now = services.clock.now()
    try:
        claims = services.signer.verify(body.refresh_token, "rt+jwt", now)
    except TokenRejected as error:
        note_rejected(error.claims)
        raise _bad_refresh_token(error.reason == "expired") from None
    note_rejected(claims)  # until it is admitted
    async with services.storage.read() as session:
        key = await keys.state(session, claims["client_id"], ids(claims))
    if key is None or not key.may_authenticate(now) or key.token_revoked:
        raise _bad_refresh_token()
    await _check_client(services, body, key)
    admit_key(services, current_request(), key, None if key.epoch == claims["epoch"] else _bad_refresh_token())
    granted = grant(key.permissions.split(), claims["permissions"])
    await services.signing_keys.reload()
    try:
        pair = await services.background.finish(rotation.exchange(services, key, claims, granted))
    except rotation.RefreshRejected:
        raise _bad_refresh_token() from None
    return await _token(services, key, pair)


async def _check_client(services: Services, body: RefreshGrant, key: KeyState) -> None:
    """Check the client id and secret: they are optional on a refresh, but must match if they are sent (D-10)."""
    if body.client_id is not None and body.client_id != key.client_id:
        raise _bad_refresh_token()
    if body.client_secret is None:
        await services.limiter.by_client(key.client_id)
    elif await verify_secret(services, key.client_id, body.client_secret) is None:
        if spoilt := spoilt_secret(body.client_secret):
            raise ServiceError(AUTH_INVALID_TOKEN, f"Invalid client credentials.{spoilt}")
        raise _bad_refresh_token()


async def _token(services: Services, key: KeyState, pair: rotation.Pair) -> Token:
    record_use(services, key)
    return Token(
        scope="service",
        plan=key.plan,
        access_token=pair.access_token(services),
        expires_in=pair.access_ttl,
        permissions=pair.permissions,
        refresh_token=pair.refresh_token(services),
        refresh_expires_in=pair.refresh_ttl,
    )


async def user_token(services: Services, email: str) -> str:
    """Return a user token that an operator can hand out.

    Raises:
        ServiceError: NOT_FOUND for an unknown or suspended user.
    """
    async with services.storage.write() as session:
        user = await users.user_by_email(session, email)
        if user is None or user.suspended_at is not None:
            raise ServiceError(NOT_FOUND, f"There is no active user {email}.")
        session_id = await sessions.start(services, session, user)
    return await sign_for_user(services, user, session_id)


async def sign_for_user(services: Services, user: users.UserState, session_id: str) -> str:
    """Return an access token of an active user. It ends when the user's epoch is raised."""
    seconds = services.settings.tokens.user_ttl_seconds
    return await sessions.sign(services, user.id, user.epoch, session_id, seconds)
