"""Heartbeats, connection status and the credential check on the wire."""

from typing import Annotated, Literal

from pydantic import Field

from profilesvc.contract.common import STORABLE, Body, Data, Query, UtcTime

Version = Annotated[str, Field(max_length=64), STORABLE]
Plugin = Annotated[str, Field(max_length=200), STORABLE]
ConnectionState = Literal["online", "idle", "offline"]
ReasonHint = Literal[
    "deactivated",
    "secret_changed",
    "token_revoked",
    "secret_rejected",
    "origin_not_allowed",
    "never_connected",
    "site_mismatch",
    "was_online",
]


class Heartbeat(Body):
    """The versions that the plugin reports. A missing field keeps its last value."""

    plugin_version: Annotated[Version | None, Field(examples=["2.4.1"])] = None
    wp_version: Annotated[Version | None, Field(examples=["6.8"])] = None
    php_version: Annotated[Version | None, Field(examples=["8.3.2"])] = None
    detected_plugins: Annotated[list[Plugin] | None, Field(max_length=500)] = None


class HeartbeatReceived(Data):
    """The heartbeat was recorded."""

    received: Literal[True] = True
    next_heartbeat_in: int = Field(description="Seconds.", examples=[3600])


class StatusQuery(Query):
    """The option to return the history with the state."""

    history: Annotated[
        Literal["true", "false"], Field(description="`true` adds the last 30 days. An addition of this service.")
    ] = "false"


class StatePeriod(Data):
    """A period in one state."""

    state: ConnectionState
    from_: UtcTime = Field(alias="from", serialization_alias="from")
    to: UtcTime


class ConnectionStatus(Data):
    """The connection of a plugin, by its heartbeats."""

    connection_status: ConnectionState
    last_heartbeat_at: UtcTime | None
    plugin_version: str | None
    wp_version: str | None
    php_version: str | None
    reason_hint: ReasonHint | None = Field(
        description="What to check first. `secret_changed`: the key got a new secret that the site has not used yet. "
        "`token_revoked` and `secret_rejected`: the site sends a token or a secret that is not valid any more. "
        "An addition of this service."
    )
    reason_at: UtcTime | None = Field(
        default=None,
        exclude_if=lambda at: at is None,
        description="Since when the reason is known: when the secret was changed, when a request was rejected last, or "
        "the last heartbeat. Absent without such a time. An addition of this service.",
    )
    warnings: list[Literal["site_mismatch"]] = Field(
        default_factory=list,
        exclude_if=lambda warnings: not warnings,
        description="`site_mismatch`: the heartbeats name a site outside the key's domains, or two sites within a day, "
        "which is probably a clone or a staging copy. Absent without warnings. An addition of this service.",
    )


class ConnectionStatusWithHistory(ConnectionStatus):
    """The connection status with the changes of state of the last 30 days."""

    history: list[StatePeriod]


class CredentialCheck(Body):
    """A key's id and secret, and the site that uses them."""

    client_id: str
    client_secret: str = Field(repr=False)
    site_domain: Annotated[str | None, Field(examples=["https://harbour.example"])] = None


class CheckedUser(Data):
    """The key's owner."""

    id: int
    email: str
    name: str


class CheckedBusiness(Data):
    """The key's business."""

    id: int
    name: str


class CheckedLocation(Data):
    """The key's location."""

    id: str
    name: str
    address: str
    is_verified: bool


class Capabilities(Data):
    """The features of the owner's plan."""

    sync: bool
    posts: bool
    reviews: bool


class CredentialsValid(Data):
    """The pair is valid, and the site is allowed."""

    valid: Literal[True] = True
    user: CheckedUser
    business: CheckedBusiness
    location: CheckedLocation
    plan: str
    plan_display_name: str
    capabilities: Capabilities


class CredentialsInvalid(Data):
    """The pair is wrong, or the site is not allowed."""

    valid: Literal[False] = False
    reason: Literal["invalid_credentials", "domain_not_allowed"]
