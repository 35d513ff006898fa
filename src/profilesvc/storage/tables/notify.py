"""The outbox (docs/events.md): events and deliveries. No foreign key leads to events, so old ones can be dropped."""

from sqlalchemy import BigInteger, CheckConstraint, ForeignKeyConstraint, Index, Text, UniqueConstraint, false
from sqlmodel import Field

from profilesvc.storage.tables.columns import ZERO, Tenant, instant, number, of_owner, partial_index, reference


class EventHeadRow(Tenant, table=True):
    """The number of an owner's newest event.

    Its row is locked until the transaction of an event ends, so that an owner's events have the order of their commits
    and a reader who continues after a number misses none.
    """

    __tablename__ = "event_heads"

    last: int = Field(sa_type=BigInteger)


class PublishedEventRow(Tenant, table=True):
    """An event that the owner can receive, from the transaction of its cause; deleted with its month after 30 days."""

    __tablename__ = "events"
    __table_args__ = (Index("ix_events_key", "owner_id", "key_id", "id"),)

    id: int = Field(primary_key=True, sa_type=BigInteger)
    created_at: int = instant(primary_key=True, index=True)
    type: str = Field(max_length=40)
    key_id: int | None = reference()
    location_name: str | None = Field(max_length=80)
    data: str = Field(sa_type=Text)


class WatchRow(Tenant, table=True):
    """The last state of a key that events reported, and its owner's choices for alerts.

    `state` is that of the last event, `new` before the first. The state that the API shows comes from the last
    heartbeat; the sweep compares both, because a heartbeat must stay an in-place update of one row.
    """

    __tablename__ = "watches"
    __table_args__ = (
        of_owner("key_id", "keys.id"),
        CheckConstraint("state IN ('new', 'never_connected', 'online', 'idle', 'offline')", name="state"),
    )

    key_id: int = reference(primary_key=True)
    state: str = Field(max_length=16, sa_column_kwargs={"server_default": "new"})
    changed_at: int = instant()
    site_mismatch: bool = Field(sa_column_kwargs={"server_default": false()})
    # The days before the end of the key that were announced last: 0, 7 or 1.
    expiry_announced: int = Field(sa_column_kwargs=ZERO)
    # How long after 24 hours without a heartbeat the key is reported as offline.
    grace_seconds: int = Field(sa_column_kwargs=ZERO)
    snoozed_until: int | None = instant()


class ReadingRow(Tenant, table=True):
    """The reviews of a location that the readings have listed, and when the schedule read it.

    `seen` is the JSON of the update times of the reviews that were updated last, by id; None before the first reading.
    It has all that were updated after `floor`.
    """

    __tablename__ = "readings"
    __table_args__ = (of_owner("location_name", "locations.name"),)

    location_name: str = Field(max_length=80, primary_key=True)
    reviews_at: int | None = instant()
    posts_at: int | None = instant()
    seen: str | None = Field(sa_type=Text)
    floor: int = instant(server_default="0")
    # Nothing that was read before these instants may be returned from a cache: a notification came since then.
    profile_from: int = instant(server_default="0")
    reviews_from: int = instant(server_default="0")
    # The digest of the provider's own changes that were published last; None while there are none.
    google_update: str | None = Field(max_length=64)


class MirrorRow(Tenant, table=True):
    """A response of the provider about a location's reviews, by the digest of the query. Deleted after a day."""

    __tablename__ = "mirrors"
    __table_args__ = (of_owner("location_name", "locations.name"),)

    location_name: str = Field(max_length=80, primary_key=True)
    query: str = Field(max_length=64, primary_key=True)
    read_at: int = instant(index=True)
    document: str = Field(sa_type=Text)


class ChannelRow(Tenant, table=True):
    """A receiver of an owner's events: a webhook endpoint, a chat's incoming webhook, or an e-mail address.

    A `notice` is the address of the login, for messages that the owner needs not ask for.

    `types` is a comma before and after each type, or empty for all. The secret of a webhook is derived from `nonce` and
    the pepper, so that it is not stored. `previous_nonce` signs for a day; that of an e-mail address is its first one.
    """

    __tablename__ = "channels"
    __table_args__ = (
        ForeignKeyConstraint(["owner_id"], ["users.id"]),
        CheckConstraint("kind IN ('webhook', 'slack', 'teams', 'discord', 'email', 'notice')", name="kind"),
        UniqueConstraint("owner_id", "target_digest"),
    )

    id: int | None = number()
    kind: str = Field(max_length=16)
    target: str = Field(sa_type=Text)
    target_digest: str = Field(max_length=64)
    description: str = Field(max_length=200, sa_column_kwargs={"server_default": ""})
    types: str = Field(sa_type=Text, sa_column_kwargs={"server_default": ""})
    settings: str = Field(sa_type=Text, sa_column_kwargs={"server_default": "{}"})
    nonce: str = Field(max_length=64)
    previous_nonce: str | None = Field(max_length=64)
    previous_until: int | None = instant()
    created_at: int = instant()
    confirmed_at: int | None = instant()
    failing_since: int | None = instant()
    disabled_at: int | None = instant()
    disabled_reason: str | None = Field(max_length=20)


class DeliveryRow(Tenant, table=True):
    """An event on its way to a channel. It is pending while `next_at`, the time of the next attempt, is set.

    A process claims it by moving `next_at` ahead, so that another one repeats the attempt if the first is killed.
    `claimed_until` is the same instant while an attempt runs: it counts the calls to a channel. `event_id` is None for
    a test. `attempts` is a JSON list, the oldest first.
    """

    __tablename__ = "deliveries"
    __table_args__ = (
        of_owner("channel_id", "channels.id"),
        CheckConstraint("state IN ('pending', 'delivered', 'failed', 'skipped')", name="state"),
        CheckConstraint("(state = 'pending') = (next_at IS NOT NULL)", name="pending_is_due"),
        partial_index("ix_deliveries_due", "next_at", where="next_at IS NOT NULL"),
        Index("ix_deliveries_channel", "owner_id", "channel_id", "id"),
        partial_index("ix_deliveries_claimed", "owner_id", "channel_id", where="claimed_until IS NOT NULL"),
    )

    id: int | None = number()
    channel_id: int = reference()
    event_id: int | None = Field(sa_type=BigInteger)
    created_at: int = instant(index=True)
    next_at: int | None = instant()
    claimed_until: int | None = instant()
    state: str = Field(max_length=16)
    tries: int = Field(sa_column_kwargs=ZERO)
    attempts: str = Field(sa_type=Text, sa_column_kwargs={"server_default": "[]"})
    finished_at: int | None = instant()
