"""The tables. Invariants are constraints; instants are milliseconds since the epoch, UTC.

A tenant's table has `owner_id`, the number of the user, as the first column of its primary key and in every unique
constraint and foreign key, and every statement on it names the owner: on a distributed database one shard has all
rows of an owner (D-101). The tables of no tenant are in `directories.py`.

Provider-shaped data is the provider's JSON document as text; the other columns are those that queries filter or
sort by and those that decide something. There is no relationship(): queries join explicitly.
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
    bindparam,
    text,
)
from sqlmodel import Field

from profilesvc.database.schema import metadata as metadata
from profilesvc.storage.tables import accounts as accounts  # completes the metadata
from profilesvc.storage.tables import insight as insight
from profilesvc.storage.tables import logins as logins
from profilesvc.storage.tables import notify as notify
from profilesvc.storage.tables import writing as writing
from profilesvc.storage.tables.columns import number, of_owner, owner
from profilesvc.storage.tables.directories import DIRECTORIES, ID, REFERENCES, Table


class UserRow(Table, table=True):
    """A dashboard user: the owner of rows with this number. A log-out raises `epoch`, which ends the earlier tokens."""

    __tablename__ = "users"

    id: int | None = Field(default=None, sa_column=Column(ID, primary_key=True, autoincrement=True))
    email: str = Field(sa_column=Column(String(320), nullable=False))
    name: str = Field(sa_column=Column(String(200), nullable=False))
    plan: str = Field(sa_column=Column(String(64), nullable=False))
    epoch: int = Field(default=0, sa_column=Column(BigInteger, nullable=False, server_default="0"))
    suspended_at: int | None = Field(default=None, sa_column=Column(BigInteger))
    created_at: int = Field(sa_column=Column(BigInteger, nullable=False))
    # The newest billing event that was received: an older one that arrives late changes nothing.
    billing_version: int = Field(default=0, sa_column=Column(BigInteger, nullable=False, server_default="0"))
    unpaid_since: int | None = Field(default=None, sa_column=Column(BigInteger))


class BusinessRow(Table, table=True):
    """A business of a user; locations and keys belong to one."""

    __tablename__ = "businesses"
    __table_args__ = (ForeignKeyConstraint(["owner_id"], ["users.id"]),)

    owner_id: int = Field(sa_column=owner())
    id: int | None = Field(default=None, sa_column=number())
    name: str = Field(sa_column=Column(String(200), nullable=False))
    created_at: int = Field(sa_column=Column(BigInteger, nullable=False))


_IS_REACHED = text("disconnected_at IS NULL")


class LocationRow(Table, table=True):
    """A cached location of the provider, and the settings and state that the service adds."""

    __tablename__ = "locations"
    __table_args__ = (
        ForeignKeyConstraint(["owner_id"], ["users.id"]),
        of_owner("business_id", "businesses.id"),
        CheckConstraint("NOT sync_enabled OR is_verified", name="sync_needs_verification"),
        CheckConstraint("(business_id IS NULL) = (assigned_at IS NULL)", name="assignment_whole"),
        Index("ix_locations_list", "owner_id", "title", "name"),
        Index(
            "ix_locations_checked",
            *("checked_at", "owner_id", "name"),
            sqlite_where=_IS_REACHED,
            postgresql_where=_IS_REACHED,
        ),
    )

    owner_id: int = Field(sa_column=owner())
    name: str = Field(sa_column=Column(String(80), primary_key=True))
    business_id: int | None = Field(default=None, sa_column=Column(ID))
    assigned_at: int | None = Field(default=None, sa_column=Column(BigInteger))
    account: str = Field(sa_column=Column(String(80), nullable=False))
    title: str = Field(sa_column=Column(Text, nullable=False))
    profile: str = Field(sa_column=Column(Text, nullable=False))
    profile_read_at: int = Field(sa_column=Column(BigInteger, nullable=False))
    is_verified: bool = Field(sa_column=Column(Boolean, nullable=False))
    verification_state: str = Field(sa_column=Column(String(40), nullable=False))
    sync_enabled: bool = Field(default=False, sa_column=Column(Boolean, nullable=False))
    source: str | None = Field(default=None, sa_column=Column(Text))
    last_sync: str | None = Field(default=None, sa_column=Column(Text))
    posts_read_at: int | None = Field(default=None, sa_column=Column(BigInteger))
    sync_lease: str | None = Field(default=None, sa_column=Column(String(32)))
    sync_lease_until: int | None = Field(default=None, sa_column=Column(BigInteger))
    # The digest of the differences that the last `profile.drifted` reported; None while there are none.
    drift: str | None = Field(default=None, sa_column=Column(String(64)))
    # The owner's login that reaches it; None: the installation's own login.
    connection_id: int | None = Field(default=None, sa_column=Column(ID))
    disconnected_at: int | None = Field(default=None, sa_column=Column(BigInteger))
    # When the background check read the provider last (`operations/feed/readings.py`).
    checked_at: int = Field(default=0, sa_column=Column(BigInteger, nullable=False, server_default="0"))


_NOT_REVOKED = text("revoked_at IS NULL")  # an index of the live keys stays small, however many keys are revoked
_HAS_BADGE = text("badge_digest IS NOT NULL")


class KeyRow(Table, table=True):
    """An API key. It is active if it is not revoked, not expired and has no hold. Its client id contains its owner."""

    __tablename__ = "keys"
    __table_args__ = (
        ForeignKeyConstraint(["owner_id"], ["users.id"]),
        of_owner("business_id", "businesses.id"),
        of_owner("location_name", "locations.name"),
        UniqueConstraint("owner_id", "client_id"),
        Index("ix_keys_live", "owner_id", "id", sqlite_where=_NOT_REVOKED, postgresql_where=_NOT_REVOKED),
        Index("ix_keys_location", "owner_id", "location_name"),
        Index(
            "ix_keys_badge",
            "owner_id",
            "badge_digest",
            unique=True,
            sqlite_where=_HAS_BADGE,
            postgresql_where=_HAS_BADGE,
        ),
    )

    owner_id: int = Field(sa_column=owner())
    id: int | None = Field(default=None, sa_column=number())
    client_id: str = Field(sa_column=Column(String(160), nullable=False))
    business_id: int = Field(sa_column=Column(ID, nullable=False))
    location_name: str = Field(sa_column=Column(String(80), nullable=False))
    name: str = Field(sa_column=Column(String(100), nullable=False))
    permissions: str = Field(sa_column=Column(String(64), nullable=False))
    primary_domain: str | None = Field(default=None, sa_column=Column(String(253)))
    allowed_domains: str = Field(sa_column=Column(Text, nullable=False))
    epoch: int = Field(default=0, sa_column=Column(BigInteger, nullable=False, server_default="0"))
    created_at: int = Field(sa_column=Column(BigInteger, nullable=False))
    expires_at: int | None = Field(default=None, sa_column=Column(BigInteger, index=True))
    revoked_at: int | None = Field(default=None, sa_column=Column(BigInteger))
    last_used_at: int | None = Field(default=None, sa_column=Column(BigInteger))
    # The newest billing event for this key, as for its owner.
    billing_version: int = Field(default=0, sa_column=Column(BigInteger, nullable=False, server_default="0"))
    # The digest of the secret in the link of the status badge, while its owner shows one.
    badge_digest: str | None = Field(default=None, sa_column=Column(String(64)))


class SecretRow(Table, table=True):
    """The digest of a client secret; the secret itself is never stored."""

    __tablename__ = "secrets"
    __table_args__ = (of_owner("key_id", "keys.id"),)

    owner_id: int = Field(sa_column=owner())
    key_id: int = Field(sa_column=Column(ID, primary_key=True, autoincrement=False))
    digest: str = Field(sa_column=Column(String(64), primary_key=True))
    created_at: int = Field(sa_column=Column(BigInteger, nullable=False))
    expires_at: int | None = Field(default=None, sa_column=Column(BigInteger, index=True))


class HoldRow(Table, table=True):
    """A reason why a key is deactivated; the most severe one is shown."""

    __tablename__ = "holds"
    __table_args__ = (
        of_owner("key_id", "keys.id"),
        CheckConstraint(
            "reason IN ('security_concern', 'billing_issue', 'plan_downgrade', 'user_requested')", name="reason"
        ),
    )

    owner_id: int = Field(sa_column=owner())
    key_id: int = Field(sa_column=Column(ID, primary_key=True, autoincrement=False))
    reason: str = Field(sa_column=Column(String(32), primary_key=True))
    severity: int = Field(sa_column=Column(Integer, nullable=False))
    set_at: int = Field(sa_column=Column(BigInteger, nullable=False))


class ConnectionRow(Table, table=True):
    """The last heartbeat of a key."""

    __tablename__ = "connections"
    __table_args__ = (of_owner("key_id", "keys.id"),)

    owner_id: int = Field(sa_column=owner())
    key_id: int = Field(sa_column=Column(ID, primary_key=True, autoincrement=False))
    last_heartbeat_at: int = Field(sa_column=Column(BigInteger, nullable=False))
    plugin_version: str | None = Field(default=None, sa_column=Column(Text))
    wp_version: str | None = Field(default=None, sa_column=Column(Text))
    php_version: str | None = Field(default=None, sa_column=Column(Text))
    detected_plugins: str | None = Field(default=None, sa_column=Column(Text))
    # The site that the heartbeats name, and the one before it: two within a day mean a clone or a staging copy.
    site_host: str | None = Field(default=None, sa_column=Column(String(253)))
    site_host_at: int | None = Field(default=None, sa_column=Column(BigInteger))
    other_site_host: str | None = Field(default=None, sa_column=Column(String(253)))
    other_site_host_at: int | None = Field(default=None, sa_column=Column(BigInteger))


class ContactRow(Table, table=True):
    """A run of contact within a month; the 30-day history is computed from these runs.

    A run that goes on into the next month has a row in each, so that `started_at`, which never changes, shows its age.
    An index on `ended_at` would be written by every heartbeat.
    """

    __tablename__ = "contacts"
    __table_args__ = (of_owner("key_id", "keys.id"),)

    owner_id: int = Field(sa_column=owner())
    key_id: int = Field(sa_column=Column(ID, primary_key=True, autoincrement=False))
    started_at: int = Field(sa_column=Column(BigInteger, primary_key=True, autoincrement=False, index=True))
    ended_at: int = Field(sa_column=Column(BigInteger, nullable=False))


class PostRow(Table, table=True):
    """A cached post: the document as the list returns it, with names that do not contain the account."""

    __tablename__ = "posts"
    __table_args__ = (
        of_owner("location_name", "locations.name"),
        Index("ix_posts_list", "owner_id", "location_name", "created_at", "post_id"),
        Index("ix_posts_in_review", "owner_id", "location_name", "state", "read_at"),
    )

    owner_id: int = Field(sa_column=owner())
    location_name: str = Field(sa_column=Column(String(80), primary_key=True))
    post_id: str = Field(sa_column=Column(String(80), primary_key=True))
    created_at: int = Field(sa_column=Column(BigInteger, nullable=False))
    state: str = Field(sa_column=Column(String(40), nullable=False))
    read_at: int = Field(sa_column=Column(BigInteger, nullable=False))
    document: str = Field(sa_column=Column(Text, nullable=False))


class SyncRow(Table, table=True):
    """An entry of the sync history, deleted with its month after 400 days."""

    __tablename__ = "syncs"
    __table_args__ = (
        CheckConstraint("status IN ('success', 'skipped', 'failed')", name="status"),
        CheckConstraint("direction IN ('push', 'pull')", name="direction"),
        of_owner("location_name", "locations.name"),
        UniqueConstraint("owner_id", "sync_id", "created_at"),
    )

    owner_id: int = Field(sa_column=owner())
    location_name: str = Field(sa_column=Column(String(80), primary_key=True))
    created_at: int = Field(sa_column=Column(BigInteger, primary_key=True, autoincrement=False, index=True))
    id: int | None = Field(default=None, sa_column=number())
    sync_id: str = Field(sa_column=Column(String(40), nullable=False))
    status: str = Field(sa_column=Column(String(16), nullable=False))
    direction: str = Field(sa_column=Column(String(8), nullable=False))
    fields_updated: int = Field(sa_column=Column(Integer, nullable=False))


class IdempotencyRow(Table, table=True):
    """The latest attempt with an idempotency key, and its response once it is stored."""

    __tablename__ = "idempotency"

    owner_id: int = Field(sa_column=owner())
    scope: str = Field(sa_column=Column(String(64), primary_key=True))
    fingerprint: str = Field(sa_column=Column(String(64), nullable=False))
    fence: int = Field(sa_column=Column(Integer, nullable=False))
    lease_until: int = Field(sa_column=Column(BigInteger, nullable=False))
    created_at: int = Field(sa_column=Column(BigInteger, nullable=False, index=True))
    status: int | None = Field(default=None, sa_column=Column(Integer))
    answer: str | None = Field(default=None, sa_column=Column(Text))
    location_name: str | None = Field(default=None, sa_column=Column(String(80)))  # None: of a version before 0009


class FamilyRow(Table, table=True):
    """The refresh tokens that descend from one grant. The first exchange inserts the row.

    `successor` holds the claims of the newest pair, from which the same tokens can be signed again, so that the tokens
    themselves are not stored.
    """

    __tablename__ = "families"
    __table_args__ = (of_owner("key_id", "keys.id"), CheckConstraint("generation > 0", name="exchanged"))

    owner_id: int = Field(sa_column=owner())
    id: str = Field(sa_column=Column(String(32), primary_key=True))
    key_id: int = Field(sa_column=Column(ID, nullable=False))
    generation: int = Field(sa_column=Column(BigInteger, nullable=False))
    rotated_at: int = Field(sa_column=Column(BigInteger, nullable=False))
    expires_at: int = Field(sa_column=Column(BigInteger, nullable=False, index=True))
    successor: str = Field(sa_column=Column(Text, nullable=False))


class RevocationRow(Table, table=True):
    """A revoked token (jti) or family (fam). Every request looks here."""

    __tablename__ = "revocations"
    __table_args__ = (CheckConstraint("kind IN ('token', 'family')", name="kind"),)

    owner_id: int = Field(sa_column=owner())
    id: str = Field(sa_column=Column(String(64), primary_key=True))
    kind: str = Field(sa_column=Column(String(16), nullable=False))
    revoked_at: int = Field(sa_column=Column(BigInteger, nullable=False))
    expires_at: int = Field(sa_column=Column(BigInteger, nullable=False, index=True))


class AuditRow(Table, table=True):
    """An event of the audit trail, deleted with its month after 400 days.

    Rows are only appended, except that events with the same `once` share one row: the failures of an hour, which
    `times` counts, and the end of a key. `month` is the start of the month of `at`: an earlier occurrence can change
    `at`, but a row must stay in its partition.
    """

    __tablename__ = "audit"
    __table_args__ = (
        ForeignKeyConstraint(["owner_id"], ["users.id"]),
        of_owner("key_id", "keys.id"),
        UniqueConstraint("owner_id", "once", "month"),
        Index("ix_audit_key", "owner_id", "key_id", "at", "id"),
    )

    owner_id: int = Field(sa_column=owner())
    at: int = Field(sa_column=Column(BigInteger, primary_key=True, autoincrement=False, index=True))
    id: int | None = Field(default=None, sa_column=number())
    month: int = Field(sa_column=Column(BigInteger, primary_key=True, autoincrement=False))
    event: str = Field(sa_column=Column(String(40), nullable=False))
    key_id: int | None = Field(default=None, sa_column=Column(ID))
    actor: str = Field(sa_column=Column(String(200), nullable=False))
    ip_prefix: str | None = Field(default=None, sa_column=Column(String(64)))
    request_id: str | None = Field(default=None, sa_column=Column(String(64)))
    details: str | None = Field(default=None, sa_column=Column(Text))
    once: str | None = Field(default=None, sa_column=Column(String(120)))
    times: int = Field(default=1, sa_column=Column(BigInteger, nullable=False, server_default="1"))


TENANTS = frozenset(metadata.tables) - frozenset(DIRECTORIES) - REFERENCES  # by `owner_id`, and `users` by its `id`
OWNER = bindparam("owner_id", type_=BigInteger)  # the owner in prepared statements

# The same tables for queries that select columns; reads never build entities.
users = metadata.tables["users"]
emails = metadata.tables["emails"]
businesses = metadata.tables["businesses"]
location_owners = metadata.tables["location_owners"]
locations = metadata.tables["locations"]
keys = metadata.tables["keys"]
key_domains = metadata.tables["key_domains"]
secrets = metadata.tables["secrets"]
holds = metadata.tables["holds"]
connections = metadata.tables["connections"]
contacts = metadata.tables["contacts"]
posts = metadata.tables["posts"]
post_usage = metadata.tables["post_usage"]
syncs = metadata.tables["syncs"]
idempotency = metadata.tables["idempotency"]
families = metadata.tables["families"]
revocations = metadata.tables["revocations"]
signing_keys = metadata.tables["signing_keys"]
identities = metadata.tables["identities"]
exchanges = metadata.tables["exchanges"]
audit = metadata.tables["audit"]
census = metadata.tables["census"]
leases = metadata.tables["leases"]
event_heads = metadata.tables["event_heads"]
events = metadata.tables["events"]
watches = metadata.tables["watches"]
sweep_marks = metadata.tables["sweep_marks"]
readings = metadata.tables["readings"]
mirrors = metadata.tables["mirrors"]
notifications = metadata.tables["notifications"]
changed_locations = metadata.tables["changed_locations"]
channels = metadata.tables["channels"]
deliveries = metadata.tables["deliveries"]
provider_connections = metadata.tables["provider_connections"]
drafts = metadata.tables["drafts"]
photos = metadata.tables["photos"]
reply_templates = metadata.tables["reply_templates"]
sessions = metadata.tables["sessions"]
deletions = metadata.tables["deletions"]
