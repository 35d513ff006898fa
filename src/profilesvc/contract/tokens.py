"""Token grants on the wire (API document, Token)."""

from typing import Annotated, Literal

from pydantic import Field, RootModel

from profilesvc.contract.common import Body, Data, PermissionName


class ClientCredentialsGrant(Body):
    """Exchange a key's id and secret for tokens."""

    grant_type: Literal["client_credentials"]
    client_id: str
    client_secret: str = Field(repr=False)
    permissions: Annotated[
        list[str] | None, Field(max_length=32, description="A subset of the key's permissions; none means all.")
    ] = None


class RefreshGrant(Body):
    """Exchange a refresh token for a new pair."""

    grant_type: Literal["refresh_token"]
    refresh_token: str = Field(repr=False)
    client_id: Annotated[str | None, Field(description="Must match when given. Ours (D-10).")] = None
    client_secret: Annotated[str | None, Field(description="Must match when given. Ours (D-10).", repr=False)] = None


class TokenRequest(RootModel[Annotated[ClientCredentialsGrant | RefreshGrant, Field(discriminator="grant_type")]]):
    """Either grant, told apart by grant_type."""


class Token(Data):
    """An access token and the refresh token that follows it."""

    token_type: Literal["Bearer"] = "Bearer"  # noqa: S105
    scope: Literal["service", "user"]
    plan: str
    access_token: str = Field(description="JWT (RS256).", repr=False)
    expires_in: int = Field(description="Seconds.", examples=[7776000])
    permissions: list[PermissionName]
    refresh_token: str = Field(description="JWT; keep the newest one.", repr=False)
    refresh_expires_in: int = Field(description="Seconds. Ours (D-11): the refresh token dies before the access token.")
