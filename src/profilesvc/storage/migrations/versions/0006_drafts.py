"""Drafts, photos of posts and templates of replies

Revision ID: 0006
Revises: 0005
"""

import sqlalchemy as sa
from alembic import op

revision: str = "0006"
down_revision: str | None = "0005"
branch_labels: None = None
depends_on: None = None

_ID = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
_DUE = sa.text("next_at IS NOT NULL")


def _owner() -> "sa.Column[int]":
    return sa.Column("owner_id", _ID, autoincrement=False, nullable=False)


def upgrade() -> None:
    op.create_table(
        "drafts",
        _owner(),
        sa.Column("id", sa.String(length=32), nullable=False),
        sa.Column("location_name", sa.String(length=80), nullable=False),
        sa.Column("state", sa.String(length=16), nullable=False),
        sa.Column("fields", sa.Text(), nullable=False),
        sa.Column("document", sa.Text(), nullable=False),
        sa.Column("due_at", sa.BigInteger(), nullable=True),
        sa.Column("zone", sa.String(length=64), nullable=False),
        sa.Column("next_at", sa.BigInteger(), nullable=True),
        sa.Column("started_at", sa.BigInteger(), nullable=True),
        sa.Column("problem", sa.String(length=1000), nullable=True),
        sa.Column("updated_at", sa.BigInteger(), nullable=False),
        sa.CheckConstraint("state IN ('draft', 'scheduled', 'sending', 'failed')", name=op.f("ck_drafts_state")),
        sa.ForeignKeyConstraint(
            ["owner_id", "location_name"],
            ["locations.owner_id", "locations.name"],
            name=op.f("fk_drafts_owner_id_location_name"),
        ),
        sa.PrimaryKeyConstraint("owner_id", "id", name=op.f("pk_drafts")),
    )
    op.create_index("ix_drafts_location", "drafts", ["owner_id", "location_name"])
    op.create_index("ix_drafts_due", "drafts", ["next_at"], sqlite_where=_DUE, postgresql_where=_DUE)
    op.create_table(
        "photos",
        _owner(),
        sa.Column("id", sa.String(length=32), nullable=False),
        sa.Column("media_type", sa.String(length=16), nullable=False),
        sa.Column("content", sa.LargeBinary(), nullable=False),
        sa.Column("expires_at", sa.BigInteger(), nullable=False),
        sa.ForeignKeyConstraint(["owner_id"], ["users.id"], name=op.f("fk_photos_owner_id")),
        sa.PrimaryKeyConstraint("owner_id", "id", name=op.f("pk_photos")),
    )
    op.create_index(op.f("ix_photos_expires_at"), "photos", ["expires_at"])
    op.create_table(
        "reply_templates",
        _owner(),
        sa.Column("id", sa.String(length=32), nullable=False),
        sa.Column("name", sa.String(length=60), nullable=False),
        sa.Column("text", sa.Text(), nullable=False),
        sa.ForeignKeyConstraint(["owner_id"], ["users.id"], name=op.f("fk_reply_templates_owner_id")),
        sa.PrimaryKeyConstraint("owner_id", "id", name=op.f("pk_reply_templates")),
        sa.UniqueConstraint("owner_id", "name", name=op.f("uq_reply_templates_owner_id_name")),
    )


def downgrade() -> None:
    op.drop_table("reply_templates")
    op.drop_table("photos")
    op.drop_table("drafts")
