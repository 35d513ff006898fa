"""Read ID tokens of the configured issuer, on the service's own clock (OpenID Connect Core §3.1.3.7)."""

import hashlib
import logging
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol, TypedDict, cast

import jwt
from cryptography.hazmat.primitives.asymmetric import ec, ed448, ed25519, rsa

from profilesvc.contract.json import JsonObject
from profilesvc.tokens.jose import is_compact, is_instant, unverified
from profilesvc.tokens.signer import IAT_LEEWAY_SECONDS, TokenRejected

PublicKey = rsa.RSAPublicKey | ec.EllipticCurvePublicKey | ed25519.Ed25519PublicKey | ed448.Ed448PublicKey
MAX_LENGTH = 16_384  # a provider may include a user's groups
MAX_AGE_SECONDS = 600
_SUBJECT_LIMIT = 255
_KID_LIMIT = 255
# Any other header field is rejected, because the key comes from the configuration and never from the token.
_HEADER = {"alg", "typ", "kid", "x5t", "x5t#S256"}
log = logging.getLogger("profilesvc")


class KeySource(Protocol):
    """The public keys of an issuer."""

    async def find(self, kid: str | None, alg: str) -> PublicKey | None:
        """Return the key with this id for an algorithm; without an id, the only key that fits.

        Raises:
            ServiceError: SERVICE_UNAVAILABLE if the keys cannot be read.
        """


async def signed_claims(
    token: str, limit: int, check: Callable[[JsonObject, JsonObject], None], keys: KeySource
) -> JsonObject:
    """Return the claims of a token of at most `limit` characters that an issuer has signed.

    `check` gets header and claims before the signature is verified, and raises ValueError for a token that is not
    accepted. It must check the algorithm.

    Raises:
        TokenRejected: The token is not accepted.
        ServiceError: SERVICE_UNAVAILABLE if the issuer's keys cannot be read.
    """
    if not is_compact(token, limit):
        raise TokenRejected("malformed")
    try:
        header, claims = unverified(token)
        check(header, claims)
    except Exception as error:  # a forged token may cause any error in a parser
        raise TokenRejected("invalid") from error
    key, alg = await keys.find(header.get("kid"), header["alg"]), header["alg"]
    try:
        if key is None:
            raise ValueError("no such key")
        jwt.PyJWS(algorithms=[alg]).decode(token, key, algorithms=[alg])
    except Exception as error:
        raise TokenRejected("invalid") from error
    return claims


class IdClaims(TypedDict, total=False):
    """The claims of an ID token. Those typed `object` are not checked here."""

    iss: str
    sub: str
    aud: str | list[str]
    azp: str
    exp: int
    iat: int
    nbf: int
    nonce: str
    email: object
    email_verified: object
    name: object


@dataclass(frozen=True, slots=True)
class Identity:
    """The person who signed in. `digest` identifies the ID token, which is valid until `valid_until` (ms)."""

    issuer: str
    subject: str
    digest: str
    valid_until: int
    claims: IdClaims


@dataclass(frozen=True, slots=True)
class TrustedIssuer:
    """The issuer whose ID tokens are accepted, this service's client id there, and the accepted algorithms."""

    issuer: str
    client_id: str
    algorithms: tuple[str, ...]
    keys: KeySource

    async def verify(self, token: str, nonce: str | None, now: int) -> Identity:
        """Return the person who signed in; `now` is in milliseconds. The caller rejects a used token.

        Everything that needs no key is checked first, so that a forged token does not cause a request to the issuer.

        Raises:
            TokenRejected: The token is not accepted.
            ServiceError: SERVICE_UNAVAILABLE if the issuer's keys cannot be read.
        """
        verified = await signed_claims(token, MAX_LENGTH, self._check_unsigned, self.keys)
        try:
            self._check_claims(verified, nonce, now // 1000)
        except ValueError as error:  # the operator needs to know which check fails
            log.warning("a signed ID token of %s is rejected: %s", self.issuer, error)
            raise TokenRejected("invalid") from error
        claims = cast(IdClaims, verified)
        end = min(claims["exp"], claims["iat"] + MAX_AGE_SECONDS + 1)
        if end * 1000 <= now:
            raise TokenRejected("expired")
        # Leave out the signature, because an elliptic curve signature has two valid forms.
        digest = hashlib.sha256(token.rpartition(".")[0].encode()).hexdigest()
        return Identity(self.issuer, claims["sub"], digest, end * 1000, claims)

    def _check_unsigned(self, header: JsonObject, claims: JsonObject) -> None:
        """Check everything that needs no key."""
        kid, typ = header.get("kid"), header.get("typ", "JWT")
        if not header.keys() <= _HEADER or header.get("alg") not in self.algorithms:
            raise ValueError("header or algorithm")
        if not (isinstance(typ, str) and typ.upper() == "JWT"):
            raise ValueError("typ")  # an access token does not prove a login (RFC 8725 §3.11)
        if kid is not None and not (isinstance(kid, str) and 1 <= len(kid) <= _KID_LIMIT and kid.isprintable()):
            raise ValueError("kid")
        if claims.get("iss") != self.issuer:
            raise ValueError("iss")

    def _check_claims(self, claims: JsonObject, nonce: str | None, now: int) -> None:
        """Check the claims, except the age, which has its own error; `now` is in seconds."""
        audience = claims.get("aud")
        audiences = [audience] if isinstance(audience, str) else audience
        if not (isinstance(audiences, list) and self.client_id in audiences):
            raise ValueError("aud")
        if (len(audiences) > 1 or "azp" in claims) and claims.get("azp") != self.client_id:
            raise ValueError("azp")
        if not (is_instant(claims.get("exp")) and is_instant(claims.get("iat"))):
            raise ValueError("exp or iat")
        not_before, latest = claims.get("nbf", 0), now + IAT_LEEWAY_SECONDS
        if claims["iat"] > latest or not is_instant(not_before) or not_before > latest:
            raise ValueError("iat or nbf in the future")
        if nonce is not None and claims.get("nonce") != nonce:
            raise ValueError("nonce")
        subject = claims.get("sub")
        if not (isinstance(subject, str) and 1 <= len(subject) <= _SUBJECT_LIMIT and subject.isprintable()):
            raise ValueError("sub")
