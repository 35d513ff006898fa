"""API keys on the wire (docs/api-contract.md#keys)."""

from typing import Annotated, Literal

from pydantic import BeforeValidator, ConfigDict, Field

from profilesvc.contract.common import (
    MAX_LIMIT,
    STORABLE,
    Body,
    Cursor,
    Data,
    DeactivationReason,
    Id,
    LocationName,
    PageNumber,
    PermissionName,
    Query,
    Text,
    UtcTime,
    reduced_to,
    whole_number,
)

SECRET_WARNING = "Store client_secret now. It is in this response only and cannot be retrieved again."  # noqa: S105
Domain = Annotated[str, Field(max_length=2048, json_schema_extra={"minLength": 1}), STORABLE]
KeyStatus = Literal["active", "deactivated", "revoked"]


class KeyCreate(Body):
    """A new key, bound to one location."""

    name: Annotated[
        Text,
        Field(
            description="1 to 100 characters; surrounding spaces are removed.",
            examples=["Website plugin"],
            json_schema_extra={"minLength": 1, "maxLength": 100, "pattern": r"\S"},
        ),
    ]
    business_id: Annotated[Id, Field(examples=[10])]
    assigned_location_id: LocationName
    primary_domain: Annotated[Domain | None, Field(examples=["harbour.example"])] = None
    allowed_domains: Annotated[list[Domain] | None, Field(max_length=50)] = None
    permissions: Annotated[
        list[PermissionName] | None,
        Field(min_length=1, max_length=32, description="The key's permissions; default both. An addition."),
    ] = None
    expires_at: Annotated[
        Annotated[Text, Field(json_schema_extra={"format": "date-time"})] | None,
        Field(description="RFC 3339 time in the future, after which the key is rejected. An addition."),
    ] = None


class KeyChange(Body):
    """The fields of a key to change. A missing field keeps its value. An addition of this service."""

    model_config = ConfigDict(json_schema_extra={"minProperties": 1})
    name: Annotated[
        Text | None,
        Field(
            description="1 to 100 characters; surrounding spaces are removed. The client id does not change.",
            examples=["Website plugin"],
        ),
    ] = None
    primary_domain: Annotated[
        Domain | None, Field(examples=["harbour.example"], description="`null` removes it and its www twin.")
    ] = None
    allowed_domains: Annotated[
        list[Domain] | None,
        Field(max_length=50, description="Replaces the domains besides the primary one; `null` and `[]` remove them."),
    ] = None


class KeyCreated(Data):
    """The new key with its secret, which is never returned again."""

    client_id: str = Field(examples=["svcid_1_1767323045678_website_plugin"])
    client_secret: str = Field(description="48 random bytes in base64; never shown again.", repr=False)
    service_client_id: int
    name: str
    plan: str
    business_id: int
    business_name: str
    assigned_location_id: str
    primary_domain: str | None
    allowed_domains: list[str]
    created_at: UtcTime
    warning: str
    permissions: list[PermissionName] = Field(description="An addition of this service.")
    expires_at: UtcTime | None = Field(description="An addition of this service.")


class KeyEntry(Data):
    """A key in the list, without its secret."""

    id: int
    client_id: str
    name: str
    assigned_location_id: str
    primary_domain: str | None
    created_at: UtcTime
    last_used_at: UtcTime | None
    status: KeyStatus = Field(description="An addition of this service.")
    deactivation_reason: DeactivationReason | None = Field(description="An addition of this service.")
    expires_at: UtcTime | None = Field(description="An addition of this service.")


class KeyDetails(KeyEntry):
    """One key, without its secrets. An addition of this service."""

    allowed_domains: list[str] = Field(description="The primary domain, its www twin and the others; none means all.")
    previous_secret_expires_at: UtcTime | None = Field(
        description="Until then the secret before the last roll is valid too; null if there is none."
    )


class KeyList(Data):
    """The caller's keys, newest first."""

    credentials: list[KeyEntry]
    next_before: str | None = Field(
        default=None,
        exclude_if=lambda place: place is None,
        description="Send as `before` for the next page; absent on the last page. An addition of this service.",
    )


class KeyRevoked(Data):
    """The key is revoked; all its tokens are invalid."""

    client_id: str
    revoked: Literal[True] = True
    revoked_at: UtcTime


class KeyRoll(Body):
    """The options to replace a key's secret."""

    overlap_seconds: Annotated[
        int,
        Field(ge=0, le=7 * 86_400, description="How long the old secret is valid; 0 ends it and all tokens."),
        BeforeValidator(whole_number),
    ] = 86_400


class KeyRolled(Data):
    """The new secret of a key, which is never returned again. An addition of this service."""

    client_id: str
    client_secret: str = Field(description="48 random bytes in base64; never shown again.", repr=False)
    service_client_id: int
    rolled_at: UtcTime
    previous_secret_expires_at: UtcTime = Field(description="Until then the old secret is valid too.")
    warning: str


class KeyStanding(Data):
    """The status of a key, with the reason if it is deactivated. An addition of this service."""

    client_id: str
    status: Literal["active", "deactivated"]
    deactivation_reason: DeactivationReason | None = Field(description="The most severe reason.")
    deactivated_at: UtcTime | None


class KeyListQuery(Query):
    """The page of the list."""

    include_revoked: Annotated[
        Literal["true", "false"], Field(description="`true` lists revoked keys too. An addition of this service.")
    ] = "false"
    limit: Annotated[
        Annotated[PageNumber, reduced_to(MAX_LIMIT)] | None,
        Field(
            description="At most 100; a larger value is reduced to 100. Without `limit`, `before` and "
            "`include_revoked` all your keys are returned in one response. An addition of this service."
        ),
    ] = None
    before: Cursor | None = None


class BusinessEntry(Data):
    """A business of the user."""

    id: int
    name: str


class BusinessList(Data):
    """The user's businesses, for a form that creates a key. An addition of this service."""

    businesses: list[BusinessEntry]
