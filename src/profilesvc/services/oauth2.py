"""The standard OAuth endpoints: authenticate a client, introspect a token, revoke it (D-16)."""

from typing import Any

from profilesvc.contract.errors import AUTH_INVALID_TOKEN
from profilesvc.contract.oauth2 import Introspection
from profilesvc.domain.errors import ServiceError
from profilesvc.domain.permissions import ALL
from profilesvc.domain.request import current
from profilesvc.domain.world import SECOND
from profilesvc.services import access, tokens
from profilesvc.services.context import Caller, Services
from profilesvc.storage import families, keys, revocations
from profilesvc.tokens.signer import LONGEST_TOKEN, TokenRefused, TokenType

INACTIVE = Introspection(active=False)
# Used for a token that is not ours, so that it costs the same work as one that is not the caller's.
_NO_CLAIMS: dict[str, Any] = {"scope": "service", "client_id": "", "jti": "", "kid": ""}


async def authenticate_client(services: Services, client_id: str, client_secret: str) -> Caller:
    """Return the key with this id and secret.

    Raises:
        ServiceError: AUTH_INVALID_TOKEN; AUTH_INSUFFICIENT_PERMISSIONS for a deactivated key, with the three details,
            and for a page of another origin (D-30).
    """
    key = await tokens.verify_secret(services, client_id, client_secret)
    if key is None:
        raise ServiceError(AUTH_INVALID_TOKEN, "Invalid client credentials.")
    access.admit_key(services, current(), key)
    return Caller(key.user_id, services.plans.get(key.plan), frozenset(key.permissions.split()), key)


async def introspect(services: Services, caller: Caller, token: str) -> Introspection:
    """Return the state of a token, if it is the caller's own or of the caller's own key (RFC 7662)."""
    claims = _read(services, token)
    if not await _belongs(services, caller, claims):
        return INACTIVE
    scope = await _scope_now(services, claims)
    if scope is None:
        return INACTIVE
    told = {name: claims[name] for name in ("client_id", "exp", "iat", "sub", "aud", "iss", "jti")}
    return Introspection(
        active=True, scope=scope, token_type="refresh_token" if _is_refresh(services, claims) else "Bearer", **told
    )


async def revoke(services: Services, caller: Caller, token: str) -> None:
    """End a token of the caller; with a refresh token everything that came from the same grant (RFC 7009 §2.1).

    A token that is not the caller's, or no longer valid, stays as it is.
    """
    claims = _read(services, token)
    if not await _belongs(services, caller, claims):
        return
    now = services.clock.now()
    async with services.storage.write() as session:
        if _is_refresh(services, claims):
            await revocations.add(session, "family", claims["fam"], now, now + LONGEST_TOKEN)
        else:
            await revocations.add(session, "token", claims["jti"], now, claims["exp"] * SECOND)


def _read(services: Services, token: str) -> dict[str, Any]:
    """Return the claims of an access, user or refresh token that has not expired."""
    types: tuple[TokenType, ...] = ("at+jwt", "rt+jwt")
    for typ in types:
        try:
            return services.signer.read(token, typ, services.clock.now())
        except TokenRefused:
            continue
    return _NO_CLAIMS


def _is_refresh(services: Services, claims: dict[str, Any]) -> bool:
    return bool(claims["aud"] == services.signer.audience("rt+jwt"))


async def _belongs(services: Services, caller: Caller, claims: dict[str, Any]) -> bool:
    """Return whether a token is the caller's, decided before its state is read."""
    if claims["scope"] == "user":
        return caller.key is None and claims["sub"] == str(caller.user_id)
    if caller.key is not None:
        return bool(claims["client_id"] == caller.key.client_id)
    async with services.storage.read() as session:
        return await keys.own(session, claims["client_id"], caller.user_id) is not None


async def _scope_now(services: Services, claims: dict[str, Any]) -> str | None:
    """What a token may do now, by the same look-up as for a request with it; None when it is worth nothing."""
    if claims["scope"] == "user":
        return None if (await access.live_user(services, claims))[0] is None else " ".join(ALL)
    key, _ = await access.live_key(services, claims)
    if key is None or key.hold is not None:
        return None
    if _is_refresh(services, claims):
        async with services.storage.read() as session:
            family = await families.find(session, claims["fam"])
        if claims["gen"] != (0 if family is None else family.generation):
            return None  # exchanged before
    return " ".join(name for name in ALL if name in key.permissions.split() and name in claims["permissions"])
