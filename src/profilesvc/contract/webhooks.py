"""Webhooks, an addition of this service (docs/events.md)."""

from typing import Annotated, Literal

from pydantic import Field

from profilesvc.contract.common import STORABLE, Body, Cursor, Data, PageLimit, Query, Text, UtcTime
from profilesvc.contract.events import EventType, PublishedEvent

SECRET_WARNING = "Store the secret now: it is never shown again."  # noqa: S105  a sentence
Format = Literal["standard", "slack", "teams", "discord"]
DeliveryState = Literal["pending", "delivered", "failed", "skipped"]
Types = Annotated[
    list[EventType],
    Field(
        max_length=50, description="The events to send; an empty array means all.", examples=[["connection.offline"]]
    ),
]
Url = Annotated[
    Text,
    Field(
        description="https, port 443 or above 1023, a public address; at most 2,048 characters.",
        examples=["https://hooks.harbour.example/profiles"],
        json_schema_extra={"format": "uri", "maxLength": 2048},
    ),
]
Description = Annotated[str, Field(max_length=200), STORABLE]


class WebhookCreate(Body):
    """The address to send events to, and their types."""

    url: Url
    description: Annotated[Description, Field(description="For you; at most 200 characters.")] = ""
    types: Types = Field(default_factory=list)
    format: Annotated[
        Format, Field(description="`standard` is Standard Webhooks; the others are incoming webhooks of a chat.")
    ] = "standard"


class WebhookChange(Body):
    """The fields of a webhook to change. A missing field keeps its value."""

    url: Url | None = None
    description: Description | None = None
    types: Types | None = None
    enabled: Annotated[
        bool | None, Field(description="`true` also ends a pause of the service, `false` pauses the webhook.")
    ] = None


class WebhookEntry(Data):
    """A webhook, without its secret."""

    id: int
    url: str
    format: Format
    description: str
    types: Types
    enabled: bool
    disabled_reason: Literal["owner", "operator", "gone", "failing"] | None = Field(
        description="`gone`: the endpoint responded with 410; `failing`: each attempt failed for 5 days."
    )
    failing_since: UtcTime | None = Field(description="Since when each attempt fails.")
    created_at: UtcTime
    previous_secret_expires_at: UtcTime | None = Field(description="Until then deliveries are signed twice.")


class WebhookCreated(WebhookEntry):
    """The new webhook with its secret, which is never returned again."""

    secret: str | None = Field(description="`whsec_` and 32 bytes in base64; null for a chat.", repr=False)
    warning: str


class WebhookList(Data):
    """Your webhooks, oldest first."""

    webhooks: list[WebhookEntry]
    limit: int = Field(description="How many your plan includes.")


class WebhookRolled(Data):
    """The new secret of a webhook, which is never returned again."""

    id: int
    secret: str = Field(description="`whsec_` and 32 bytes in base64.", repr=False)
    rolled_at: UtcTime
    previous_secret_expires_at: UtcTime
    warning: str


class WebhookDeleted(Data):
    """The webhook and its deliveries are deleted."""

    id: int
    deleted: Literal[True] = True


class DeliveryAttempt(Data):
    """One request to the endpoint. `response` is the start of the response's body, at most 1,024 bytes."""

    at: UtcTime
    status: int | None
    error: str | None
    duration_ms: int
    response: str | None


class DeliveryEntry(Data):
    """An event on its way to a webhook, with every attempt."""

    id: int
    state: DeliveryState
    created_at: UtcTime
    next_attempt_at: UtcTime | None
    finished_at: UtcTime | None
    attempts: list[DeliveryAttempt]
    event: PublishedEvent | None = Field(description="What is sent; null for a test, and after 30 days.")


class DeliveryListQuery(Query):
    """The page of the list."""

    limit: PageLimit = 20
    before: Cursor | None = None


class DeliveryList(Data):
    """Deliveries to a webhook, newest first, for 30 days."""

    deliveries: list[DeliveryEntry]
    next_before: str | None = Field(description="Send as `before` for the next page; null on the last page.")


class WebhookRecover(Body):
    """Since when to send events that were not delivered."""

    since: Annotated[
        Text,
        Field(
            description="RFC 3339 time in the past. Events are kept for 30 days, so an earlier time means 30 days ago.",
            examples=["2026-01-02T00:00:00Z"],
            json_schema_extra={"format": "date-time"},
        ),
    ]


MOST_RECOVERED = 10_000


class WebhookRecovered(Data):
    """The number of events that were queued, at most 10,000, without those that were delivered or are on their way.

    If it is 10,000, repeat the request for the others.
    """

    id: int
    queued: int
