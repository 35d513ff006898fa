"""Logins at the provider that owners have connected, an addition of this service (docs/connections.md)."""

from typing import Annotated, Literal

from pydantic import Field

from profilesvc.contract.common import STORABLE, Body, Data, Id, LocationName, UtcTime
from profilesvc.contract.json import JsonObject
from profilesvc.contract.visible import VISIBLE

MAX_NAMES = 1_000
State = Literal["active", "reauth_required", "disconnected"]


class ProviderConnectionStart(Data):
    """The address of the page on which the owner consents."""

    authorization_url: str = Field(
        description="The provider's consent page. Open it in a browser in which you have signed in to the dashboard."
    )
    expires_at: UtcTime = Field(description="Until when the consent can return.")


class ProviderConnectionLink(Data):
    """A link with which someone else connects their login for you."""

    url: str = Field(description="For one connection. The person who opens it needs no login here.", repr=False)
    expires_at: UtcTime = Field(description="Until when the link works.")


class ProviderConnectionEntry(Data):
    """A login at the provider that you have connected. Its tokens are never returned."""

    id: int = Field(description="The number of the connection.")
    email: str | None = Field(description="The address of the login, if it was shared.")
    state: State = Field(description="`reauth_required`: the provider has ended the login; connect it again.")
    scopes: list[str] = Field(description="What the login has granted.")
    locations: int = Field(description="How many of your locations it reaches.")
    created_at: UtcTime = Field(description="When it was connected for the first time.")
    last_used_at: UtcTime | None = Field(description="When it was last used, to the hour.")
    last_error: str | None = Field(description="The last error of the login, such as `invalid_grant`.")
    last_error_at: UtcTime | None = Field(description="When that error occurred.")
    reconnect_url: str = Field(description="The page where you connect it again.")


class ProviderConnectionList(Data):
    """Your logins, oldest first."""

    connections: list[ProviderConnectionEntry] = Field(description="Your logins.")


class FoundLocation(Data):
    """A location that a login sees."""

    name: str = Field(description="The location, as `locations/<id>`.", examples=["locations/111"])
    title: str = Field(description="The name of the business at the provider.")
    address: str = Field(description="Street and town.")
    account: str = Field(description="The account that it is in.", examples=["accounts/1"])
    imported: bool = Field(description="Whether you have it, by any login.")
    available: bool = Field(description="Whether you can import it: no other user of this service has it.")


class FoundAccount(Data):
    """An account that a login sees, with its locations."""

    name: str = Field(description="The account, as `accounts/<id>`.", examples=["accounts/1"])
    title: str = Field(description="The name of the account.")
    type: str = Field(description="PERSONAL, LOCATION_GROUP, USER_GROUP or ORGANIZATION.")
    locations: list[FoundLocation] = Field(description="Its locations.")


class ProviderConnectionDetail(ProviderConnectionEntry):
    """A login with what it sees now; the provider is asked."""

    accounts: list[FoundAccount] = Field(description="The accounts that the login sees now.")


class ProviderConnectionImport(Body):
    """The locations to import: those named, or all whose title contains a text (`""`: all)."""

    locations: Annotated[
        list[LocationName] | None, Field(max_length=MAX_NAMES, description="The locations to import.")
    ] = None
    title_contains: Annotated[
        Annotated[str, Field(max_length=200), STORABLE] | None,
        Field(description='Instead of names: part of the title; `""` selects all.'),
    ] = None
    business_id: Annotated[Id | None, Field(description="The business to add them to; null: none yet.")] = None
    business_name: Annotated[
        Annotated[str, Field(min_length=1, max_length=200), STORABLE, VISIBLE] | None,
        Field(
            description="Instead of `business_id`: your business with this name. If you have none, it is added with "
            "the first location."
        ),
    ] = None


class RefusedLocation(Data):
    """A location that was not imported."""

    name: str = Field(description="The location, as `locations/<id>`.")
    reason: Literal["unavailable", "not_found", "plan", "other_business"] = Field(
        description="`unavailable`: another user has it. `not_found`: the login does not see it. `plan`: it is "
        "imported into no business, because the plan includes no more. `other_business`: it stays in another one."
    )


class ProviderConnectionImported(Data):
    """The result of an import. Importing a location again updates it and moves it to this login."""

    imported: list[str] = Field(description="The locations that you have now.")
    refused: list[RefusedLocation] = Field(description="Those that were not imported, or not into the business.")
    business_id: int | None = Field(description="The business that they were added to; null: none.")


class ExportedLocation(Data):
    """The stored data of a location. Disconnecting its login deletes it."""

    name: str = Field(description="The location, as `locations/<id>`.", examples=["locations/111"])
    profile: JsonObject = Field(description="Its profile, as the provider returned it.")
    profile_read_at: UtcTime = Field(description="When the profile was read.")
    desired: JsonObject | None = Field(description="The values that a sync compares with; null: none.")
    posts: list[JsonObject] = Field(description="Its posts, as the provider returned them.")


class ProviderConnectionExport(Data):
    """A copy of what this service stores of a login and its locations, without tokens."""

    exported_at: UtcTime = Field(description="When the copy was made.")
    connection: ProviderConnectionEntry = Field(description="The login.")
    locations: list[ExportedLocation] = Field(description="Its locations, by name.")


class ProviderConnectionDisconnected(Data):
    """The result of a disconnection. The consent is withdrawn at the provider next to the response."""

    id: int = Field(description="The number of the connection.")
    disconnected: Literal[True] = Field(default=True, description="Always true.")
    locations: list[str] = Field(description="The locations whose data was deleted.")
    deactivated_keys: list[str] = Field(description="The API keys that were deactivated (`user_requested`).")
