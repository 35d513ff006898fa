"""The types of our own tokens' claims, and the checks that make a verified claim safe to pass to a database."""

import re
from collections.abc import Callable
from typing import Literal, NotRequired, TypedDict

from profilesvc.contract.common import LOCATION_ID, PermissionName
from profilesvc.contract.json import JsonObject
from profilesvc.domain.keys import CLIENT_ID
from profilesvc.domain.permissions import ALL
from profilesvc.domain.time import DAY, SECOND
from profilesvc.tokens.jose import is_instant

TokenType = Literal["at+jwt", "rt+jwt"]
LONGEST_TOKEN = 366 * DAY  # longer than the settings allow, so that a revocation outlives the token
DASHBOARD = "dashboard"  # the client of every user token
_USER_ID = re.compile(r"[1-9][0-9]{0,18}\Z", re.ASCII)
_RANDOM_ID = re.compile(r"[A-Za-z0-9_-]{21}[AQgw]", re.ASCII)  # the format of `random_id`


class Issued(TypedDict):
    """The claims of every token. `kid` is not a claim: `Signer.verify` adds the name of the key that signed it."""

    iss: str
    aud: str
    iat: int
    exp: int
    nbf: NotRequired[int]
    jti: str
    kid: str


class Grant(TypedDict):
    """The claims that the access token and the refresh token of a grant share."""

    sub: str
    client_id: str
    scope: Literal["service"]
    permissions: list[PermissionName]
    location: str
    business_id: int
    epoch: int
    fam: str
    gen: int
    auth_time: int


class ServiceClaims(Grant, Issued):
    """The claims of a key's access token, and of every refresh token."""


class UserClaims(Issued):
    """The claims of a user's access token."""

    sub: str
    client_id: str
    scope: Literal["user"]
    epoch: int


AccessClaims = ServiceClaims | UserClaims
RefreshClaims = ServiceClaims


def check(claims: JsonObject, typ: TokenType, issuer: str, audience: str) -> None:
    """Check that the service would have issued these claims in a token of this type.

    Raises:
        ValueError: A claim is missing or wrong; the message names it.
        KeyError: A claim that other checks depend on is missing.
        TypeError: A claim that other checks depend on has the wrong type.
    """
    if claims.get("iss") != issuer or claims.get("aud") != audience:
        raise ValueError("issuer or audience")
    for name in claims.keys() & _CHECKS.keys():
        if not _CHECKS[name](claims[name]):
            raise ValueError(name)
    if not claims.keys() >= _REQUIRED[claims["scope"]]:
        raise ValueError("missing claim")
    if typ == "rt+jwt" and claims["scope"] == "user":
        raise ValueError("scope")
    if not 0 <= claims["exp"] - claims["iat"] <= LONGEST_TOKEN // SECOND:
        raise ValueError("lifetime")
    if not _names_subject(claims):
        raise ValueError("subject")


def _names_subject(claims: JsonObject) -> bool:
    """Return whether `sub` and `client_id` name a key, or a user of the dashboard."""
    if claims["scope"] == "service":
        return claims["sub"] == claims["client_id"] and CLIENT_ID.match(claims["sub"]) is not None
    is_user = _USER_ID.match(claims["sub"]) is not None and int(claims["sub"]) < 2**63
    return is_user and claims["client_id"] == DASHBOARD


def _matches(pattern: re.Pattern[str]) -> Callable[[object], bool]:
    return lambda value: isinstance(value, str) and pattern.fullmatch(value) is not None


def _is_permissions(value: object) -> bool:
    return isinstance(value, list) and bool(value) and value == [name for name in ALL if name in value]


_CHECKS: dict[str, Callable[[object], bool]] = {
    "sub": lambda value: isinstance(value, str),
    "client_id": lambda value: isinstance(value, str),
    "jti": _matches(_RANDOM_ID),
    "fam": _matches(_RANDOM_ID),
    "location": _matches(re.compile(f"locations/{LOCATION_ID.pattern}", re.ASCII)),
    "permissions": _is_permissions,
    **dict.fromkeys(("exp", "iat", "nbf", "epoch", "gen", "auth_time", "business_id"), is_instant),
}
_COMMON = {"sub", "client_id", "scope", "jti", "exp", "iat", "epoch"}
_REQUIRED = {
    "service": _COMMON | {"permissions", "location", "business_id", "fam", "gen", "auth_time"},
    "user": _COMMON,
}
