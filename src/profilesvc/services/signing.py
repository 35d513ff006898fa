"""Issue and read RS256 tokens against the service's own clock (D-12, D-13); nothing trusts a token's own words."""

import hashlib
import re
import sys
from typing import Any, Literal

import jwt

from profilesvc.domain.keys import CLIENT_ID
from profilesvc.domain.world import Entropy
from profilesvc.services.jose import b64, is_compact, is_instant, signed, taken_apart
from profilesvc.services.keyring import Keyring

TokenType = Literal["at+jwt", "rt+jwt"]
MAX_TOKEN_LENGTH = 8192
IAT_LEEWAY_SECONDS = 60
_USER_ID = re.compile(r"[1-9][0-9]{0,18}\Z", re.ASCII)
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
        """Types and values of our own claim set; ValueError when one is off."""
        texts = ("sub", "jti", "scope", "client_id")
        numbers = ("exp", "iat", "epoch", *(("nbf",) if "nbf" in claims else ()))
        if claims.get("iss") != self.base_url or claims.get("aud") != self.audience(typ):
            raise ValueError("issuer or audience")
        if not all(isinstance(claims.get(name), str) for name in texts):
            raise ValueError("text claim")
        if not all(is_instant(claims.get(name)) for name in numbers):
            raise ValueError("number claim")
        if claims["scope"] not in {"service", "user"}:
            raise ValueError("scope")
        if typ == "rt+jwt" and not _is_family(claims):
            raise ValueError("refresh claims")
        if claims["scope"] == "service" and not _is_service_claims(claims):
            raise ValueError("service claims")
        if claims["scope"] == "user" and not (_USER_ID.match(claims["sub"]) and int(claims["sub"]) < 2**63):
            raise ValueError("user claims")


def _is_service_claims(claims: dict[str, Any]) -> bool:
    permissions = claims.get("permissions")
    return (
        claims["sub"] == claims["client_id"]
        and CLIENT_ID.match(claims["sub"]) is not None
        and isinstance(permissions, list)
        and all(isinstance(name, str) for name in permissions)
    )


def _is_family(claims: dict[str, Any]) -> bool:
    """A refresh token names its family, its generation in it, and when the family began."""
    fam, numbers = claims.get("fam"), [claims.get(name) for name in ("gen", "auth_time")]
    return isinstance(fam, str) and all(is_instant(number) for number in numbers)
