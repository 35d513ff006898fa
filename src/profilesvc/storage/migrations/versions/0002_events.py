"""Events and their delivery

Revision ID: 0002
Revises: 0001
"""

import sqlalchemy as sa
from alembic import op

revision: str = "0002"
down_revision: str | None = "0001"
branch_labels: None = None
depends_on: None = None

_ID = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
_PENDING = sa.text("next_at IS NOT NULL")
_CLAIMED = sa.text("claimed_until IS NOT NULL")


def _numbered(table: str) -> list[sa.Constraint]:
    """Return the primary key of a table whose rows the database numbers, as in the first migration."""
    if op.get_context().dialect.name != "sqlite":
        return [sa.PrimaryKeyConstraint("owner_id", "id", name=f"pk_{table}")]
    unique = sa.UniqueConstraint("owner_id", "id", name=f"uq_{table}_owner_id_id")
    return [sa.PrimaryKeyConstraint("id", name=f"pk_{table}"), unique]


def upgrade() -> None:
    op.add_column("locations", sa.Column("drift", sa.String(length=64), nullable=True))
    op.add_column("post_usage", sa.Column("warned", sa.Integer(), server_default="0", nullable=False))
    op.create_table(
        "event_heads",
        sa.Column("owner_id", _ID, autoincrement=False, nullable=False),
        sa.Column("last", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("owner_id", name=op.f("pk_event_heads")),
    )
    op.create_table(
        "events",
        sa.Column("owner_id", _ID, autoincrement=False, nullable=False),
        sa.Column("id", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("created_at", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("type", sa.String(length=40), nullable=False),
        sa.Column("key_id", _ID, nullable=True),
        sa.Column("location_name", sa.String(length=80), nullable=True),
        sa.Column("data", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("owner_id", "id", "created_at", name=op.f("pk_events")),
        postgresql_partition_by="RANGE (created_at)",
    )
    if op.get_context().dialect.name == "postgresql":
        op.execute("CREATE TABLE events_default PARTITION OF events DEFAULT")
    op.create_index(op.f("ix_events_created_at"), "events", ["created_at"])
    op.create_index("ix_events_key", "events", ["owner_id", "key_id", "id"])
    op.create_table(
        "sweep_marks",
        sa.Column("name", sa.String(length=32), nullable=False),
        sa.Column("at", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("name", name=op.f("pk_sweep_marks")),
    )
    op.create_table(
        "watches",
        sa.Column("owner_id", _ID, autoincrement=False, nullable=False),
        sa.Column("key_id", _ID, autoincrement=False, nullable=False),
        sa.Column("state", sa.String(length=16), server_default="new", nullable=False),
        sa.Column("changed_at", sa.BigInteger(), nullable=False),
        sa.Column("site_mismatch", sa.Boolean(), server_default=sa.false(), nullable=False),
        sa.Column("expiry_announced", sa.Integer(), server_default="0", nullable=False),
        sa.Column("grace_seconds", sa.Integer(), server_default="0", nullable=False),
        sa.Column("snoozed_until", sa.BigInteger(), nullable=True),
        sa.CheckConstraint(
            "state IN ('new', 'never_connected', 'online', 'idle', 'offline')", name=op.f("ck_watches_state")
        ),
        sa.ForeignKeyConstraint(
            ["owner_id", "key_id"], ["keys.owner_id", "keys.id"], name=op.f("fk_watches_owner_id_key_id")
        ),
        sa.PrimaryKeyConstraint("owner_id", "key_id", name=op.f("pk_watches")),
    )
    op.create_table(
        "channels",
        sa.Column("owner_id", _ID, autoincrement=False, nullable=False),
        sa.Column("id", _ID, autoincrement=True, nullable=False),
        sa.Column("kind", sa.String(length=16), nullable=False),
        sa.Column("target", sa.Text(), nullable=False),
        sa.Column("target_digest", sa.String(length=64), nullable=False),
        sa.Column("description", sa.String(length=200), server_default="", nullable=False),
        sa.Column("types", sa.Text(), server_default="", nullable=False),
        sa.Column("settings", sa.Text(), server_default="{}", nullable=False),
        sa.Column("nonce", sa.String(length=64), nullable=False),
        sa.Column("previous_nonce", sa.String(length=64), nullable=True),
        sa.Column("previous_until", sa.BigInteger(), nullable=True),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.Column("confirmed_at", sa.BigInteger(), nullable=True),
        sa.Column("failing_since", sa.BigInteger(), nullable=True),
        sa.Column("disabled_at", sa.BigInteger(), nullable=True),
        sa.Column("disabled_reason", sa.String(length=20), nullable=True),
        sa.CheckConstraint(
            "kind IN ('webhook', 'slack', 'teams', 'discord', 'email', 'notice')", name=op.f("ck_channels_kind")
        ),
        sa.ForeignKeyConstraint(["owner_id"], ["users.id"], name=op.f("fk_channels_owner_id")),
        *_numbered("channels"),
        sa.UniqueConstraint("owner_id", "target_digest", name=op.f("uq_channels_owner_id_target_digest")),
    )
    op.create_table(
        "deliveries",
        sa.Column("owner_id", _ID, autoincrement=False, nullable=False),
        sa.Column("id", _ID, autoincrement=True, nullable=False),
        sa.Column("channel_id", _ID, nullable=False),
        sa.Column("event_id", sa.BigInteger(), nullable=True),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.Column("next_at", sa.BigInteger(), nullable=True),
        sa.Column("claimed_until", sa.BigInteger(), nullable=True),
        sa.Column("state", sa.String(length=16), nullable=False),
        sa.Column("tries", sa.Integer(), server_default="0", nullable=False),
        sa.Column("attempts", sa.Text(), server_default="[]", nullable=False),
        sa.Column("finished_at", sa.BigInteger(), nullable=True),
        sa.CheckConstraint("state IN ('pending', 'delivered', 'failed', 'skipped')", name=op.f("ck_deliveries_state")),
        sa.CheckConstraint("(state = 'pending') = (next_at IS NOT NULL)", name=op.f("ck_deliveries_pending_is_due")),
        sa.ForeignKeyConstraint(
            ["owner_id", "channel_id"],
            ["channels.owner_id", "channels.id"],
            name=op.f("fk_deliveries_owner_id_channel_id"),
        ),
        *_numbered("deliveries"),
    )
    op.create_index(op.f("ix_deliveries_created_at"), "deliveries", ["created_at"])
    op.create_index("ix_deliveries_channel", "deliveries", ["owner_id", "channel_id", "id"])
    op.create_index("ix_deliveries_due", "deliveries", ["next_at"], sqlite_where=_PENDING, postgresql_where=_PENDING)
    op.create_index(
        "ix_deliveries_claimed",
        "deliveries",
        ["owner_id", "channel_id"],
        sqlite_where=_CLAIMED,
        postgresql_where=_CLAIMED,
    )


def downgrade() -> None:
    for table in ("deliveries", "channels", "watches", "sweep_marks", "events", "event_heads"):
        op.drop_table(table)  # with its indexes
    op.drop_column("post_usage", "warned")
    op.drop_column("locations", "drift")
