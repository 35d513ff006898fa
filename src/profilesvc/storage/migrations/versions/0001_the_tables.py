"""The tables

Revision ID: 0001
Revises:
"""

import sqlalchemy as sa
from alembic import op

revision: str = "0001"
down_revision: str | None = None
branch_labels: None = None
depends_on: None = None

_ID = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
# A page that is not full has room for the next version of a row, so that no index must be written (HOT).
_UPDATED_IN_PLACE = {"fillfactor": 80}


def _numbered(table: str, *columns: str) -> list[sa.Constraint]:
    """Return the primary key of a table whose rows are numbered by `id`.

    SQLite numbers rows only if the number is the whole primary key; there the columns are a unique constraint.
    """
    name = f"pk_{table}"
    if op.get_context().dialect.name != "sqlite":
        return [sa.PrimaryKeyConstraint(*columns, name=name)]
    unique = sa.UniqueConstraint(*columns, name=f"uq_{table}_{'_'.join(columns)}")
    return [sa.PrimaryKeyConstraint("id", name=name), unique]


def _with_default(table: str) -> None:
    """Create the partition of the rows that no other accepts. `storage/tables/partitions.py` creates the others."""
    if op.get_context().dialect.name == "postgresql":
        op.execute(f"CREATE TABLE {table}_default PARTITION OF {table} DEFAULT")


def upgrade() -> None:
    # A migration on PostgreSQL holds a lease, so that the table exists there already (database/leases.py).
    is_postgres = op.get_context().dialect.name == "postgresql"
    op.create_table(
        "leases",
        sa.Column("name", sa.String(length=300), nullable=False),
        sa.Column("slot", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("holder", sa.String(length=32), nullable=False),
        sa.Column("asked_at", sa.BigInteger(), nullable=False),
        sa.Column("until", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("name", "slot", name=op.f("pk_leases")),
        prefixes=["UNLOGGED"] if is_postgres else [],
        if_not_exists=True,
    )
    op.create_index(op.f("ix_leases_until"), "leases", ["until"], if_not_exists=True)
    op.create_table(
        "census",
        sa.Column("name", sa.String(length=64), nullable=False),
        sa.Column("state", sa.String(length=32), nullable=False),
        sa.Column("amount", sa.BigInteger(), nullable=False),
        sa.Column("counted_at", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("name", "state", name=op.f("pk_census")),
    )
    op.create_table(
        "emails",
        sa.Column("email", sa.String(length=320), nullable=False),
        sa.Column("owner_id", _ID, nullable=False),
        sa.PrimaryKeyConstraint("email", name=op.f("pk_emails")),
    )
    op.create_table(
        "exchanges",
        sa.Column("digest", sa.String(length=64), nullable=False),
        sa.Column("expires_at", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("digest", name=op.f("pk_exchanges")),
    )
    op.create_index(op.f("ix_exchanges_expires_at"), "exchanges", ["expires_at"])
    op.create_table(
        "idempotency",
        sa.Column("owner_id", _ID, autoincrement=False, nullable=False),
        sa.Column("scope", sa.String(length=64), nullable=False),
        sa.Column("fingerprint", sa.String(length=64), nullable=False),
        sa.Column("fence", sa.Integer(), nullable=False),
        sa.Column("lease_until", sa.BigInteger(), nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.Column("status", sa.Integer(), nullable=True),
        sa.Column("answer", sa.Text(), nullable=True),
        sa.PrimaryKeyConstraint("owner_id", "scope", name=op.f("pk_idempotency")),
    )
    op.create_index(op.f("ix_idempotency_created_at"), "idempotency", ["created_at"])
    op.create_table(
        "identities",
        sa.Column("issuer", sa.String(length=255), nullable=False),
        sa.Column("subject", sa.String(length=255), nullable=False),
        sa.Column("owner_id", _ID, nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("issuer", "subject", name=op.f("pk_identities")),
    )
    op.create_table(
        "key_domains",
        sa.Column("domain", sa.String(length=253), nullable=False),
        sa.Column("until", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("owner_id", _ID, autoincrement=False, nullable=False),
        sa.Column("key_id", _ID, autoincrement=False, nullable=False),
        sa.PrimaryKeyConstraint("domain", "until", "owner_id", "key_id", name=op.f("pk_key_domains")),
    )
    op.create_index(op.f("ix_key_domains_until"), "key_domains", ["until"])
    op.create_table(
        "location_owners",
        sa.Column("name", sa.String(length=80), nullable=False),
        sa.Column("owner_id", _ID, nullable=False),
        sa.PrimaryKeyConstraint("name", name=op.f("pk_location_owners")),
    )
    op.create_table(
        "revocations",
        sa.Column("owner_id", _ID, autoincrement=False, nullable=False),
        sa.Column("id", sa.String(length=64), nullable=False),
        sa.Column("kind", sa.String(length=16), nullable=False),
        sa.Column("revoked_at", sa.BigInteger(), nullable=False),
        sa.Column("expires_at", sa.BigInteger(), nullable=False),
        sa.CheckConstraint("kind IN ('token', 'family')", name=op.f("ck_revocations_kind")),
        sa.PrimaryKeyConstraint("owner_id", "id", name=op.f("pk_revocations")),
    )
    op.create_index(op.f("ix_revocations_expires_at"), "revocations", ["expires_at"])
    op.create_table(
        "signing_keys",
        sa.Column("kid", sa.String(length=64), nullable=False),
        sa.Column("private_pem", sa.Text(), nullable=True),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.Column("active_from", sa.BigInteger(), nullable=False),
        sa.Column("removed_at", sa.BigInteger(), nullable=True),
        sa.Column("alg", sa.String(length=8), server_default="RS256", nullable=False),
        sa.CheckConstraint(
            "(private_pem IS NULL) = (removed_at IS NOT NULL)", name=op.f("ck_signing_keys_removed_whole")
        ),
        sa.PrimaryKeyConstraint("kid", name=op.f("pk_signing_keys")),
    )
    op.create_table(
        "users",
        sa.Column("id", _ID, autoincrement=True, nullable=False),
        sa.Column("email", sa.String(length=320), nullable=False),
        sa.Column("name", sa.String(length=200), nullable=False),
        sa.Column("plan", sa.String(length=64), nullable=False),
        sa.Column("epoch", sa.BigInteger(), server_default="0", nullable=False),
        sa.Column("suspended_at", sa.BigInteger(), nullable=True),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.Column("billing_version", sa.BigInteger(), server_default="0", nullable=False),
        sa.Column("unpaid_since", sa.BigInteger(), nullable=True),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_users")),
    )
    op.create_table(
        "businesses",
        sa.Column("owner_id", _ID, autoincrement=False, nullable=False),
        sa.Column("id", _ID, autoincrement=True, nullable=False),
        sa.Column("name", sa.String(length=200), nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.ForeignKeyConstraint(["owner_id"], ["users.id"], name=op.f("fk_businesses_owner_id")),
        *_numbered("businesses", "owner_id", "id"),
    )
    op.create_table(
        "post_usage",
        sa.Column("owner_id", _ID, autoincrement=False, nullable=False),
        sa.Column("month", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("used", sa.Integer(), nullable=False),
        sa.CheckConstraint("used >= 0", name=op.f("ck_post_usage_not_negative")),
        sa.ForeignKeyConstraint(["owner_id"], ["users.id"], name=op.f("fk_post_usage_owner_id")),
        sa.PrimaryKeyConstraint("owner_id", "month", name=op.f("pk_post_usage")),
    )
    op.create_table(
        "locations",
        sa.Column("owner_id", _ID, autoincrement=False, nullable=False),
        sa.Column("name", sa.String(length=80), nullable=False),
        sa.Column("business_id", _ID, nullable=True),
        sa.Column("assigned_at", sa.BigInteger(), nullable=True),
        sa.Column("account", sa.String(length=80), nullable=False),
        sa.Column("title", sa.Text(), nullable=False),
        sa.Column("profile", sa.Text(), nullable=False),
        sa.Column("profile_read_at", sa.BigInteger(), nullable=False),
        sa.Column("is_verified", sa.Boolean(), nullable=False),
        sa.Column("verification_state", sa.String(length=40), nullable=False),
        sa.Column("sync_enabled", sa.Boolean(), nullable=False),
        sa.Column("source", sa.Text(), nullable=True),
        sa.Column("last_sync", sa.Text(), nullable=True),
        sa.Column("posts_read_at", sa.BigInteger(), nullable=True),
        sa.Column("sync_lease", sa.String(length=32), nullable=True),
        sa.Column("sync_lease_until", sa.BigInteger(), nullable=True),
        sa.CheckConstraint("(business_id IS NULL) = (assigned_at IS NULL)", name=op.f("ck_locations_assignment_whole")),
        sa.CheckConstraint("NOT sync_enabled OR is_verified", name=op.f("ck_locations_sync_needs_verification")),
        sa.ForeignKeyConstraint(
            ["owner_id", "business_id"],
            ["businesses.owner_id", "businesses.id"],
            name=op.f("fk_locations_owner_id_business_id"),
        ),
        sa.ForeignKeyConstraint(["owner_id"], ["users.id"], name=op.f("fk_locations_owner_id")),
        sa.PrimaryKeyConstraint("owner_id", "name", name=op.f("pk_locations")),
    )
    op.create_index("ix_locations_list", "locations", ["owner_id", "title", "name"])
    op.create_table(
        "keys",
        sa.Column("owner_id", _ID, autoincrement=False, nullable=False),
        sa.Column("id", _ID, autoincrement=True, nullable=False),
        sa.Column("client_id", sa.String(length=160), nullable=False),
        sa.Column("business_id", _ID, nullable=False),
        sa.Column("location_name", sa.String(length=80), nullable=False),
        sa.Column("name", sa.String(length=100), nullable=False),
        sa.Column("permissions", sa.String(length=64), nullable=False),
        sa.Column("primary_domain", sa.String(length=253), nullable=True),
        sa.Column("allowed_domains", sa.Text(), nullable=False),
        sa.Column("epoch", sa.BigInteger(), server_default="0", nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.Column("expires_at", sa.BigInteger(), nullable=True),
        sa.Column("revoked_at", sa.BigInteger(), nullable=True),
        sa.Column("last_used_at", sa.BigInteger(), nullable=True),
        sa.Column("billing_version", sa.BigInteger(), server_default="0", nullable=False),
        sa.Column("badge_digest", sa.String(length=64), nullable=True),
        sa.ForeignKeyConstraint(
            ["owner_id", "business_id"],
            ["businesses.owner_id", "businesses.id"],
            name=op.f("fk_keys_owner_id_business_id"),
        ),
        sa.ForeignKeyConstraint(
            ["owner_id", "location_name"],
            ["locations.owner_id", "locations.name"],
            name=op.f("fk_keys_owner_id_location_name"),
        ),
        sa.ForeignKeyConstraint(["owner_id"], ["users.id"], name=op.f("fk_keys_owner_id")),
        *_numbered("keys", "owner_id", "id"),
        sa.UniqueConstraint("owner_id", "client_id", name=op.f("uq_keys_owner_id_client_id")),
    )
    op.create_index(
        "ix_keys_badge",
        "keys",
        ["owner_id", "badge_digest"],
        unique=True,
        sqlite_where=sa.text("badge_digest IS NOT NULL"),
        postgresql_where=sa.text("badge_digest IS NOT NULL"),
    )
    op.create_index(op.f("ix_keys_expires_at"), "keys", ["expires_at"])
    op.create_index(
        "ix_keys_live",
        "keys",
        ["owner_id", "id"],
        sqlite_where=sa.text("revoked_at IS NULL"),
        postgresql_where=sa.text("revoked_at IS NULL"),
    )
    op.create_index("ix_keys_location", "keys", ["owner_id", "location_name"])
    op.create_table(
        "posts",
        sa.Column("owner_id", _ID, autoincrement=False, nullable=False),
        sa.Column("location_name", sa.String(length=80), nullable=False),
        sa.Column("post_id", sa.String(length=80), nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.Column("state", sa.String(length=40), nullable=False),
        sa.Column("read_at", sa.BigInteger(), nullable=False),
        sa.Column("document", sa.Text(), nullable=False),
        sa.ForeignKeyConstraint(
            ["owner_id", "location_name"],
            ["locations.owner_id", "locations.name"],
            name=op.f("fk_posts_owner_id_location_name"),
        ),
        sa.PrimaryKeyConstraint("owner_id", "location_name", "post_id", name=op.f("pk_posts")),
    )
    op.create_index("ix_posts_in_review", "posts", ["owner_id", "location_name", "state", "read_at"])
    op.create_index("ix_posts_list", "posts", ["owner_id", "location_name", "created_at", "post_id"])
    op.create_table(
        "syncs",
        sa.Column("owner_id", _ID, autoincrement=False, nullable=False),
        sa.Column("location_name", sa.String(length=80), nullable=False),
        sa.Column("created_at", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("id", _ID, autoincrement=True, nullable=False),
        sa.Column("sync_id", sa.String(length=40), nullable=False),
        sa.Column("status", sa.String(length=16), nullable=False),
        sa.Column("direction", sa.String(length=8), nullable=False),
        sa.Column("fields_updated", sa.Integer(), nullable=False),
        sa.CheckConstraint("direction IN ('push', 'pull')", name=op.f("ck_syncs_direction")),
        sa.CheckConstraint("status IN ('success', 'skipped', 'failed')", name=op.f("ck_syncs_status")),
        sa.ForeignKeyConstraint(
            ["owner_id", "location_name"],
            ["locations.owner_id", "locations.name"],
            name=op.f("fk_syncs_owner_id_location_name"),
        ),
        *_numbered("syncs", "owner_id", "location_name", "created_at", "id"),
        sa.UniqueConstraint("owner_id", "sync_id", "created_at", name=op.f("uq_syncs_owner_id_sync_id_created_at")),
        postgresql_partition_by="RANGE (created_at)",
    )
    op.create_index(op.f("ix_syncs_created_at"), "syncs", ["created_at"])
    _with_default("syncs")
    op.create_table(
        "audit",
        sa.Column("owner_id", _ID, autoincrement=False, nullable=False),
        sa.Column("at", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("id", _ID, autoincrement=True, nullable=False),
        sa.Column("month", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("event", sa.String(length=40), nullable=False),
        sa.Column("key_id", _ID, nullable=True),
        sa.Column("actor", sa.String(length=200), nullable=False),
        sa.Column("ip_prefix", sa.String(length=64), nullable=True),
        sa.Column("request_id", sa.String(length=64), nullable=True),
        sa.Column("details", sa.Text(), nullable=True),
        sa.Column("once", sa.String(length=120), nullable=True),
        sa.Column("times", sa.BigInteger(), server_default="1", nullable=False),
        sa.ForeignKeyConstraint(
            ["owner_id", "key_id"], ["keys.owner_id", "keys.id"], name=op.f("fk_audit_owner_id_key_id")
        ),
        sa.ForeignKeyConstraint(["owner_id"], ["users.id"], name=op.f("fk_audit_owner_id")),
        *_numbered("audit", "owner_id", "at", "id", "month"),
        sa.UniqueConstraint("owner_id", "once", "month", name=op.f("uq_audit_owner_id_once_month")),
        postgresql_partition_by="RANGE (month)",
    )
    op.create_index(op.f("ix_audit_at"), "audit", ["at"])
    op.create_index("ix_audit_key", "audit", ["owner_id", "key_id", "at", "id"])
    _with_default("audit")
    op.create_table(
        "connections",
        sa.Column("owner_id", _ID, autoincrement=False, nullable=False),
        sa.Column("key_id", _ID, autoincrement=False, nullable=False),
        sa.Column("last_heartbeat_at", sa.BigInteger(), nullable=False),
        sa.Column("plugin_version", sa.Text(), nullable=True),
        sa.Column("wp_version", sa.Text(), nullable=True),
        sa.Column("php_version", sa.Text(), nullable=True),
        sa.Column("detected_plugins", sa.Text(), nullable=True),
        sa.Column("site_host", sa.String(length=253), nullable=True),
        sa.Column("site_host_at", sa.BigInteger(), nullable=True),
        sa.Column("other_site_host", sa.String(length=253), nullable=True),
        sa.Column("other_site_host_at", sa.BigInteger(), nullable=True),
        sa.ForeignKeyConstraint(
            ["owner_id", "key_id"], ["keys.owner_id", "keys.id"], name=op.f("fk_connections_owner_id_key_id")
        ),
        sa.PrimaryKeyConstraint("owner_id", "key_id", name=op.f("pk_connections")),
        postgresql_with=_UPDATED_IN_PLACE,
    )
    op.create_table(
        "contacts",
        sa.Column("owner_id", _ID, autoincrement=False, nullable=False),
        sa.Column("key_id", _ID, autoincrement=False, nullable=False),
        sa.Column("started_at", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("ended_at", sa.BigInteger(), nullable=False),
        sa.ForeignKeyConstraint(
            ["owner_id", "key_id"], ["keys.owner_id", "keys.id"], name=op.f("fk_contacts_owner_id_key_id")
        ),
        sa.PrimaryKeyConstraint("owner_id", "key_id", "started_at", name=op.f("pk_contacts")),
        postgresql_with=_UPDATED_IN_PLACE,
    )
    op.create_index(op.f("ix_contacts_started_at"), "contacts", ["started_at"])
    op.create_table(
        "families",
        sa.Column("owner_id", _ID, autoincrement=False, nullable=False),
        sa.Column("id", sa.String(length=32), nullable=False),
        sa.Column("key_id", _ID, nullable=False),
        sa.Column("generation", sa.BigInteger(), nullable=False),
        sa.Column("rotated_at", sa.BigInteger(), nullable=False),
        sa.Column("expires_at", sa.BigInteger(), nullable=False),
        sa.Column("successor", sa.Text(), nullable=False),
        sa.CheckConstraint("generation > 0", name=op.f("ck_families_exchanged")),
        sa.ForeignKeyConstraint(
            ["owner_id", "key_id"], ["keys.owner_id", "keys.id"], name=op.f("fk_families_owner_id_key_id")
        ),
        sa.PrimaryKeyConstraint("owner_id", "id", name=op.f("pk_families")),
    )
    op.create_index(op.f("ix_families_expires_at"), "families", ["expires_at"])
    op.create_table(
        "holds",
        sa.Column("owner_id", _ID, autoincrement=False, nullable=False),
        sa.Column("key_id", _ID, autoincrement=False, nullable=False),
        sa.Column("reason", sa.String(length=32), nullable=False),
        sa.Column("severity", sa.Integer(), nullable=False),
        sa.Column("set_at", sa.BigInteger(), nullable=False),
        sa.CheckConstraint(
            "reason IN ('security_concern', 'billing_issue', 'plan_downgrade', 'user_requested')",
            name=op.f("ck_holds_reason"),
        ),
        sa.ForeignKeyConstraint(
            ["owner_id", "key_id"], ["keys.owner_id", "keys.id"], name=op.f("fk_holds_owner_id_key_id")
        ),
        sa.PrimaryKeyConstraint("owner_id", "key_id", "reason", name=op.f("pk_holds")),
    )
    op.create_table(
        "secrets",
        sa.Column("owner_id", _ID, autoincrement=False, nullable=False),
        sa.Column("key_id", _ID, autoincrement=False, nullable=False),
        sa.Column("digest", sa.String(length=64), nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.Column("expires_at", sa.BigInteger(), nullable=True),
        sa.ForeignKeyConstraint(
            ["owner_id", "key_id"], ["keys.owner_id", "keys.id"], name=op.f("fk_secrets_owner_id_key_id")
        ),
        sa.PrimaryKeyConstraint("owner_id", "key_id", "digest", name=op.f("pk_secrets")),
    )
    op.create_index(op.f("ix_secrets_expires_at"), "secrets", ["expires_at"])


def downgrade() -> None:
    for table in (
        "secrets",
        "holds",
        "families",
        "contacts",
        "connections",
        "audit",
        "syncs",
        "posts",
        "keys",
        "locations",
        "post_usage",
        "businesses",
        "users",
        "signing_keys",
        "revocations",
        "location_owners",
        "key_domains",
        "identities",
        "idempotency",
        "exchanges",
        "emails",
        "census",
        "leases",
    ):
        op.drop_table(table)  # with its indexes
