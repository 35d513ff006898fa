"""Sign and verify our own tokens, on the service's own clock, with the key ring in memory."""

import hashlib
import sys
from collections.abc import Iterable, Mapping
from typing import Generic, Literal, TypeVar, cast, overload

import orjson

from profilesvc.contract.errors import SERVICE_UNAVAILABLE
from profilesvc.contract.json import JsonObject
from profilesvc.domain import signing_keys
from profilesvc.domain.entropy import Entropy
from profilesvc.domain.errors import ServiceError
from profilesvc.domain.signing_keys import Algorithm, KeyDates
from profilesvc.tokens.claims import AccessClaims, RefreshClaims, TokenType, check
from profilesvc.tokens.jose import b64, is_compact, unverified
from profilesvc.tokens.keys import HmacKey, RsaKey, SigningKey, public_jwk

Key = TypeVar("Key", RsaKey, HmacKey)
MAX_TOKEN_LENGTH = 8192
IAT_LEEWAY_SECONDS = 60
_CACHED_TOKENS = 1_000  # about one kilobyte each


class TokenRejected(Exception):
    """A token that is not accepted; `reason` is for the response, and `claims` are those of an expired one of ours."""

    def __init__(
        self, reason: Literal["malformed", "invalid", "expired"], claims: AccessClaims | RefreshClaims | None = None
    ) -> None:
        super().__init__(reason)
        self.reason, self.claims = reason, claims


def random_id(entropy: Entropy) -> str:
    """Return 128 random bits as 22 characters, to name a token (`jti`) or a family of them."""
    return b64(entropy.token_bytes(16))


class KeySet(Generic[Key]):
    """The keys of one algorithm that are announced, active or retired."""

    def __init__(self) -> None:
        self._keys: dict[str, Key] = {}
        self.dates: list[KeyDates] = []

    def replace(self, keys: list[tuple[KeyDates, Key]]) -> None:
        self._keys = {dates.kid: key for dates, key in keys}
        self.dates = signing_keys.in_order(dates for dates, _ in keys)

    def __contains__(self, kid: object) -> bool:
        return kid in self._keys

    def __getitem__(self, kid: str) -> Key:
        return self._keys[kid]

    def active(self, now: int) -> Key:
        """Return the key that signs now.

        Raises:
            ServiceError: SERVICE_UNAVAILABLE if there is none.
        """
        dates = signing_keys.active(self.dates, now)
        if dates is None:
            raise ServiceError(SERVICE_UNAVAILABLE, retry_after=1)
        return self._keys[dates.kid]


class Keyring:
    """The keys of access tokens and the keys of refresh tokens.

    A token is verified only with the keys of its type, so a key of one algorithm is never used for the other. Looking
    up a key touches no database, file or network, whatever `kid` a token names.
    """

    def __init__(self, keys: Iterable[tuple[KeyDates, SigningKey]] = ()) -> None:
        self.access: KeySet[RsaKey] = KeySet()
        self.refresh: KeySet[HmacKey] = KeySet()
        self.unreadable: set[str] = set()
        self.replace(keys)

    def replace(self, keys: Iterable[tuple[KeyDates, SigningKey]], stamp: str | None = None) -> None:
        """Replace all keys; `stamp` is that of the table when they were read."""
        pairs, self.stamp = list(keys), stamp
        self.access.replace([(dates, key) for dates, key in pairs if isinstance(key, RsaKey)])
        self.refresh.replace([(dates, key) for dates, key in pairs if isinstance(key, HmacKey)])

    def keys_of(self, alg: Algorithm) -> KeySet[RsaKey] | KeySet[HmacKey]:
        return self.access if alg == "RS256" else self.refresh

    @property
    def is_complete(self) -> bool:
        """Return whether there are keys of both algorithms, so that tokens can be issued."""
        return bool(self.access.dates and self.refresh.dates)

    def sealing_keys(self, now: int) -> list[bytes]:
        """Return the secrets of sealed strings. The last one seals, the others open older strings.

        They are derived from the HMAC keys, which all processes share and which the database stores encrypted.

        Raises:
            ServiceError: SERVICE_UNAVAILABLE if there is none.
        """
        newest = self.refresh.active(now)
        older = [self.refresh[dates.kid].sealing for dates in self.refresh.dates if dates.kid != newest.kid]
        return [*older, newest.sealing]

    def jwks(self) -> list[dict[str, str]]:
        """Return the public RSA keys, oldest first (RFC 7517)."""
        about = {"use": "sig", "alg": "RS256"}
        return [{**public_jwk(self.access[dates.kid].public), "kid": dates.kid, **about} for dates in self.access.dates]


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
                if len(self._verified) >= self._cache_size:
                    self._verified.clear()
                self._verified[digest] = claims
        if claims["kid"] not in self._keys(typ):  # the key was removed
            raise TokenRejected("invalid")
        if claims["exp"] * 1000 <= now:
            raise TokenRejected("expired", claims)
        latest = now // 1000 + IAT_LEEWAY_SECONDS
        if claims["iat"] > latest or claims.get("nbf", 0) > latest:
            raise TokenRejected("invalid")
        return claims

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
