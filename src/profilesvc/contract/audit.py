"""The audit trail on the wire. All of it is ours (D-61)."""

from typing import Annotated, Any, Literal

from pydantic import Field

from profilesvc.contract.common import Data, PageNumber, Query, UtcTime

MAX_LIMIT = 100
Event = Literal[
    "key.created",
    "key.rolled",
    "key.deactivated",
    "key.reactivated",
    "key.revoked",
    "key.expired",
    "key.badge",
    "token.issued",
    "token.refreshed",
    "token.refresh_replayed",
    "token.refresh_reuse",
    "auth.failed",
    "user.login",
]
Actor = Literal["user", "key", "operator", "client", "service"]


class AuditQuery(Query):
    """Which part of the trail."""

    limit: Annotated[PageNumber, Field(description="At most 100; larger is clamped.")] = 50
    before: Annotated[
        str | None,
        Field(pattern=r"^[0-9]{1,15}-[0-9]{1,18}$", description="`next_before` of the page before this one."),
    ] = None


class AuditEntry(Data):
    """Something that happened to a key or a user; never with a secret or a token."""

    event: Event
    at: UtcTime = Field(
        description="`auth.failed` counts the failures of an hour: this is the first, `details.last_at` the last."
    )
    client_id: str | None = Field(description="The key, where it concerns one.")
    actor: Actor = Field(description="`client` is a caller who did not prove who they are, `service` time itself.")
    ip_prefix: str | None = Field(description="The network of the caller, in CIDR notation.", examples=["192.0.2.0/24"])
    request_id: str | None
    details: dict[str, Any]


class AuditTrail(Data):
    """A page of events, newest first."""

    events: list[AuditEntry]
    limit: int
    next_before: str | None = Field(description="Send as `before` for the next page; null on the last.")
