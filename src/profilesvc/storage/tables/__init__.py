"""The tables. Invariants are constraints; instants are milliseconds since the epoch, UTC.

A tenant's table has `owner_id`, the number of the user, as the first column of its primary key and in every unique
constraint and foreign key, and every statement on it names the owner: on a distributed database one shard has all
rows of an owner (D-101). The tables of no tenant are in `directories.py`.

Provider-shaped data is the provider's JSON document as text; the other columns are those that queries filter or
sort by and those that decide something. There is no relationship(): queries join explicitly.
"""

from sqlalchemy import BigInteger, CheckConstraint, ForeignKeyConstraint, Index, Text, UniqueConstraint, bindparam
from sqlmodel import Field

from profilesvc.database.schema import metadata as metadata
from profilesvc.storage.tables import accounts as accounts  # completes the metadata
from profilesvc.storage.tables import insight as insight
from profilesvc.storage.tables import logins as logins
from profilesvc.storage.tables import notify as notify
from profilesvc.storage.tables import writing as writing
from profilesvc.storage.tables.columns import (
    Table,
    Tenant,
    counter,
    instant,
    number,
    of_owner,
    partial_index,
    reference,
)
from profilesvc.storage.tables.directories import DIRECTORIES, REFERENCES


class UserRow(Table, table=True):
    """A dashboard user: the owner of rows with this number. A log-out raises `epoch`, which ends the earlier tokens."""

    __tablename__ = "users"

    id: int | None = number()
    email: str = Field(max_length=320)
    name: str = Field(max_length=200)
    plan: str = Field(max_length=64)
    epoch: int = counter()
    suspended_at: int | None = instant()
    created_at: int = instant()
    # The newest billing event that was received: an older one that arrives late changes nothing.
    billing_version: int = counter()
    unpaid_since: int | None = instant()


class BusinessRow(Tenant, table=True):
    """A business of a user; locations and keys belong to one."""

    __tablename__ = "businesses"
    __table_args__ = (ForeignKeyConstraint(["owner_id"], ["users.id"]),)

    id: int | None = number()
    name: str = Field(max_length=200)
    created_at: int = instant()


class LocationRow(Tenant, table=True):
    """A cached location of the provider, and the settings and state that the service adds."""

    __tablename__ = "locations"
    __table_args__ = (
        ForeignKeyConstraint(["owner_id"], ["users.id"]),
        of_owner("business_id", "businesses.id"),
        CheckConstraint("NOT sync_enabled OR is_verified", name="sync_needs_verification"),
        CheckConstraint("(business_id IS NULL) = (assigned_at IS NULL)", name="assignment_whole"),
        Index("ix_locations_list", "owner_id", "title", "name"),
        partial_index("ix_locations_checked", "checked_at", "owner_id", "name", where="disconnected_at IS NULL"),
    )

    name: str = Field(max_length=80, primary_key=True)
    business_id: int | None = reference()
    assigned_at: int | None = instant()
    account: str = Field(max_length=80)
    title: str = Field(sa_type=Text)
    profile: str = Field(sa_type=Text)
    profile_read_at: int = instant()
    is_verified: bool
    verification_state: str = Field(max_length=40)
    sync_enabled: bool
    source: str | None = Field(sa_type=Text)
    last_sync: str | None = Field(sa_type=Text)
    posts_read_at: int | None = instant()
    sync_lease: str | None = Field(max_length=32)
    sync_lease_until: int | None = instant()
    # The digest of the differences that the last `profile.drifted` reported; None while there are none.
    drift: str | None = Field(max_length=64)
    # The owner's login that reaches it; None: the installation's own login.
    connection_id: int | None = reference()
    disconnected_at: int | None = instant()
    # When the background check read the provider last (`operations/feed/readings.py`).
    checked_at: int = instant(server_default="0")


class KeyRow(Tenant, table=True):
    """An API key. It is active if it is not revoked, not expired and has no hold. Its client id contains its owner."""

    __tablename__ = "keys"
    __table_args__ = (
        ForeignKeyConstraint(["owner_id"], ["users.id"]),
        of_owner("business_id", "businesses.id"),
        of_owner("location_name", "locations.name"),
        UniqueConstraint("owner_id", "client_id"),
        partial_index("ix_keys_live", "owner_id", "id", where="revoked_at IS NULL"),
        Index("ix_keys_location", "owner_id", "location_name"),
        partial_index("ix_keys_badge", "owner_id", "badge_digest", where="badge_digest IS NOT NULL", unique=True),
    )

    id: int | None = number()
    client_id: str = Field(max_length=160)
    business_id: int = reference()
    location_name: str = Field(max_length=80)
    name: str = Field(max_length=100)
    permissions: str = Field(max_length=64)
    primary_domain: str | None = Field(max_length=253)
    allowed_domains: str = Field(sa_type=Text)
    epoch: int = counter()
    created_at: int = instant()
    expires_at: int | None = instant(index=True)
    revoked_at: int | None = instant()
    last_used_at: int | None = instant()
    # The newest billing event for this key, as for its owner.
    billing_version: int = counter()
    # The digest of the secret in the link of the status badge, while its owner shows one.
    badge_digest: str | None = Field(max_length=64)


class SecretRow(Tenant, table=True):
    """The digest of a client secret; the secret itself is never stored."""

    __tablename__ = "secrets"
    __table_args__ = (of_owner("key_id", "keys.id"),)

    key_id: int = reference(primary_key=True)
    digest: str = Field(max_length=64, primary_key=True)
    created_at: int = instant()
    expires_at: int | None = instant(index=True)


class HoldRow(Tenant, table=True):
    """A reason why a key is deactivated; the most severe one is shown."""

    __tablename__ = "holds"
    __table_args__ = (
        of_owner("key_id", "keys.id"),
        CheckConstraint(
            "reason IN ('security_concern', 'billing_issue', 'plan_downgrade', 'user_requested')", name="reason"
        ),
    )

    key_id: int = reference(primary_key=True)
    reason: str = Field(max_length=32, primary_key=True)
    severity: int
    set_at: int = instant()


class ConnectionRow(Tenant, table=True):
    """The last heartbeat of a key."""

    __tablename__ = "connections"
    __table_args__ = (of_owner("key_id", "keys.id"),)

    key_id: int = reference(primary_key=True)
    last_heartbeat_at: int = instant()
    plugin_version: str | None = Field(sa_type=Text)
    wp_version: str | None = Field(sa_type=Text)
    php_version: str | None = Field(sa_type=Text)
    detected_plugins: str | None = Field(sa_type=Text)
    # The site that the heartbeats name, and the one before it: two within a day mean a clone or a staging copy.
    site_host: str | None = Field(max_length=253)
    site_host_at: int | None = instant()
    other_site_host: str | None = Field(max_length=253)
    other_site_host_at: int | None = instant()


class ContactRow(Tenant, table=True):
    """A run of contact within a month; the 30-day history is computed from these runs.

    A run that goes on into the next month has a row in each, so that `started_at`, which never changes, shows its age.
    An index on `ended_at` would be written by every heartbeat.
    """

    __tablename__ = "contacts"
    __table_args__ = (of_owner("key_id", "keys.id"),)

    key_id: int = reference(primary_key=True)
    started_at: int = instant(primary_key=True, index=True)
    ended_at: int = instant()


class PostRow(Tenant, table=True):
    """A cached post: the document as the list returns it, with names that do not contain the account."""

    __tablename__ = "posts"
    __table_args__ = (
        of_owner("location_name", "locations.name"),
        Index("ix_posts_list", "owner_id", "location_name", "created_at", "post_id"),
        Index("ix_posts_in_review", "owner_id", "location_name", "state", "read_at"),
    )

    location_name: str = Field(max_length=80, primary_key=True)
    post_id: str = Field(max_length=80, primary_key=True)
    created_at: int = instant()
    state: str = Field(max_length=40)
    read_at: int = instant()
    document: str = Field(sa_type=Text)


class SyncRow(Tenant, table=True):
    """An entry of the sync history, deleted with its month after 400 days."""

    __tablename__ = "syncs"
    __table_args__ = (
        CheckConstraint("status IN ('success', 'skipped', 'failed')", name="status"),
        CheckConstraint("direction IN ('push', 'pull')", name="direction"),
        of_owner("location_name", "locations.name"),
        UniqueConstraint("owner_id", "sync_id", "created_at"),
    )

    location_name: str = Field(max_length=80, primary_key=True)
    created_at: int = instant(primary_key=True, index=True)
    id: int | None = number()
    sync_id: str = Field(max_length=40)
    status: str = Field(max_length=16)
    direction: str = Field(max_length=8)
    fields_updated: int


class IdempotencyRow(Tenant, table=True):
    """The latest attempt with an idempotency key, and its response once it is stored."""

    __tablename__ = "idempotency"

    scope: str = Field(max_length=64, primary_key=True)
    fingerprint: str = Field(max_length=64)
    fence: int
    lease_until: int = instant()
    created_at: int = instant(index=True)
    status: int | None
    answer: str | None = Field(sa_type=Text)
    location_name: str | None = Field(max_length=80)  # None: of a version before 0009


class FamilyRow(Tenant, table=True):
    """The refresh tokens that descend from one grant. The first exchange inserts the row.

    `successor` holds the claims of the newest pair, from which the same tokens can be signed again, so that the tokens
    themselves are not stored.
    """

    __tablename__ = "families"
    __table_args__ = (of_owner("key_id", "keys.id"), CheckConstraint("generation > 0", name="exchanged"))

    id: str = Field(max_length=32, primary_key=True)
    key_id: int = reference()
    generation: int = Field(sa_type=BigInteger)
    rotated_at: int = instant()
    expires_at: int = instant(index=True)
    successor: str = Field(sa_type=Text)


class RevocationRow(Tenant, table=True):
    """A revoked token (jti) or family (fam). Every request looks here."""

    __tablename__ = "revocations"
    __table_args__ = (CheckConstraint("kind IN ('token', 'family')", name="kind"),)

    id: str = Field(max_length=64, primary_key=True)
    kind: str = Field(max_length=16)
    revoked_at: int = instant()
    expires_at: int = instant(index=True)


class AuditRow(Tenant, table=True):
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

    at: int = instant(primary_key=True, index=True)
    id: int | None = number()
    month: int = instant(primary_key=True)
    event: str = Field(max_length=40)
    key_id: int | None = reference()
    actor: str = Field(max_length=200)
    ip_prefix: str | None = Field(max_length=64)
    request_id: str | None = Field(max_length=64)
    details: str | None = Field(sa_type=Text)
    once: str | None = Field(max_length=120)
    times: int = counter(1)


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
