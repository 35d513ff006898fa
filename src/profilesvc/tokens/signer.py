"""Sign and verify our own tokens, on the service's own clock."""

import hashlib
import sys
from collections.abc import Mapping
from typing import Literal, cast, overload

import orjson

from profilesvc.contract.json import JsonObject
from profilesvc.domain.entropy import Entropy
from profilesvc.tokens.claims import AccessClaims, RefreshClaims, TokenType, check
from profilesvc.tokens.jose import b64, is_compact, unverified
from profilesvc.tokens.keyring import HmacKey, Keyring, KeySet, RsaKey

MAX_TOKEN_LENGTH = 8192
IAT_LEEWAY_SECONDS = 60
_CACHED_TOKENS = 1_000  # about one kilobyte each


class TokenRejected(Exception):
    """A token that is not accepted; `reason` becomes `details.reason` of the response."""

    def __init__(self, reason: Literal["malformed", "invalid", "expired"]) -> None:
        super().__init__(reason)
        self.reason = reason


def random_id(entropy: Entropy) -> str:
    """Return 128 random bits as 22 characters, to name a token (`jti`) or a family of them."""
    return b64(entropy.token_bytes(16))


class Signer:
    """The issuer and verifier of our tokens; `base_url` is their issuer and audience.

    Access tokens use RSA (RS256), so that others can verify them with the published keys. Refresh tokens use HMAC
    (HS256), because only the service reads them and RSA is a hundred times slower. The type of a token
    decides which keys and algorithm verify it; the token's header does not.
    """

    def __init__(self, keyring: Keyring, base_url: str, cache_size: int = _CACHED_TOKENS) -> None:
        self.keyring = keyring
        self._cache_size = cache_size
        self.base_url = base_url
        self._verified: dict[bytes, AccessClaims] = {}

    def audience(self, typ: TokenType) -> str:
        """Return the audience of a token: the API, or the token endpoint for a refresh token."""
        return self.base_url if typ == "at+jwt" else f"{self.base_url}/api/v1/auth/token"

    def _keys(self, typ: TokenType) -> KeySet[RsaKey] | KeySet[HmacKey]:
        return self.keyring.access if typ == "at+jwt" else self.keyring.refresh

    def issue(
        self, typ: TokenType, claims: Mapping[str, object], now: int, ttl_seconds: int, kid: str | None = None
    ) -> str:
        """Return a signed token with these claims, issuer, audience and times; `now` in milliseconds.

        The key with this `kid` signs, by default the active one. The same claims, time and key give the same bytes.

        Raises:
            KeyError: The key was removed.
        """
        keys, issued = self._keys(typ), now // 1000
        key = keys.active(now) if kid is None else keys[kid]
        about = {"iss": self.base_url, "aud": self.audience(typ), "iat": issued, "exp": issued + ttl_seconds}
        return key.sign(typ, orjson.dumps(about | dict(claims)))

    @overload
    def verify(self, token: str, typ: Literal["at+jwt"], now: int) -> AccessClaims: ...
    @overload
    def verify(self, token: str, typ: Literal["rt+jwt"], now: int) -> RefreshClaims: ...

    def verify(self, token: str, typ: TokenType, now: int) -> AccessClaims | RefreshClaims:
        """Return the claims of a token of ours that is valid now.

        Verified access tokens are cached by digest. That is safe because the caller's state is still read from the
        database on every request. Refresh tokens are not cached, because each is used once.

        Raises:
            TokenRejected: The token is not accepted.
        """
        digest = hashlib.sha256(token.encode(errors="replace")).digest() + typ.encode()
        claims = self._verified.get(digest)
        if claims is None:
            if not is_compact(token, MAX_TOKEN_LENGTH):
                raise TokenRejected("malformed")
            claims = self._verify_signature(token, typ)
            if typ == "at+jwt":
                self._cache(digest, claims)
        if claims["kid"] not in self._keys(typ):  # the key was removed
            raise TokenRejected("invalid")
        if claims["exp"] * 1000 <= now:
            raise TokenRejected("expired")
        latest = now // 1000 + IAT_LEEWAY_SECONDS
        if claims["iat"] > latest or claims.get("nbf", 0) > latest:
            raise TokenRejected("invalid")
        return claims

    def _cache(self, digest: bytes, claims: AccessClaims) -> None:
        if len(self._verified) >= self._cache_size:
            self._verified.clear()
        self._verified[digest] = claims

    def _verify_signature(self, token: str, typ: TokenType) -> AccessClaims:
        try:
            header, claims = unverified(token)
            key = self._keys(typ)[header["kid"]]
            if header != {"alg": key.alg, "typ": typ, "kid": key.kid}:
                raise ValueError("header")
            key.verify(token)
            check(claims, typ, self.base_url, self.audience(typ))
        except Exception as error:  # a forged token may cause any error in a parser
            raise TokenRejected("invalid") from error
        # Many claims are cached, so they share one string per name.
        interned: JsonObject = {sys.intern(name): value for name, value in claims.items()}
        return cast(AccessClaims, {**interned, "kid": key.kid})
