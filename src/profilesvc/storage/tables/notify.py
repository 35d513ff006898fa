"""The tables of events and of their delivery: the outbox (docs/events.md).

They follow the rules of `tables.py`. Nothing refers to `events` by a foreign key, so that old events can be dropped.
"""

from sqlalchemy import (
    BigInteger,
    Boolean,
    CheckConstraint,
    Column,
    ForeignKeyConstraint,
    Index,
    Integer,
    String,
    Text,
    UniqueConstraint,
    false,
    text,
)
from sqlmodel import Field

from profilesvc.storage.tables.columns import number, of_owner, owner
from profilesvc.storage.tables.directories import ID, Table

_PENDING = text("next_at IS NOT NULL")  # the index of pending deliveries stays small, however many are finished
_CLAIMED = text("claimed_until IS NOT NULL")


class EventHeadRow(Table, table=True):
    """The number of an owner's newest event.

    Its row is locked until the transaction of an event ends, so that an owner's events have the order of their commits
    and a reader who continues after a number misses none.
    """

    __tablename__ = "event_heads"

    owner_id: int = Field(sa_column=owner())
    last: int = Field(sa_column=Column(BigInteger, nullable=False))


class PublishedEventRow(Table, table=True):
    """An event that the owner can receive, written in the transaction of its cause.

    It is deleted with its month after 30 days.
    """

    __tablename__ = "events"
    __table_args__ = (Index("ix_events_key", "owner_id", "key_id", "id"),)

    owner_id: int = Field(sa_column=owner())
    id: int = Field(sa_column=Column(BigInteger, primary_key=True, autoincrement=False))
    created_at: int = Field(sa_column=Column(BigInteger, primary_key=True, autoincrement=False, index=True))
    type: str = Field(sa_column=Column(String(40), nullable=False))
    key_id: int | None = Field(default=None, sa_column=Column(ID))
    location_name: str | None = Field(default=None, sa_column=Column(String(80)))
    data: str = Field(sa_column=Column(Text, nullable=False))


class WatchRow(Table, table=True):
    """The last state of a key that events reported, and its owner's choices for alerts.

    `state` is that of the last event, `new` before the first. The state that the API shows comes from the last
    heartbeat; the sweep compares both, because a heartbeat must stay an in-place update of one row.
    """

    __tablename__ = "watches"
    __table_args__ = (
        of_owner("key_id", "keys.id"),
        CheckConstraint("state IN ('new', 'never_connected', 'online', 'idle', 'offline')", name="state"),
    )

    owner_id: int = Field(sa_column=owner())
    key_id: int = Field(sa_column=Column(ID, primary_key=True, autoincrement=False))
    state: str = Field(sa_column=Column(String(16), nullable=False, server_default="new"))
    changed_at: int = Field(sa_column=Column(BigInteger, nullable=False))
    site_mismatch: bool = Field(default=False, sa_column=Column(Boolean, nullable=False, server_default=false()))
    # The days before the end of the key that were announced last: 0, 7 or 1.
    expiry_announced: int = Field(default=0, sa_column=Column(Integer, nullable=False, server_default="0"))
    # How long after 24 hours without a heartbeat the key is reported as offline.
    grace_seconds: int = Field(default=0, sa_column=Column(Integer, nullable=False, server_default="0"))
    snoozed_until: int | None = Field(default=None, sa_column=Column(BigInteger))


class ReadingRow(Table, table=True):
    """The reviews of a location that the readings have listed, and when the schedule read it.

    `seen` is the JSON of the update times of the reviews that were updated last, by id; None before the first reading.
    It has all that were updated after `floor`.
    """

    __tablename__ = "readings"
    __table_args__ = (of_owner("location_name", "locations.name"),)

    owner_id: int = Field(sa_column=owner())
    location_name: str = Field(sa_column=Column(String(80), primary_key=True))
    reviews_at: int | None = Field(default=None, sa_column=Column(BigInteger))
    posts_at: int | None = Field(default=None, sa_column=Column(BigInteger))
    seen: str | None = Field(default=None, sa_column=Column(Text))
    floor: int = Field(default=0, sa_column=Column(BigInteger, nullable=False, server_default="0"))
    # Nothing that was read before these instants may be returned from a cache: a notification came since then.
    profile_from: int = Field(default=0, sa_column=Column(BigInteger, nullable=False, server_default="0"))
    reviews_from: int = Field(default=0, sa_column=Column(BigInteger, nullable=False, server_default="0"))
    # The digest of the provider's own changes that were published last; None while there are none.
    google_update: str | None = Field(default=None, sa_column=Column(String(64)))


class MirrorRow(Table, table=True):
    """A response of the provider about a location's reviews, by the digest of the query. Deleted after a day."""

    __tablename__ = "mirrors"
    __table_args__ = (of_owner("location_name", "locations.name"),)

    owner_id: int = Field(sa_column=owner())
    location_name: str = Field(sa_column=Column(String(80), primary_key=True))
    query: str = Field(sa_column=Column(String(64), primary_key=True))
    read_at: int = Field(sa_column=Column(BigInteger, nullable=False, index=True))
    document: str = Field(sa_column=Column(Text, nullable=False))


class ChannelRow(Table, table=True):
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

    owner_id: int = Field(sa_column=owner())
    id: int | None = Field(default=None, sa_column=number())
    kind: str = Field(sa_column=Column(String(16), nullable=False))
    target: str = Field(sa_column=Column(Text, nullable=False))
    target_digest: str = Field(sa_column=Column(String(64), nullable=False))
    description: str = Field(default="", sa_column=Column(String(200), nullable=False, server_default=""))
    types: str = Field(default="", sa_column=Column(Text, nullable=False, server_default=""))
    settings: str = Field(default="{}", sa_column=Column(Text, nullable=False, server_default="{}"))
    nonce: str = Field(sa_column=Column(String(64), nullable=False))
    previous_nonce: str | None = Field(default=None, sa_column=Column(String(64)))
    previous_until: int | None = Field(default=None, sa_column=Column(BigInteger))
    created_at: int = Field(sa_column=Column(BigInteger, nullable=False))
    confirmed_at: int | None = Field(default=None, sa_column=Column(BigInteger))
    failing_since: int | None = Field(default=None, sa_column=Column(BigInteger))
    disabled_at: int | None = Field(default=None, sa_column=Column(BigInteger))
    disabled_reason: str | None = Field(default=None, sa_column=Column(String(20)))


class DeliveryRow(Table, table=True):
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
        Index("ix_deliveries_due", "next_at", sqlite_where=_PENDING, postgresql_where=_PENDING),
        Index("ix_deliveries_channel", "owner_id", "channel_id", "id"),
        Index("ix_deliveries_claimed", "owner_id", "channel_id", sqlite_where=_CLAIMED, postgresql_where=_CLAIMED),
    )

    owner_id: int = Field(sa_column=owner())
    id: int | None = Field(default=None, sa_column=number())
    channel_id: int = Field(sa_column=Column(ID, nullable=False))
    event_id: int | None = Field(default=None, sa_column=Column(BigInteger))
    created_at: int = Field(sa_column=Column(BigInteger, nullable=False, index=True))
    next_at: int | None = Field(default=None, sa_column=Column(BigInteger))
    claimed_until: int | None = Field(default=None, sa_column=Column(BigInteger))
    state: str = Field(sa_column=Column(String(16), nullable=False))
    tries: int = Field(default=0, sa_column=Column(Integer, nullable=False, server_default="0"))
    attempts: str = Field(default="[]", sa_column=Column(Text, nullable=False, server_default="[]"))
    finished_at: int | None = Field(default=None, sa_column=Column(BigInteger))
