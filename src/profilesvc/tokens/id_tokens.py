"""Read ID tokens of the configured issuer, against the service's own clock (D-15, OpenID Connect Core §3.1.3.7)."""

import hashlib
import logging
from dataclasses import dataclass
from typing import Any, Protocol, TypedDict, cast

import jwt
from cryptography.hazmat.primitives.asymmetric import ec, ed448, ed25519, rsa

from profilesvc.tokens.jose import is_compact, is_instant, unverified
from profilesvc.tokens.signer import IAT_LEEWAY_SECONDS, TokenRefused

PublicKey = rsa.RSAPublicKey | ec.EllipticCurvePublicKey | ed25519.Ed25519PublicKey | ed448.Ed448PublicKey
MAX_LENGTH = 16_384  # a provider may write a user's groups into it
MAX_AGE_SECONDS = 600
_SUBJECT_LIMIT = 255
_KID_LIMIT = 255
# Any other member of a header is refused, because the key comes from the configuration and never from the token.
_HEADER = {"alg", "typ", "kid", "x5t", "x5t#S256"}
log = logging.getLogger("profilesvc")


class KeySource(Protocol):
    """The public keys of an issuer."""

    async def find(self, kid: str | None, alg: str) -> PublicKey | None:
        """Return the key of that name for an algorithm; without a name, the only one.

        Raises:
            ServiceError: SERVICE_UNAVAILABLE if the keys cannot be read.
        """


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
    """Who has signed in, by an ID token. `digest` identifies the token, which is valid until `good_until` (ms)."""

    issuer: str
    subject: str
    digest: str
    good_until: int
    claims: IdClaims


@dataclass(frozen=True, slots=True)
class TrustedIssuer:
    """The issuer whose ID tokens are accepted, its client id for this service, and the algorithms that it may use."""

    issuer: str
    client_id: str
    algorithms: tuple[str, ...]
    keys: KeySource

    async def read(self, token: str, nonce: str | None, now: int) -> Identity:
        """Return who signed in, by an ID token that is valid now (ms). The caller checks that it was not used before.

        Everything that needs no key is checked first, so that a forged token does not make the service ask the issuer.

        Raises:
            TokenRefused: The token is not accepted.
            ServiceError: SERVICE_UNAVAILABLE if the issuer's keys cannot be read.
        """
        unchecked = await self._genuine(token)
        try:
            self._check(unchecked, nonce, now // 1000)
        except ValueError as error:  # the operator who connects the issuer must see which check fails
            log.warning("a genuine ID token of %s is refused: %s", self.issuer, error)
            raise TokenRefused("invalid") from error
        claims = cast(IdClaims, unchecked)
        end = min(claims["exp"], claims["iat"] + MAX_AGE_SECONDS + 1)
        if end * 1000 <= now:
            raise TokenRefused("expired")
        # Without the signature, because a signature by an elliptic curve can be written in two ways.
        digest = hashlib.sha256(token.rpartition(".")[0].encode()).hexdigest()
        return Identity(self.issuer, claims["sub"], digest, end * 1000, claims)

    async def _genuine(self, token: str) -> dict[str, Any]:
        """Return the claims of a token that the issuer has signed; the claims are not checked yet."""
        if not is_compact(token, MAX_LENGTH):
            raise TokenRefused("malformed")
        try:
            header, claims = unverified(token)
            self._check_origin(header, claims)
        except Exception as error:  # whatever a forged token makes a parser raise, it is refused in the same way
            raise TokenRefused("invalid") from error
        key, alg = await self.keys.find(header.get("kid"), header["alg"]), header["alg"]
        try:
            if key is None:
                raise ValueError("no such key")
            jwt.PyJWS(algorithms=[alg]).decode(token, key, algorithms=[alg])
        except Exception as error:
            raise TokenRefused("invalid") from error
        return claims

    def _check_origin(self, header: dict[str, Any], claims: dict[str, Any]) -> None:
        """Check everything that does not need the signature.

        Raises:
            ValueError: The header or the issuer is not as configured.
        """
        kid, typ = header.get("kid"), header.get("typ", "JWT")
        if not header.keys() <= _HEADER or header.get("alg") not in self.algorithms:
            raise ValueError("header or algorithm")
        if not (isinstance(typ, str) and typ.upper() == "JWT"):
            raise ValueError("typ")  # an access token does not prove a login (RFC 8725 §3.11)
        if kid is not None and not (isinstance(kid, str) and 1 <= len(kid) <= _KID_LIMIT and kid.isprintable()):
            raise ValueError("kid")
        if claims.get("iss") != self.issuer:
            raise ValueError("iss")

    def _check(self, claims: dict[str, Any], nonce: str | None, now: int) -> None:
        """Check the types and values of the claims, except the age, which has its own refusal; `now` in seconds.

        Raises:
            ValueError: A claim is not accepted; the message names it.
        """
        audience = claims.get("aud")
        audiences = [audience] if isinstance(audience, str) else audience
        if not (isinstance(audiences, list) and self.client_id in audiences):
            raise ValueError("aud")
        if (len(audiences) > 1 or "azp" in claims) and claims.get("azp") != self.client_id:
            raise ValueError("azp")
        if not (is_instant(claims.get("exp")) and is_instant(claims.get("iat"))):
            raise ValueError("exp or iat")
        if claims["iat"] > now + IAT_LEEWAY_SECONDS or not _is_begun(claims.get("nbf", 0), now):
            raise ValueError("iat or nbf in the future")
        if nonce is not None and claims.get("nonce") != nonce:
            raise ValueError("nonce")
        subject = claims.get("sub")
        if not (isinstance(subject, str) and 1 <= len(subject) <= _SUBJECT_LIMIT and subject.isprintable()):
            raise ValueError("sub")


def _is_begun(not_before: object, now: int) -> bool:
    return is_instant(not_before) and not_before <= now + IAT_LEEWAY_SECONDS
