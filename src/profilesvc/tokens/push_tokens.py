"""Read the OIDC tokens of a push subscription, on the service's own clock (docs/notifications.md)."""

from dataclasses import dataclass
from functools import partial

from profilesvc.contract.json import JsonObject
from profilesvc.tokens.id_tokens import KeySource, signed_claims
from profilesvc.tokens.jose import is_instant
from profilesvc.tokens.signer import IAT_LEEWAY_SECONDS

_ALGORITHM = "RS256"
_HEADER = {"alg", "typ", "kid"}
_MAX_LENGTH = 4_096
_MAX_SECONDS = 7_200  # such a token is valid for an hour
_KID_LIMIT = 255


@dataclass(frozen=True, slots=True)
class PushTokens:
    """Verifies the tokens of one push subscription: the issuer, this endpoint, and the account that pushes."""

    issuer: str
    audience: str
    email: str
    keys: KeySource

    async def verify(self, token: str, now: int) -> None:
        """Verify a token; `now` is in milliseconds.

        Everything that needs no key is checked first, so that a forged token does not cause a request to the issuer.

        Raises:
            TokenRejected: The token is not accepted.
            ServiceError: SERVICE_UNAVAILABLE if the issuer's keys cannot be read.
        """
        await signed_claims(token, _MAX_LENGTH, partial(self._check, now // 1000), self.keys)

    def _check(self, now: int, header: JsonObject, claims: JsonObject) -> None:
        """Check everything that needs no key; `now` is in seconds."""
        kid = header.get("kid")
        if not header.keys() <= _HEADER or header.get("alg") != _ALGORITHM or header.get("typ", "JWT") != "JWT":
            raise ValueError("header")
        if not (isinstance(kid, str) and 1 <= len(kid) <= _KID_LIMIT and kid.isprintable()):
            raise ValueError("kid")
        expected = {"iss": self.issuer, "aud": self.audience, "email": self.email}
        if any(claims.get(name) != value for name, value in expected.items()):
            raise ValueError("iss, aud or email")
        if claims.get("email_verified") is not True:
            raise ValueError("email_verified")
        start, end = claims.get("iat"), claims.get("exp")
        if not (is_instant(start) and is_instant(end) and now < end <= start + _MAX_SECONDS):
            raise ValueError("iat or exp")
        if start > now + IAT_LEEWAY_SECONDS or claims.get("nbf", 0) > now + IAT_LEEWAY_SECONDS:
            raise ValueError("iat or nbf in the future")
