"""Sessions of users, and deleted accounts

Revision ID: 0008
Revises: 0007
"""

import sqlalchemy as sa
from alembic import op

revision: str = "0008"
down_revision: str | None = "0007"
branch_labels: None = None
depends_on: None = None

_ID = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
_UNFINISHED = sa.text("finished_at IS NULL")


def _owner() -> "sa.Column[int]":
    return sa.Column("owner_id", _ID, autoincrement=False, nullable=False)


def upgrade() -> None:
    op.create_table(
        "sessions",
        _owner(),
        sa.Column("id", sa.String(length=32), nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.Column("used_at", sa.BigInteger(), nullable=False),
        sa.Column("expires_at", sa.BigInteger(), nullable=False),
        sa.Column("epoch", sa.BigInteger(), nullable=False),
        sa.Column("ip_prefix", sa.String(length=64), nullable=True),
        sa.Column("browser", sa.String(length=40), nullable=False, server_default=""),
        sa.Column("system", sa.String(length=40), nullable=False, server_default=""),
        sa.ForeignKeyConstraint(["owner_id"], ["users.id"], name=op.f("fk_sessions_owner_id")),
        sa.PrimaryKeyConstraint("owner_id", "id", name=op.f("pk_sessions")),
    )
    op.create_index(op.f("ix_sessions_expires_at"), "sessions", ["expires_at"])
    op.create_table(
        "deletions",
        _owner(),
        sa.Column("requested_at", sa.BigInteger(), nullable=False),
        sa.Column("finished_at", sa.BigInteger(), nullable=True),
        sa.Column("digest", sa.String(length=64), nullable=False),
        sa.ForeignKeyConstraint(["owner_id"], ["users.id"], name=op.f("fk_deletions_owner_id")),
        sa.PrimaryKeyConstraint("owner_id", name=op.f("pk_deletions")),
    )
    op.create_index(op.f("ix_deletions_finished_at"), "deletions", ["finished_at"])
    op.create_index(
        "ix_deletions_unfinished",
        "deletions",
        ["requested_at", "owner_id"],
        sqlite_where=_UNFINISHED,
        postgresql_where=_UNFINISHED,
    )
    op.create_index(op.f("ix_identities_owner_id"), "identities", ["owner_id"])


def downgrade() -> None:
    op.drop_index(op.f("ix_identities_owner_id"), table_name="identities")
    op.drop_table("deletions")
    op.drop_table("sessions")
