"""Heartbeats, connection status and the credential check on the wire."""

from typing import Annotated, Literal

from pydantic import Field

from profilesvc.contract.common import STORABLE, Body, Data, Query, UtcTime

Version = Annotated[str, Field(max_length=64), STORABLE]
Plugin = Annotated[str, Field(max_length=200), STORABLE]
ConnectionState = Literal["online", "idle", "offline"]


class Heartbeat(Body):
    """What the plugin reports; a member that is missing keeps its last value (D-55)."""

    plugin_version: Annotated[Version | None, Field(examples=["2.4.1"])] = None
    wp_version: Annotated[Version | None, Field(examples=["6.8"])] = None
    php_version: Annotated[Version | None, Field(examples=["8.3.2"])] = None
    detected_plugins: Annotated[list[Plugin] | None, Field(max_length=500)] = None


class HeartbeatReceived(Data):
    """The heartbeat was recorded."""

    received: Literal[True] = True
    next_heartbeat_in: int = Field(description="Seconds.", examples=[3600])


class StatusQuery(Query):
    """What to tell beside the state."""

    history: Annotated[Literal["true", "false"], Field(description="`true` adds the last 30 days. Ours (D-55).")] = (
        "false"
    )


class StatePeriod(Data):
    """A time that was spent in one state."""

    state: ConnectionState
    from_: UtcTime = Field(alias="from", serialization_alias="from")
    to: UtcTime


class ConnectionStatus(Data):
    """Whether the plugin is connected (API document, Connection status)."""

    connection_status: ConnectionState
    last_heartbeat_at: UtcTime | None
    plugin_version: str | None
    wp_version: str | None
    php_version: str | None
    reason_hint: Literal["never_connected", "was_online", "deactivated", "site_mismatch"] | None = Field(
        description="Why it is not online. Ours (D-55)."
    )
    warnings: list[Literal["site_mismatch"]] = Field(
        default_factory=list,
        exclude_if=lambda warnings: not warnings,
        description="`site_mismatch`: the heartbeats name a site outside the key's domains, or two sites within a day; "
        "probably a clone or a staging copy. Absent when there is nothing to warn of. Ours (D-30).",
    )


class ConnectionStatusWithHistory(ConnectionStatus):
    """The same with the changes of state of the last 30 days."""

    history: list[StatePeriod]


class CredentialCheck(Body):
    """A key's id and secret, and the site they are used on."""

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
    """What the owner's plan includes."""

    sync: bool
    posts: bool
    reviews: bool


class CredentialsValid(Data):
    """The pair is good, and good for the site."""

    valid: Literal[True] = True
    user: CheckedUser
    business: CheckedBusiness
    location: CheckedLocation
    plan: str
    plan_display_name: str
    capabilities: Capabilities


class CredentialsInvalid(Data):
    """The pair is wrong, or not for this site (D-29)."""

    valid: Literal[False] = False
    reason: Literal["invalid_credentials", "domain_not_allowed"]
