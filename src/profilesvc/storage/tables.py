"""Every table. Invariants are constraints; instants are milliseconds since the epoch, UTC.

Provider-shaped data is the provider's JSON document as text; the other columns are those that queries filter or
sort by and those that decide something. There is no relationship(): queries join explicitly.
"""

from sqlalchemy import (
    BigInteger,
    Boolean,
    CheckConstraint,
    Column,
    ForeignKey,
    Index,
    Integer,
    String,
    Text,
    text,
)
from sqlalchemy.orm import registry
from sqlmodel import Field, SQLModel

from profilesvc.database.schema import metadata as metadata

ID = BigInteger().with_variant(Integer, "sqlite")  # SQLite generates ids only for INTEGER PRIMARY KEY


class Table(SQLModel, registry=registry(metadata=metadata)):
    """The service's tables, apart from the emulator's."""


class UserRow(Table, table=True):
    """A dashboard user. A log-out increments `epoch`, which ends the tokens issued before."""

    __tablename__ = "users"

    id: int | None = Field(default=None, sa_column=Column(ID, primary_key=True, autoincrement=True))
    email: str = Field(sa_column=Column(String(320), nullable=False, unique=True))
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

    id: int | None = Field(default=None, sa_column=Column(ID, primary_key=True, autoincrement=True))
    user_id: int = Field(sa_column=Column(ForeignKey("users.id"), nullable=False, index=True))
    name: str = Field(sa_column=Column(String(200), nullable=False))
    created_at: int = Field(sa_column=Column(BigInteger, nullable=False))


class LocationRow(Table, table=True):
    """A cached location of the provider, and the settings and state that the service adds."""

    __tablename__ = "locations"
    __table_args__ = (
        CheckConstraint("NOT sync_enabled OR is_verified", name="sync_needs_verification"),
        CheckConstraint("(business_id IS NULL) = (assigned_at IS NULL)", name="assignment_whole"),
        Index("ix_locations_list", "user_id", "title", "name"),
    )

    name: str = Field(sa_column=Column(String(80), primary_key=True))
    user_id: int = Field(sa_column=Column(ForeignKey("users.id"), nullable=False))
    business_id: int | None = Field(default=None, sa_column=Column(ForeignKey("businesses.id"), index=True))
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


_NOT_REVOKED = text("revoked_at IS NULL")  # an index of the live keys stays small, however many keys are revoked


class KeyRow(Table, table=True):
    """An API key. It is active if it is not revoked, not expired and has no hold."""

    __tablename__ = "keys"
    __table_args__ = (
        Index("ix_keys_owner", "user_id", "id"),
        Index("ix_keys_live", "user_id", "id", sqlite_where=_NOT_REVOKED, postgresql_where=_NOT_REVOKED),
        Index("ix_keys_location_name", "location_name"),
    )

    id: int | None = Field(default=None, sa_column=Column(ID, primary_key=True, autoincrement=True))
    client_id: str = Field(sa_column=Column(String(160), nullable=False, unique=True))
    user_id: int = Field(sa_column=Column(ForeignKey("users.id"), nullable=False))
    business_id: int = Field(sa_column=Column(ForeignKey("businesses.id"), nullable=False, index=True))
    location_name: str = Field(sa_column=Column(ForeignKey("locations.name"), nullable=False))
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
    badge_digest: str | None = Field(default=None, sa_column=Column(String(64), unique=True, index=True))


class KeyDomainRow(Table, table=True):
    """A domain from which a key accepts requests until it expires; an empty one if it accepts every domain."""

    __tablename__ = "key_domains"

    domain: str = Field(sa_column=Column(String(253), primary_key=True))
    until: int = Field(sa_column=Column(BigInteger, primary_key=True, autoincrement=False, index=True))
    key_id: int = Field(sa_column=Column(ForeignKey("keys.id"), primary_key=True, autoincrement=False, index=True))


class SecretRow(Table, table=True):
    """The digest of a client secret; the secret itself is never stored."""

    __tablename__ = "secrets"

    id: int | None = Field(default=None, sa_column=Column(ID, primary_key=True, autoincrement=True))
    key_id: int = Field(sa_column=Column(ForeignKey("keys.id"), nullable=False, index=True))
    digest: str = Field(sa_column=Column(String(64), nullable=False))
    created_at: int = Field(sa_column=Column(BigInteger, nullable=False))
    expires_at: int | None = Field(default=None, sa_column=Column(BigInteger, index=True))


class HoldRow(Table, table=True):
    """A reason why a key is deactivated; the most severe one is shown."""

    __tablename__ = "holds"
    __table_args__ = (
        CheckConstraint(
            "reason IN ('security_concern', 'billing_issue', 'plan_downgrade', 'user_requested')", name="reason"
        ),
    )

    key_id: int = Field(sa_column=Column(ForeignKey("keys.id"), primary_key=True, autoincrement=False))
    reason: str = Field(sa_column=Column(String(32), primary_key=True))
    severity: int = Field(sa_column=Column(Integer, nullable=False))
    set_at: int = Field(sa_column=Column(BigInteger, nullable=False))


class ConnectionRow(Table, table=True):
    """The last heartbeat of a key."""

    __tablename__ = "connections"

    key_id: int = Field(sa_column=Column(ForeignKey("keys.id"), primary_key=True, autoincrement=False))
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
    """An unbroken run of contact; the 30-day history is computed from these runs."""

    __tablename__ = "contacts"

    key_id: int = Field(sa_column=Column(ForeignKey("keys.id"), primary_key=True, autoincrement=False))
    started_at: int = Field(sa_column=Column(BigInteger, primary_key=True, autoincrement=False))
    ended_at: int = Field(sa_column=Column(BigInteger, nullable=False))


class PostRow(Table, table=True):
    """A cached post: the document as the list returns it, with names that do not contain the account."""

    __tablename__ = "posts"
    __table_args__ = (
        Index("ix_posts_list", "location_name", "created_at", "post_id"),
        Index("ix_posts_in_review", "location_name", "state", "read_at"),
    )

    location_name: str = Field(sa_column=Column(ForeignKey("locations.name"), primary_key=True))
    post_id: str = Field(sa_column=Column(String(80), primary_key=True))
    created_at: int = Field(sa_column=Column(BigInteger, nullable=False))
    state: str = Field(sa_column=Column(String(40), nullable=False))
    read_at: int = Field(sa_column=Column(BigInteger, nullable=False))
    document: str = Field(sa_column=Column(Text, nullable=False))


class PostUsageRow(Table, table=True):
    """How many posts the owner of the locations created in a calendar month (UTC)."""

    __tablename__ = "post_usage"
    __table_args__ = (CheckConstraint("used >= 0", name="not_negative"),)

    user_id: int = Field(sa_column=Column(ForeignKey("users.id"), primary_key=True, autoincrement=False))
    month: int = Field(sa_column=Column(BigInteger, primary_key=True, autoincrement=False))
    used: int = Field(sa_column=Column(Integer, nullable=False))


class SyncRow(Table, table=True):
    """An entry of the sync history, deleted after 400 days."""

    __tablename__ = "syncs"
    __table_args__ = (
        CheckConstraint("status IN ('success', 'skipped', 'failed')", name="status"),
        CheckConstraint("direction IN ('push', 'pull')", name="direction"),
        Index("ix_syncs_history", "location_name", "created_at", "id"),
    )

    id: int | None = Field(default=None, sa_column=Column(ID, primary_key=True, autoincrement=True))
    sync_id: str = Field(sa_column=Column(String(40), nullable=False, unique=True))
    location_name: str = Field(sa_column=Column(ForeignKey("locations.name"), nullable=False))
    created_at: int = Field(sa_column=Column(BigInteger, nullable=False, index=True))
    status: str = Field(sa_column=Column(String(16), nullable=False))
    direction: str = Field(sa_column=Column(String(8), nullable=False))
    fields_updated: int = Field(sa_column=Column(Integer, nullable=False))


class IdempotencyRow(Table, table=True):
    """The latest attempt with an idempotency key, and its response once it is stored."""

    __tablename__ = "idempotency"

    scope: str = Field(sa_column=Column(String(64), primary_key=True))
    fingerprint: str = Field(sa_column=Column(String(64), nullable=False))
    fence: int = Field(sa_column=Column(Integer, nullable=False))
    lease_until: int = Field(sa_column=Column(BigInteger, nullable=False))
    created_at: int = Field(sa_column=Column(BigInteger, nullable=False, index=True))
    status: int | None = Field(default=None, sa_column=Column(Integer))
    answer: str | None = Field(default=None, sa_column=Column(Text))


class FamilyRow(Table, table=True):
    """The refresh tokens that descend from one grant. The first exchange inserts the row.

    `successor` holds the claims of the newest pair, from which the same tokens can be signed again, so that the tokens
    themselves are not stored.
    """

    __tablename__ = "families"
    __table_args__ = (CheckConstraint("generation > 0", name="exchanged"),)

    id: str = Field(sa_column=Column(String(32), primary_key=True))
    key_id: int = Field(sa_column=Column(ForeignKey("keys.id"), nullable=False, index=True))
    generation: int = Field(sa_column=Column(BigInteger, nullable=False))
    rotated_at: int = Field(sa_column=Column(BigInteger, nullable=False))
    expires_at: int = Field(sa_column=Column(BigInteger, nullable=False, index=True))
    successor: str = Field(sa_column=Column(Text, nullable=False))


class RevocationRow(Table, table=True):
    """A revoked token (jti), family (fam) or signing key (kid). Every request looks here."""

    __tablename__ = "revocations"
    __table_args__ = (CheckConstraint("kind IN ('token', 'family', 'signing_key')", name="kind"),)

    id: str = Field(sa_column=Column(String(64), primary_key=True))
    kind: str = Field(sa_column=Column(String(16), nullable=False))
    revoked_at: int = Field(sa_column=Column(BigInteger, nullable=False))
    expires_at: int = Field(sa_column=Column(BigInteger, nullable=False, index=True))


class SigningKeyRow(Table, table=True):
    """A signing key: published before `active_from`, active until the next key of its algorithm is, then retired."""

    __tablename__ = "signing_keys"
    __table_args__ = (CheckConstraint("(private_pem IS NULL) = (removed_at IS NOT NULL)", name="removed_whole"),)

    kid: str = Field(sa_column=Column(String(64), primary_key=True))
    private_pem: str | None = Field(sa_column=Column(Text))
    created_at: int = Field(sa_column=Column(BigInteger, nullable=False))
    active_from: int = Field(sa_column=Column(BigInteger, nullable=False))
    removed_at: int | None = Field(default=None, sa_column=Column(BigInteger))
    alg: str = Field(sa_column=Column(String(8), nullable=False, server_default="RS256"))


class IdentityRow(Table, table=True):
    """A user's subject at an external identity provider. It is never looked up by e-mail address, which can change."""

    __tablename__ = "identities"

    issuer: str = Field(sa_column=Column(String(255), primary_key=True))
    subject: str = Field(sa_column=Column(String(255), primary_key=True))
    user_id: int = Field(sa_column=Column(ForeignKey("users.id"), nullable=False, index=True))
    created_at: int = Field(sa_column=Column(BigInteger, nullable=False))


class ExchangeRow(Table, table=True):
    """The digest of an ID token that was exchanged. Each can be exchanged only once."""

    __tablename__ = "exchanges"

    digest: str = Field(sa_column=Column(String(64), primary_key=True))
    expires_at: int = Field(sa_column=Column(BigInteger, nullable=False, index=True))


class AuditRow(Table, table=True):
    """An event of the audit trail, deleted after 400 days.

    Rows are only appended, except that events with the same `once` share one row: the failures of an hour, which
    `times` counts, and the end of a key.
    """

    __tablename__ = "audit"
    __table_args__ = (Index("ix_audit_owner", "user_id", "at", "id"), Index("ix_audit_key", "key_id", "at", "id"))

    id: int | None = Field(default=None, sa_column=Column(ID, primary_key=True, autoincrement=True))
    at: int = Field(sa_column=Column(BigInteger, nullable=False, index=True))
    event: str = Field(sa_column=Column(String(40), nullable=False))
    user_id: int = Field(sa_column=Column(ForeignKey("users.id"), nullable=False))
    key_id: int | None = Field(default=None, sa_column=Column(ForeignKey("keys.id")))
    actor: str = Field(sa_column=Column(String(200), nullable=False))
    ip_prefix: str | None = Field(default=None, sa_column=Column(String(64)))
    request_id: str | None = Field(default=None, sa_column=Column(String(64)))
    details: str | None = Field(default=None, sa_column=Column(Text))
    once: str | None = Field(default=None, sa_column=Column(String(120), unique=True))
    times: int = Field(default=1, sa_column=Column(BigInteger, nullable=False, server_default="1"))


class CountRow(Table, table=True):
    """A count over a whole table for the operator's metrics: how many rows have a state, and when that was counted."""

    __tablename__ = "census"

    name: str = Field(sa_column=Column(String(64), primary_key=True))
    state: str = Field(sa_column=Column(String(32), primary_key=True))
    amount: int = Field(sa_column=Column(BigInteger, nullable=False))
    counted_at: int = Field(sa_column=Column(BigInteger, nullable=False))


class LeaseRow(Table, table=True):
    """A lease by name (`database/leases.py`): its holder, and until when by the database's clock."""

    __tablename__ = "leases"

    name: str = Field(sa_column=Column(String(300), primary_key=True))
    holder: str = Field(sa_column=Column(String(32), nullable=False))
    until: int = Field(sa_column=Column(BigInteger, nullable=False, index=True))


# The same tables for queries that select columns; reads never build entities.
users = metadata.tables["users"]
businesses = metadata.tables["businesses"]
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
counts = metadata.tables["census"]
leases = metadata.tables["leases"]
