"""Client authentication, introspection and revocation at the OAuth endpoints (D-16)."""

import contextlib

from profilesvc.contract.oauth2 import Introspection
from profilesvc.domain.permissions import ALL
from profilesvc.domain.time import SECOND
from profilesvc.services import access, tokens
from profilesvc.services.context import Caller, Services
from profilesvc.storage import families, keys, revocations
from profilesvc.tokens.claims import LONGEST_TOKEN, AccessClaims, ServiceClaims
from profilesvc.tokens.signer import TokenRejected

INACTIVE = Introspection(active=False)
# A token that is not ours is handled like one of another client, so that timing does not tell them apart.
_NO_CLAIMS: ServiceClaims = {
    "iss": "",
    "aud": "",
    "iat": 0,
    "exp": 0,
    "jti": "",
    "kid": "",
    "sub": "",
    "client_id": "",
    "scope": "service",
    "permissions": [],
    "location": "",
    "business_id": 0,
    "epoch": 0,
    "fam": "",
    "gen": 0,
    "auth_time": 0,
}


async def authenticate_client(services: Services, client_id: str, client_secret: str) -> Caller:
    """Return the caller with this id and secret, or raise an error of `tokens.authenticate`."""
    key = await tokens.authenticate(services, client_id, client_secret)
    return Caller(key.owner_id, services.plans[key.plan], frozenset(key.permissions.split()), key)


async def introspect(services: Services, caller: Caller, token: str) -> Introspection:
    """Return the state of a token now, if it is the caller's own or belongs to the caller's own key (RFC 7662)."""
    claims = _claims_of(services, token)
    if not await _belongs(services, caller, claims):
        return INACTIVE
    scope = await _current_scope(services, claims)
    if scope is None:
        return INACTIVE
    return Introspection(
        active=True,
        scope=scope,
        token_type="refresh_token" if _is_refresh(services, claims) else "Bearer",
        client_id=claims["client_id"],
        exp=claims["exp"],
        iat=claims["iat"],
        sub=claims["sub"],
        aud=claims["aud"],
        iss=claims["iss"],
        jti=claims["jti"],
    )


async def revoke(services: Services, caller: Caller, token: str) -> None:
    """End a token of the caller. A refresh token ends all tokens of the same grant (RFC 7009 §2.1).

    A token that is another caller's or not valid has no effect.
    """
    claims = _claims_of(services, token)
    if not await _belongs(services, caller, claims):
        return
    now = services.clock.now()
    async with services.storage.write() as session:
        if claims["scope"] == "service" and _is_refresh(services, claims):
            await revocations.add(session, caller.owner_id, "family", claims["fam"], now, now + LONGEST_TOKEN)
        else:
            await revocations.add(session, caller.owner_id, "token", claims["jti"], now, claims["exp"] * SECOND)


def _claims_of(services: Services, token: str) -> AccessClaims:
    """Return the claims of an access token or refresh token, `_NO_CLAIMS` if it is not valid."""
    now = services.clock.now()
    with contextlib.suppress(TokenRejected):
        return services.signer.verify(token, "at+jwt", now)
    with contextlib.suppress(TokenRejected):
        return services.signer.verify(token, "rt+jwt", now)
    return _NO_CLAIMS


def _is_refresh(services: Services, claims: AccessClaims) -> bool:
    return claims["aud"] == services.signer.audience("rt+jwt")


async def _belongs(services: Services, caller: Caller, claims: AccessClaims) -> bool:
    """Return whether a token is the caller's. This is checked before its state is read."""
    if claims["scope"] == "user":
        return caller.key is None and claims["sub"] == str(caller.owner_id)
    if caller.key is not None:
        return claims["client_id"] == caller.key.client_id
    async with services.storage.read() as session:
        return await keys.own(session, claims["client_id"], caller.owner_id) is not None


async def _current_scope(services: Services, claims: AccessClaims) -> str | None:
    """Return the scope that a request with this token would have now, or None if the token is not valid."""
    if claims["scope"] == "user":
        return None if (await access.live_user(services, claims)).user is None else " ".join(ALL)
    key, _ = await access.live_key(services, claims)
    if key is None or key.hold is not None:
        return None
    if _is_refresh(services, claims):
        async with services.storage.read() as session:
            family = await families.find(session, key.owner_id, claims["fam"])
        if claims["gen"] != (0 if family is None else family.generation):
            return None  # exchanged before
    return " ".join(name for name in ALL if name in key.permissions.split() and name in claims["permissions"])
