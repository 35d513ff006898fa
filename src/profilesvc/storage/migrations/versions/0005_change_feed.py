"""The provider's notifications, and what is cached until one comes

Revision ID: 0005
Revises: 0004
"""

import sqlalchemy as sa
from alembic import op

revision: str = "0005"
down_revision: str | None = "0004"
branch_labels: None = None
depends_on: None = None

_ID = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
_REACHED = sa.text("disconnected_at IS NULL")


def upgrade() -> None:
    op.create_table(
        "notifications",
        sa.Column("message_id", sa.String(length=64), nullable=False),
        sa.Column("received_at", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("message_id", name=op.f("pk_notifications")),
    )
    op.create_index(op.f("ix_notifications_received_at"), "notifications", ["received_at"])
    op.create_table(
        "changed_locations",
        sa.Column("location_name", sa.String(length=80), nullable=False),
        sa.Column("what", sa.String(length=16), nullable=False),
        sa.Column("owner_id", _ID, nullable=False),
        sa.Column("due_at", sa.BigInteger(), nullable=False),
        sa.Column("times", sa.BigInteger(), nullable=False),
        sa.CheckConstraint("what IN ('profile', 'reviews')", name=op.f("ck_changed_locations_what")),
        sa.PrimaryKeyConstraint("location_name", "what", name=op.f("pk_changed_locations")),
    )
    op.create_index(op.f("ix_changed_locations_due_at"), "changed_locations", ["due_at"])
    op.create_table(
        "mirrors",
        sa.Column("owner_id", _ID, autoincrement=False, nullable=False),
        sa.Column("location_name", sa.String(length=80), nullable=False),
        sa.Column("query", sa.String(length=64), nullable=False),
        sa.Column("read_at", sa.BigInteger(), nullable=False),
        sa.Column("document", sa.Text(), nullable=False),
        sa.ForeignKeyConstraint(
            ["owner_id", "location_name"],
            ["locations.owner_id", "locations.name"],
            name=op.f("fk_mirrors_owner_id_location_name"),
        ),
        sa.PrimaryKeyConstraint("owner_id", "location_name", "query", name=op.f("pk_mirrors")),
    )
    op.create_index(op.f("ix_mirrors_read_at"), "mirrors", ["read_at"])
    for name in ("profile_from", "reviews_from"):
        op.add_column("readings", sa.Column(name, sa.BigInteger(), server_default="0", nullable=False))
    op.add_column("readings", sa.Column("google_update", sa.String(length=64), nullable=True))
    op.add_column("locations", sa.Column("checked_at", sa.BigInteger(), server_default="0", nullable=False))
    op.create_index(
        "ix_locations_checked",
        "locations",
        ["checked_at", "owner_id", "name"],
        sqlite_where=_REACHED,
        postgresql_where=_REACHED,
    )


def downgrade() -> None:
    op.drop_index("ix_locations_checked", "locations")
    op.drop_column("locations", "checked_at")
    for name in ("google_update", "reviews_from", "profile_from"):
        op.drop_column("readings", name)
    for table in ("mirrors", "changed_locations", "notifications"):
        op.drop_table(table)
