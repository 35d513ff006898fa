"""Issue and read RS256 tokens against the service's own clock (D-12, D-13); nothing trusts a token's own words."""

import hashlib
import re
import sys
from collections.abc import Callable
from typing import Any, Literal

import jwt

from profilesvc.contract.common import LOCATION_ID
from profilesvc.domain.keys import CLIENT_ID
from profilesvc.domain.permissions import ALL
from profilesvc.domain.world import DAY, SECOND, Entropy
from profilesvc.tokens.jose import b64, is_compact, is_instant, signed, taken_apart
from profilesvc.tokens.keyring import Keyring

TokenType = Literal["at+jwt", "rt+jwt"]
MAX_TOKEN_LENGTH = 8192
IAT_LEEWAY_SECONDS = 60
LONGEST_TOKEN = 366 * DAY  # beyond what the settings allow for any token: a revocation outlives what it revokes
DASHBOARD = "dashboard"  # the client of every user token
_USER_ID = re.compile(r"[1-9][0-9]{0,18}\Z", re.ASCII)
_RANDOM_ID = re.compile(r"[A-Za-z0-9_-]{21}[AQgw]", re.ASCII)  # what `random_id` makes
_JWS = jwt.PyJWS(algorithms=["RS256"])
_REMEMBERED_TOKENS = 1_000  # a kilobyte each: more would show in the memory of a process


class TokenRefused(Exception):
    """A token that is not accepted; `reason` is a word of D-04a."""

    def __init__(self, reason: Literal["malformed", "invalid", "expired"]) -> None:
        super().__init__(reason)
        self.reason = reason


def random_id(entropy: Entropy) -> str:
    """128 random bits as 22 characters: names a token (`jti`) or a family of them."""
    return b64(entropy.token_bytes(16))


class Signer:
    """Signs with the active key of a ring, verifies with any of it; `base_url` is issuer and audience, exactly."""

    def __init__(self, keyring: Keyring, base_url: str, remembered: int = _REMEMBERED_TOKENS) -> None:
        self.keyring = keyring
        self._remembered = remembered
        self.base_url = base_url
        self._verified: dict[bytes, dict[str, Any]] = {}

    def audience(self, typ: TokenType) -> str:
        """Who a token is for: the API, or for refresh tokens the token route alone (D-12)."""
        return self.base_url if typ == "at+jwt" else f"{self.base_url}/api/v1/auth/token"

    def issue(self, typ: TokenType, claims: dict[str, Any], now: int, ttl_seconds: int, kid: str | None = None) -> str:
        """A signed token; issuer, audience and times are added here. `now` in milliseconds.

        With a `kid` that key signs: the same claims, time and key give the same bytes. KeyError when it was removed.
        """
        key = self.keyring.active(now) if kid is None else self.keyring[kid]
        issued = now // 1000
        payload = {
            "iss": self.base_url,
            "aud": self.audience(typ),
            "iat": issued,
            "exp": issued + ttl_seconds,
            **claims,
        }
        return signed(typ, key.kid, payload, key.private)

    def read(self, token: str, typ: TokenType, now: int) -> dict[str, Any]:
        """The claims of a token of ours that is good now; raises TokenRefused and nothing else.

        A verified access token is remembered by its digest: signatures are worth caching because the caller's state
        is read from the database on every request all the same (D-14). A refresh token comes once.
        """
        digest = hashlib.sha256(token.encode(errors="replace")).digest() + typ.encode()
        claims = self._verified.get(digest)
        if claims is None:
            if not is_compact(token, MAX_TOKEN_LENGTH):
                raise TokenRefused("malformed")
            claims = self._verify(token, typ)
            if typ == "at+jwt":
                self._remember(digest, claims)
        if claims["kid"] not in self.keyring:  # removed since
            raise TokenRefused("invalid")
        if claims["exp"] * 1000 <= now:
            raise TokenRefused("expired")
        if claims["iat"] > now // 1000 + IAT_LEEWAY_SECONDS or claims.get("nbf", 0) > now // 1000 + IAT_LEEWAY_SECONDS:
            raise TokenRefused("invalid")
        return claims

    def _remember(self, digest: bytes, claims: dict[str, Any]) -> None:
        if len(self._verified) >= self._remembered:
            self._verified.clear()
        self._verified[digest] = claims

    def _verify(self, token: str, typ: TokenType) -> dict[str, Any]:
        try:
            header, claims = taken_apart(token)
            key = self.keyring[header["kid"]]
            if header != {"alg": "RS256", "typ": typ, "kid": key.kid}:
                raise ValueError("header")
            _JWS.decode(token, key.public, algorithms=["RS256"])
            self._check(claims, typ)
            claims = {sys.intern(name): value for name, value in claims.items()}  # many are remembered: one text a name
            claims["kid"] = key.kid  # no claim of ours: which key signed, for those who look up revocations
        except Exception as error:  # whatever an attacker makes a parser raise is the same refusal
            raise TokenRefused("invalid") from error
        return claims

    def _check(self, claims: dict[str, Any], typ: TokenType) -> None:
        """Raise an error unless these are claims that the service itself would have issued for this type."""
        if claims.get("iss") != self.base_url or claims.get("aud") != self.audience(typ):
            raise ValueError("issuer or audience")
        for name in claims.keys() & _GRAMMAR.keys():
            if not _GRAMMAR[name](claims[name]):
                raise ValueError(name)
        if not claims.keys() >= _NEEDED[claims["scope"]]:
            raise ValueError("missing claim")
        if typ == "rt+jwt" and claims["scope"] == "user":
            raise ValueError("scope")
        if not 0 <= claims["exp"] - claims["iat"] <= LONGEST_TOKEN // SECOND:
            raise ValueError("lifetime")
        if not _names_subject(claims):
            raise ValueError("subject")


def _is_text(pattern: re.Pattern[str]) -> Callable[[object], bool]:
    return lambda value: isinstance(value, str) and pattern.fullmatch(value) is not None


def _is_permissions(value: object) -> bool:
    return isinstance(value, list) and bool(value) and value == [name for name in ALL if name in value]


def _names_subject(claims: dict[str, Any]) -> bool:
    """Whether `sub` and `client_id` name a key, or a user of the dashboard."""
    if claims["scope"] == "service":
        return claims["sub"] == claims["client_id"] and CLIENT_ID.match(claims["sub"]) is not None
    is_user = _USER_ID.match(claims["sub"]) is not None and int(claims["sub"]) < 2**63
    return is_user and claims["client_id"] == DASHBOARD


# The type and form of every claim that is read after the signature was verified, in any token. The signature proves
# where a token comes from, and not that this code may pass what it holds to a database.
_GRAMMAR: dict[str, Callable[[object], bool]] = {
    "sub": lambda value: isinstance(value, str),
    "client_id": lambda value: isinstance(value, str),
    "scope": lambda value: isinstance(value, str) and value in {"service", "user"},
    "jti": _is_text(_RANDOM_ID),
    "fam": _is_text(_RANDOM_ID),
    "location": _is_text(re.compile(f"locations/{LOCATION_ID.pattern}", re.ASCII)),
    "permissions": _is_permissions,
    **dict.fromkeys(("exp", "iat", "nbf", "epoch", "gen", "auth_time", "business_id"), is_instant),
}
_OF_ANYONE = {"sub", "client_id", "scope", "jti", "exp", "iat", "epoch"}
_NEEDED = {
    "service": _OF_ANYONE | {"permissions", "location", "business_id", "fam", "gen", "auth_time"},
    "user": _OF_ANYONE,
}
