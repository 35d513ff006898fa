"""Exchange credentials and refresh tokens for tokens; mint user tokens for the operator."""

import base64
from typing import Any

from profilesvc.contract.errors import AUTH_INVALID_TOKEN, NOT_FOUND
from profilesvc.contract.tokens import ClientCredentialsGrant, RefreshGrant, Token
from profilesvc.domain.errors import ServiceError
from profilesvc.domain.keys import CLIENT_ID, secret_digest, secret_matches
from profilesvc.domain.permissions import grant
from profilesvc.domain.world import MINUTE, SECOND
from profilesvc.services.access import note_use
from profilesvc.services.context import Services, deactivated
from profilesvc.services.signing import TokenRefused
from profilesvc.storage import accounts, keys
from profilesvc.storage.keys import KeyState


def _bad_credentials() -> ServiceError:
    return ServiceError(AUTH_INVALID_TOKEN, "Invalid client credentials.")


def _bad_refresh_token(expired: bool = False) -> ServiceError:
    hint = " Use the client credentials grant." if expired else ""
    return ServiceError(AUTH_INVALID_TOKEN, f"Invalid or expired refresh token.{hint}")


async def verify_secret(services: Services, client_id: str, client_secret: str) -> KeyState | None:
    """The key whose id and secret these are, live or deactivated; None otherwise.

    An unknown id costs the same work as a wrong secret (D-21).
    """
    now = services.clock.now()
    key, digests = None, list[str]()
    if CLIENT_ID.match(client_id):
        async with services.storage.read() as session:
            key = await keys.state(session, client_id)
            if key is not None:
                digests = await keys.digests(session, key.id, now)
    unknown = secret_digest("", services.pepper)
    good = [secret_matches(client_secret, digest, services.pepper) for digest in digests or [unknown]]
    if key is None or not digests or not any(good) or key.ended(now):
        return None
    return key


async def client_credentials(services: Services, body: ClientCredentialsGrant) -> Token:
    """The client credentials grant (API document, Token).

    AUTH_INVALID_TOKEN; AUTH_INSUFFICIENT_PERMISSIONS for a deactivated key (told only with the right secret, D-28)
    or an empty granted set (D-18).
    """
    key = await verify_secret(services, body.client_id, body.client_secret)
    if key is None:
        raise _bad_credentials()
    if key.hold is not None:
        raise deactivated(services, key.hold)
    granted = grant(key.permissions.split(), body.permissions)
    return _issue(services, key, granted, {"fam": _random_id(services), "gen": 0})


async def refresh(services: Services, body: RefreshGrant) -> Token:
    """The refresh grant: a new pair with what the old one could do and the key still allows (D-10)."""
    now = services.clock.now()
    try:
        claims = services.signer.read(body.refresh_token, "rt+jwt", now)
    except TokenRefused as refusal:
        raise _bad_refresh_token(refusal.reason == "expired") from None
    async with services.storage.read() as session:
        key = await keys.state(session, claims["client_id"])
    if key is None or key.ended(now):
        raise _bad_refresh_token()
    await _check_client(services, body, key)
    if key.hold is not None:
        raise deactivated(services, key.hold)
    if key.epoch != claims["epoch"]:
        raise _bad_refresh_token()
    granted = grant(key.permissions.split(), claims["permissions"])
    return _issue(services, key, granted, {"fam": claims["fam"], "gen": claims["gen"] + 1})


async def _check_client(services: Services, body: RefreshGrant, key: KeyState) -> None:
    """Client id and secret are optional on a refresh, but must match when they are given (D-10)."""
    if body.client_id is not None and body.client_id != key.client_id:
        raise _bad_refresh_token()
    if body.client_secret is not None and await verify_secret(services, key.client_id, body.client_secret) is None:
        raise _bad_refresh_token()


def _random_id(services: Services) -> str:
    return base64.urlsafe_b64encode(services.entropy.token_bytes(16)).rstrip(b"=").decode()


def _issue(services: Services, key: KeyState, permissions: list[str], family: dict[str, Any]) -> Token:
    now, lifetimes = services.clock.now(), services.settings.tokens
    left = lifetimes.access_ttl_seconds if key.expires_at is None else (key.expires_at - now) // SECOND
    access_ttl, refresh_ttl = min(lifetimes.access_ttl_seconds, left), lifetimes.refresh_ttl_seconds
    if key.expires_at is not None:  # what dies with the key must not promise more (D-11)
        refresh_ttl = min(refresh_ttl, left)
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
    sign = services.signer.issue
    access = sign("at+jwt", {**claims, "jti": _random_id(services)}, now, access_ttl)
    refresh_token = sign("rt+jwt", {**claims, "jti": _random_id(services)}, now, refresh_ttl)
    if key.last_used_at is None or key.last_used_at < now - MINUTE:
        services.background.spawn(note_use(services, key, now))
    return Token.model_validate(
        {
            "scope": "service",
            "plan": key.plan,
            "access_token": access,
            "expires_in": access_ttl,
            "permissions": permissions,
            "refresh_token": refresh_token,
            "refresh_expires_in": refresh_ttl,
        }
    )


async def user_token(services: Services, email: str) -> str:
    """A user token for an operator to hand out (D-15). NOT_FOUND for an unknown or suspended user."""
    async with services.storage.read() as session:
        user = await accounts.user_by_email(session, email)
    if user is None or user.suspended_at is not None:
        raise ServiceError(NOT_FOUND, f"There is no active user {email}.")
    claims = {
        "sub": str(user.id),
        "client_id": "dashboard",
        "scope": "user",
        "epoch": user.epoch,
        "jti": _random_id(services),
    }
    now, ttl = services.clock.now(), services.settings.tokens.user_ttl_seconds
    return services.signer.issue("at+jwt", claims, now, ttl)
