"""The audit trail on the wire, an addition of this service."""

from typing import Literal, NamedTuple

from pydantic import Field

from profilesvc.contract.common import Cursor, Data, PageLimit, Query, UtcTime
from profilesvc.contract.json import JsonObject

Event = Literal[
    "key.created",
    "key.changed",
    "key.rolled",
    "key.secret_ended",
    "key.deactivated",
    "key.reactivated",
    "key.revoked",
    "key.expired",
    "key.badge",
    "alert.created",
    "alert.changed",
    "alert.confirmed",
    "alert.deleted",
    "alert.unsubscribed",
    "webhook.created",
    "webhook.changed",
    "webhook.rolled",
    "webhook.deleted",
    "token.issued",
    "token.refreshed",
    "token.refresh_replayed",
    "token.refresh_reuse",
    "auth.failed",
    "user.login",
    "user.signed_out",
    "user.session_ended",
    "user.exported",
    "user.deletion_requested",
    "user.deleted",
    "provider.connected",
    "provider.disconnected",
    "provider.imported",
    "provider.update_accepted",
    "provider.update_rejected",
]
Actor = Literal["user", "key", "operator", "client", "service"]


class AuditQuery(Query):
    """The page of the trail."""

    limit: PageLimit = 50
    before: Cursor | None = None


class AuditEntry(Data):
    """An event of a key or a user. It never contains a secret or a token."""

    event: Event
    at: UtcTime = Field(
        description="`details.count` is the number of events that an entry counts, all from one network: those of an "
        "hour for `auth.failed`, those of a day (UTC) for `token.issued`, `token.refreshed` and "
        "`token.refresh_replayed`. `at` is the first of them, `details.last_at` the last."
    )
    client_id: str | None = Field(description="The API key, if the event concerns one.")
    actor: Actor = Field(
        description="`client` is a caller that did not authenticate, `service` the service's own clock."
    )
    ip_prefix: str | None = Field(description="The caller's network, in CIDR notation.", examples=["192.0.2.0/24"])
    request_id: str | None
    details: JsonObject


class AuditTrail(Data):
    """A page of events, newest first."""

    events: list[AuditEntry]
    limit: int
    next_before: str | None = Field(description="Send as `before` for the next page; null on the last.")


class Wanted(NamedTuple):
    """The events that a search finds: of some kinds and keys, from one instant to before another. None: all."""

    events: list[Event] | None = None
    key_ids: list[int] | None = None
    since: int | None = None
    until: int | None = None
