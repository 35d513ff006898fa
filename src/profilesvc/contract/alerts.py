"""E-mail alerts on the wire, an addition of this service (docs/events.md)."""

import re
from typing import Annotated, Literal

from pydantic import AfterValidator, BeforeValidator, ConfigDict, EmailStr, Field
from pydantic_core import PydanticCustomError

from profilesvc.contract.common import STORABLE, Body, Data, LocationName, Text, UtcTime, whole_number
from profilesvc.contract.events import EventType
from profilesvc.contract.zones import zone_names

MAX_ALERTS = 20
_CLOCK = re.compile(r"^([01][0-9]|2[0-3]):[0-5][0-9]\Z", re.ASCII)
DOWN: tuple[EventType, ...] = ("connection.offline", "connection.never_connected")
IMMEDIATE: tuple[EventType, ...] = (
    *DOWN,
    "connection.site_mismatch",
    "key.expiring",
    "token.reuse_detected",
    "provider_connection.reauth_required",
)
DAILY: tuple[EventType, ...] = (
    "post.created",
    "post.updated",
    "post.deleted",
    "post.rejected",
    "post.deleted_at_provider",
    "review.created",
    "review.replied",
    "review.reply_deleted",
    "profile.drifted",
    "sync.succeeded",
    "sync.failed",
    "location.verification_changed",
    "quota.warning",
)


def _zone(value: str) -> str:
    if value not in zone_names():
        raise PydanticCustomError("time_zone", "must be a time zone of the IANA database, such as Europe/Berlin")
    return value


def _clock(value: str) -> str:
    if not _CLOCK.match(value):
        raise PydanticCustomError("clock", "must be a time of day such as 22:00")
    return value


Zone = Annotated[
    str,
    Field(max_length=64, description="A time zone of the IANA database.", examples=["Europe/Berlin"]),
    AfterValidator(_zone),
]
Clock = Annotated[
    str,
    AfterValidator(_clock),
    Field(examples=["22:00"], json_schema_extra={"pattern": _CLOCK.pattern.replace(r"\Z", "$")}),
]
Types = Annotated[list[EventType], Field(max_length=50)]
Locations = Annotated[list[LocationName], Field(max_length=500)]


class QuietTime(Body):
    """A part of each day without alerts, which are sent at its end. It may contain midnight."""

    model_config = ConfigDict(extra="forbid", populate_by_name=True)
    from_: Clock = Field(alias="from", serialization_alias="from", description="When it starts, in `time_zone`.")
    to: Clock = Field(description="When it ends, in `time_zone`.")


class AlertSettings(Body):
    """The events that an address receives, and their time.

    A missing field has its default, or on a change keeps its value.
    """

    model_config = ConfigDict(extra="forbid", populate_by_name=True)
    immediate: Types = Field(default_factory=lambda: list(IMMEDIATE), description="Events that are sent at once.")
    daily: Types = Field(default_factory=lambda: list(DAILY), description="Events that the daily digest contains.")
    muted_locations: Locations = Field(default_factory=list, description="Locations whose events are not sent.")
    reminders: bool = Field(default=False, description="Whether to repeat an alert daily while the site is offline.")
    quiet_time: QuietTime | None = Field(default=None, description="When nothing is sent; null: never.")
    digest_at: Clock = Field(default="08:00", description="When the daily digest is sent, in `time_zone`.")
    time_zone: Zone = Field(default="UTC", description="A time zone of the IANA database.")


class AlertCreate(AlertSettings):
    """A new address for alerts."""

    address: Annotated[
        Annotated[EmailStr, Field(max_length=254), STORABLE] | None,
        Field(description="Null: the address of your login. Another address has to confirm itself by a link."),
    ] = None


class AlertChange(Body):
    """The settings to change."""

    model_config = ConfigDict(extra="forbid", populate_by_name=True)
    immediate: Annotated[Types | None, Field(description="Events that are sent at once.")] = None
    daily: Annotated[Types | None, Field(description="Events that the daily digest contains.")] = None
    muted_locations: Annotated[Locations | None, Field(description="Locations whose events are not sent.")] = None
    reminders: Annotated[bool | None, Field(description="Whether to repeat an alert daily.")] = None
    quiet_time: Annotated[QuietTime | None, Field(description="When nothing is sent; null: never.")] = None
    digest_at: Annotated[Clock | None, Field(description="When the daily digest is sent, in `time_zone`.")] = None
    time_zone: Annotated[Zone | None, Field(description="A time zone of the IANA database.")] = None
    enabled: Annotated[
        bool | None,
        Field(
            description="`false` stops all mail to the address, `true` resumes it. One whose reader unsubscribed "
            "gets a new link first, unless it is that of your login."
        ),
    ] = None


class AlertEntry(Data):
    """An address that receives alerts."""

    id: int = Field(description="The id of the address.")
    address: str = Field(description="The e-mail address.")
    status: Literal["unconfirmed", "active", "disabled"] = Field(description="Whether it receives alerts.")
    disabled_reason: str | None = Field(
        description="`unsubscribed` by a link, `rejected` by the mail server, or `owner`."
    )
    created_at: UtcTime = Field(description="When the address was added.")
    immediate: list[EventType] = Field(description="Events that are sent at once.")
    daily: list[EventType] = Field(description="Events that the daily digest contains.")
    muted_locations: list[str] = Field(description="Locations whose events are not sent.")
    reminders: bool = Field(description="Whether an alert is repeated daily while the site is offline.")
    quiet_time: QuietTime | None = Field(description="When nothing is sent; null: never.")
    digest_at: str = Field(description="When the daily digest is sent, in `time_zone`.", examples=["08:00"])
    time_zone: str = Field(description="A time zone of the IANA database.", examples=["Europe/Berlin"])


class AlertList(Data):
    """Your addresses for alerts."""

    alerts: list[AlertEntry] = Field(description="Your addresses, oldest first.")


class AlertDeleted(Data):
    """The address receives nothing more."""

    id: int = Field(description="The id of the address.")
    deleted: Literal[True] = Field(default=True, description="Always true.")


class AlertTested(Data):
    """A test message is on its way."""

    id: int = Field(description="The id of the address.")
    queued: Literal[True] = Field(default=True, description="Always true.")


class KeyAlerts(Data):
    """The alert settings of an API key's site."""

    client_id: str = Field(description="The client id of the API key.")
    grace_seconds: int = Field(
        description="How long after 24 hours without a heartbeat the site is reported as offline.", examples=[7200]
    )
    snoozed_until: UtcTime | None = Field(description="Until when e-mail does not report the site as offline, or null.")


class KeyAlertsChange(Body):
    """The alert settings to change. A missing field keeps its value."""

    model_config = ConfigDict(extra="forbid")
    grace_seconds: Annotated[
        Annotated[int, Field(ge=0, le=30 * 86_400), BeforeValidator(whole_number)] | None,
        Field(description="0 to 30 days, in seconds."),
    ] = None
    snoozed_until: Annotated[
        Annotated[Text, Field(json_schema_extra={"format": "date-time"})] | None,
        Field(description="RFC 3339 time in the future, at most 400 days ahead; null ends the snooze."),
    ] = None
