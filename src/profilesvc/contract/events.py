"""Events that an owner can receive, an addition of this service (docs/events.md).

A new field of an event goes into its class, the code in `services/` that makes it, its example in
`api/openapi/webhooks.py`, and the table of docs/events.md.
"""

from typing import Annotated, Literal, get_args

from pydantic import AfterValidator, Field
from pydantic_core import PydanticCustomError

from profilesvc.contract.common import STORABLE, Data, PageLimit, Query, UtcTime
from profilesvc.contract.connection import ConnectionStatus
from profilesvc.contract.json import JsonObject
from profilesvc.contract.keys import KeyEntry
from profilesvc.contract.sync import Difference, SyncHistoryEntry

EventType = Literal[
    "connection.online",
    "connection.idle",
    "connection.offline",
    "connection.never_connected",
    "connection.site_mismatch",
    "key.created",
    "key.rolled",
    "key.deactivated",
    "key.reactivated",
    "key.revoked",
    "key.expiring",
    "token.reuse_detected",
    "location.verification_changed",
    "location.sync_switched",
    "profile.drifted",
    "sync.succeeded",
    "sync.failed",
    "post.created",
    "post.updated",
    "post.deleted",
    "post.published",
    "post.rejected",
    "post.deleted_at_provider",
    "review.created",
    "review.updated",
    "review.replied",
    "review.reply_deleted",
    "quota.warning",
    "webhook.disabled",
    "provider_connection.connected",
    "provider_connection.reauth_required",
    "provider_connection.disconnected",
]
EVENT_TYPES: tuple[EventType, ...] = get_args(EventType)
_EVENT_ID = r"^evt_[0-9]{1,18}_[0-9]{1,18}$"


def types_of(text: str) -> list[EventType]:
    """Return the types in a comma-separated list.

    Raises:
        ValueError: The list has an unknown type.
    """
    names = [name.strip() for name in text.split(",")]
    if unknown := [name for name in names if name not in EVENT_TYPES]:
        raise ValueError(f"must contain types of events only, which {unknown[0][:40]!r} is not")
    return [name for name in EVENT_TYPES if name in names]


def _checked_types(text: str) -> str:
    try:
        types_of(text)
    except ValueError as error:
        raise PydanticCustomError("event_types", "{reason}", {"reason": str(error)}) from None
    return text


class ConnectionChanged(Data):
    """The state of a site's connection changed."""

    client_id: str
    location_id: str
    connection: ConnectionStatus


class KeyChanged(Data):
    """A change of an API key, with the key as it was then."""

    key: KeyEntry


class VerificationChanged(Data):
    """The verification of a location at the provider changed."""

    location_id: str
    is_verified: bool
    verification_state: str


class SyncSwitchChanged(Data):
    """The sync of a location was switched on or off."""

    location_id: str
    sync_enabled: bool


class ProfileDrifted(Data):
    """The provider's profile differs from the last sync: `source` is what was synced."""

    location_id: str
    differences: list[Difference]


class SyncEnded(Data):
    """A sync ended. `error` is the code of the error of a failed one."""

    location_id: str
    sync: SyncHistoryEntry
    fields_updated: list[str]
    error: str | None


class PostChanged(Data):
    """A key, the user or the provider changed a post, which is in the provider's format."""

    location_id: str
    post: JsonObject


class ReviewChanged(Data):
    """A review is new or changed. It is in the provider's format."""

    location_id: str
    review: JsonObject


class ReplyChanged(Data):
    """A key or the user set or deleted the reply to a review. It is in the provider's format; null if it is deleted."""

    location_id: str
    review_name: str
    reply: JsonObject | None


class QuotaWarning(Data):
    """80 % or 100 % of the month's posts are used."""

    used: int
    limit: int
    month: str = Field(examples=["2026-01"])


class WebhookDisabled(Data):
    """A webhook failed for too long, or its endpoint no longer exists, so it gets nothing more."""

    webhook_id: int
    host: str
    disabled_reason: Literal["gone", "failing"]


class ProviderConnectionStatus(Data):
    """A login at the provider and its state."""

    id: int = Field(description="The number of the connection.")
    state: Literal["active", "reauth_required", "disconnected"] = Field(description="Its state now.")
    url: str = Field(description="The page where the owner connects it again.")


class ProviderConnectionChanged(Data):
    """A login of the owner at the provider was connected or disconnected, or the provider has ended it."""

    connection: ProviderConnectionStatus = Field(description="The login.")


EventData = (
    ConnectionChanged
    | KeyChanged
    | VerificationChanged
    | SyncSwitchChanged
    | ProfileDrifted
    | SyncEnded
    | PostChanged
    | ReviewChanged
    | ReplyChanged
    | QuotaWarning
    | WebhookDisabled
    | ProviderConnectionChanged
)


class EventOwner(Data):
    """The user whose event it is."""

    id: int = Field(description="The number of the user.")


class PublishedEvent(Data):
    """Something that happened to a key, a site or a location. A webhook receives the same document."""

    id: str = Field(description="Unique; also the `webhook-id` of every delivery.", examples=["evt_1_42"])
    type: EventType = Field(description="What happened; docs/events.md has all types.")
    created_at: UtcTime = Field(description="When the event was written.")
    owner: EventOwner = Field(description="The user whose key, site or location it is.")
    data: JsonObject = Field(description="What changed, in the format that the API returns; it depends on `type`.")


class EventListQuery(Query):
    """The position in the events, and filters."""

    exact = ("after", "types")
    after: Annotated[
        str | None, Field(pattern=_EVENT_ID, description="The id of the last event that you have; oldest first.")
    ] = None
    types: Annotated[
        str | None,
        Field(max_length=1000, description="Types separated by commas; all without it."),
        AfterValidator(lambda text: text if text is None else _checked_types(text)),
    ] = None
    client_id: Annotated[
        Annotated[str, Field(max_length=160), STORABLE] | None, Field(description="Only events of this API key.")
    ] = None
    limit: PageLimit = 50


class EventList(Data):
    """A page of events, oldest first. Events are kept for 30 days."""

    events: list[PublishedEvent] = Field(description="The events of the page.")
    next_after: str | None = Field(
        description="Send as `after` for what follows; on the last page it is the last event, so that a later request "
        "continues there. Null if there is no event yet."
    )
    has_more: bool = Field(description="Whether more events follow now.")
