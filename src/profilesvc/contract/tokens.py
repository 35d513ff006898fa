"""Token grants on the wire (docs/api-contract.md#tokens)."""

from typing import Annotated, Literal, get_args

from pydantic import Field, RootModel

from profilesvc.contract.common import Body, Data, PermissionName


class ClientCredentialsGrant(Body):
    """Exchange a key's id and secret for tokens."""

    grant_type: Literal["client_credentials"]
    client_id: str
    client_secret: str = Field(repr=False)
    permissions: Annotated[
        list[str] | None, Field(max_length=32, description="A subset of the key's permissions; default all.")
    ] = None


class RefreshGrant(Body):
    """Exchange a refresh token for a new pair."""

    grant_type: Literal["refresh_token"]
    refresh_token: str = Field(repr=False)
    client_id: Annotated[str | None, Field(description="Must match if it is sent. An addition.")] = None
    client_secret: Annotated[str | None, Field(description="Must match if it is sent. An addition.", repr=False)] = None


class TokenExchangeGrant(Body):
    """Exchange an ID token of the configured identity provider for a user token (RFC 8693). An addition."""

    grant_type: Literal["urn:ietf:params:oauth:grant-type:token-exchange"]
    subject_token: str = Field(description="The ID token; each is accepted once.", repr=False)
    subject_token_type: Literal["urn:ietf:params:oauth:token-type:id_token"]
    requested_token_type: Literal["urn:ietf:params:oauth:token-type:access_token"] | None = None
    nonce: Annotated[
        str | None, Field(description="Must equal the ID token's if it is sent.", min_length=1, max_length=255)
    ] = None


Grant = ClientCredentialsGrant | RefreshGrant | TokenExchangeGrant
GRANT_TYPES = tuple(name for grant in get_args(Grant) for name in get_args(grant.model_fields["grant_type"].annotation))


class TokenRequest(RootModel[Annotated[Grant, Field(discriminator="grant_type")]]):
    """One of the grants, distinguished by `grant_type`."""


class AccessToken(Data):
    """An access token with its lifetime and permissions."""

    token_type: Literal["Bearer"] = "Bearer"  # noqa: S105
    scope: Literal["service", "user"]
    plan: str
    access_token: str = Field(description="JWT (RS256).", repr=False)
    expires_in: int = Field(description="Seconds.", examples=[7776000])
    permissions: list[PermissionName]


class Token(AccessToken):
    """An access token and a refresh token."""

    refresh_token: str = Field(description="Opaque. Keep only the newest.", repr=False)
    refresh_expires_in: int = Field(
        description="Seconds. By default it expires before the access token. An addition of this service."
    )


class UserToken(AccessToken):
    """A user's access token. The user signs in again when it expires. An addition of this service."""

    scope: Literal["user"] = "user"
    issued_token_type: Literal["urn:ietf:params:oauth:token-type:access_token"] = (
        "urn:ietf:params:oauth:token-type:access_token"  # noqa: S105
    )
