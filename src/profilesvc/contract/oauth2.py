"""The standard OAuth endpoints on the wire (RFC 6749, 7009, 7662, 8414)."""

import re
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

from profilesvc.contract.common import Body, Data
from profilesvc.contract.errors import (
    AUTH_INSUFFICIENT_PERMISSIONS,
    AUTH_INVALID_TOKEN,
    HEADERS_TOO_LARGE,
    INTERNAL_ERROR,
    METHOD_NOT_ALLOWED,
    RATE_LIMITED,
    REQUEST_TIMEOUT,
    SERVICE_UNAVAILABLE,
    ErrorKind,
)
from profilesvc.contract.json import JsonObject
from profilesvc.contract.tokens import GRANT_TYPES

INVALID_REQUEST = ErrorKind("invalid_request", 400, "The request is not valid.")
WRONG_METHOD = ErrorKind("invalid_request", 405, METHOD_NOT_ALLOWED.message)
TOO_LATE = ErrorKind("invalid_request", 408, REQUEST_TIMEOUT.message)
HEADERS = ErrorKind("invalid_request", 431, HEADERS_TOO_LARGE.message)
TOO_LARGE = ErrorKind("invalid_request", 413, "The body is larger than this endpoint accepts.")
COMPRESSED = ErrorKind("invalid_request", 415, "Compressed bodies are not accepted. Send no Content-Encoding.")
INVALID_CLIENT = ErrorKind("invalid_client", 401, "Invalid client credentials.")
INVALID_GRANT = ErrorKind("invalid_grant", 400, "Invalid or expired refresh token.")
INVALID_SCOPE = ErrorKind("invalid_scope", 400, "This key has none of the requested permissions.")
UNSUPPORTED_GRANT_TYPE = ErrorKind("unsupported_grant_type", 400, "This grant type is not supported.")
INVALID_TOKEN = ErrorKind("invalid_token", 401, "The access token is invalid or expired.")
ACCESS_DENIED = ErrorKind("access_denied", 403, "These credentials do not allow this operation.")
SERVER_ERROR = ErrorKind("server_error", 500, INTERNAL_ERROR.message)
TOO_MANY = ErrorKind("temporarily_unavailable", 429, RATE_LIMITED.message)
UNAVAILABLE = ErrorKind("temporarily_unavailable", 503, SERVICE_UNAVAILABLE.message)

_STANDARD = {
    *(INVALID_REQUEST, TOO_LARGE, COMPRESSED, INVALID_CLIENT, INVALID_GRANT, INVALID_SCOPE),
    *(UNSUPPORTED_GRANT_TYPE, INVALID_TOKEN, ACCESS_DENIED, SERVER_ERROR, UNAVAILABLE, TOO_MANY),
}
_CODES = {
    AUTH_INVALID_TOKEN: INVALID_TOKEN.code,
    AUTH_INSUFFICIENT_PERMISSIONS: ACCESS_DENIED.code,
    RATE_LIMITED: UNAVAILABLE.code,
    INTERNAL_ERROR: SERVER_ERROR.code,
    SERVICE_UNAVAILABLE: UNAVAILABLE.code,
}
_NOT_IN_DESCRIPTION = re.compile(r"[^\x20\x21\x23-\x5b\x5d-\x7e]")
OFFLINE_ACCESS = "offline_access"  # asks for a refresh token (OpenID Connect Core §11)
SCOPE_TOKEN = re.compile(r"[\x21\x23-\x5b\x5d-\x7e]+\Z")


class OAuthError(BaseModel):
    """An error (RFC 6749 §5.2). For a deactivated key it has three more fields, as on the JSON endpoint."""

    model_config = ConfigDict(extra="allow")

    error: str = Field(
        description="An error code of the standard.",
        examples=["invalid_client"],
        json_schema_extra={"enum": [*sorted({kind.code for kind in _STANDARD})]},
    )
    error_description: str = Field(description="For people; can change.")


def error_members(kind: ErrorKind, message: str, details: JsonObject) -> JsonObject:
    """Return the fields of an error with the standard's code, without details that only our catalogue defines."""
    code = kind.code if kind in _STANDARD else _CODES.get(kind, INVALID_REQUEST.code)
    extra = details if kind in _STANDARD else {}
    return {"error": code, "error_description": _NOT_IN_DESCRIPTION.sub("'", message), **extra}


_ClientId = Annotated[str | None, Field(description="Required unless the client uses HTTP Basic.")]
_ClientSecret = Annotated[str | None, Field(description="Required unless the client uses HTTP Basic.", repr=False)]


class ClientForm(Body):
    """A form with optional client credentials."""

    client_id: _ClientId = None
    client_secret: _ClientSecret = None


class TokenForm(ClientForm):
    """A form-encoded grant."""

    grant_type: str = Field(json_schema_extra={"enum": list(GRANT_TYPES)})
    scope: Annotated[
        str | None,
        Field(
            description="Permissions, separated by spaces; default all. `offline_access` requests a refresh token. "
            "Ignored on a refresh."
        ),
    ] = None
    refresh_token: Annotated[str | None, Field(description="The newest refresh token, for a refresh.", repr=False)] = (
        None
    )
    subject_token: Annotated[str | None, Field(description="The ID token, for a token exchange.", repr=False)] = None
    subject_token_type: Annotated[str | None, Field(description="The type of ID tokens, for a token exchange.")] = None
    requested_token_type: Annotated[
        str | None, Field(description="The type of access tokens, which is the default.")
    ] = None
    nonce: Annotated[str | None, Field(description="The nonce that the ID token must have, for a token exchange.")] = (
        None
    )


class TokenHandle(ClientForm):
    """The token to inspect or revoke."""

    token: str = Field(
        description="An access token, a refresh token or a user token.", repr=False, json_schema_extra={"minLength": 1}
    )
    token_type_hint: Annotated[str | None, Field(description="Accepted and ignored.")] = None


class OAuthToken(Data):
    """Tokens in the form of RFC 6749 §5.1."""

    access_token: str = Field(description="JWT (RFC 9068).", repr=False)
    token_type: Literal["Bearer"] = "Bearer"  # noqa: S105
    expires_in: int = Field(description="Seconds.", examples=[7776000])
    scope: str = Field(
        description="The permissions, separated by spaces; with a refresh token also `offline_access`.",
        examples=["business.read business.write"],
    )
    refresh_token: Annotated[
        str | None, Field(description="Present if the scope has `offline_access`. Keep only the newest.", repr=False)
    ] = None
    refresh_expires_in: Annotated[int | None, Field(description="Seconds. An addition of this service.")] = None
    issued_token_type: Annotated[str | None, Field(description="Present after a token exchange (RFC 8693 §2.2.1).")] = (
        None
    )


class Introspection(Data):
    """The state of a token (RFC 7662 §2.2); only `active: false` if it is invalid or not the caller's."""

    active: bool
    scope: Annotated[str | None, Field(description="The token's current permissions, separated by spaces.")] = None
    client_id: str | None = None
    token_type: Annotated[
        Literal["Bearer", "refresh_token"] | None,
        Field(description="A `refresh_token` cannot be used as a bearer token."),
    ] = None
    exp: int | None = None
    iat: int | None = None
    sub: str | None = None
    aud: str | None = None
    iss: str | None = None
    jti: str | None = None


class Done(Data):
    """An empty response."""


class ServerMetadata(Data):
    """The addresses of the OAuth endpoints (RFC 8414 §2)."""

    issuer: str
    token_endpoint: str
    jwks_uri: str
    revocation_endpoint: str
    introspection_endpoint: str
    service_documentation: str
    scopes_supported: list[str]
    response_types_supported: list[str]
    grant_types_supported: list[str]
    token_endpoint_auth_methods_supported: list[str]
    revocation_endpoint_auth_methods_supported: list[str]
    introspection_endpoint_auth_methods_supported: list[str]


class Jwk(Data):
    """A public RSA key for verifying signatures (RFC 7517, RFC 7518 §6.3)."""

    kty: Literal["RSA"]
    n: str
    e: str
    kid: str
    use: Literal["sig"]
    alg: Literal["RS256"]


class JwkSet(Data):
    """Public keys (RFC 7517 §5)."""

    keys: list[Jwk]
