"""Owners' logins at the provider

Revision ID: 0004
Revises: 0003
"""

import sqlalchemy as sa
from alembic import op

revision: str = "0004"
down_revision: str | None = "0003"
branch_labels: None = None
depends_on: None = None

_ID = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
_REVOKING = sa.text("revoke_at IS NOT NULL")


def _numbered(table: str) -> list[sa.Constraint]:
    """Return the primary key of a table whose rows the database numbers, as in the first migration."""
    if op.get_context().dialect.name != "sqlite":
        return [sa.PrimaryKeyConstraint("owner_id", "id", name=f"pk_{table}")]
    unique = sa.UniqueConstraint("owner_id", "id", name=f"uq_{table}_owner_id_id")
    return [sa.PrimaryKeyConstraint("id", name=f"pk_{table}"), unique]


def upgrade() -> None:
    op.add_column("locations", sa.Column("connection_id", _ID, nullable=True))
    op.add_column("locations", sa.Column("disconnected_at", sa.BigInteger(), nullable=True))
    op.create_table(
        "provider_connections",
        sa.Column("owner_id", _ID, autoincrement=False, nullable=False),
        sa.Column("id", _ID, autoincrement=True, nullable=False),
        sa.Column("subject", sa.String(length=255), nullable=True),
        sa.Column("email", sa.String(length=320), nullable=True),
        sa.Column("scopes", sa.Text(), nullable=False),
        sa.Column("refresh_token", sa.Text(), nullable=True),
        sa.Column("state", sa.String(length=16), nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.Column("last_used_at", sa.BigInteger(), nullable=True),
        sa.Column("last_error", sa.String(length=200), nullable=True),
        sa.Column("last_error_at", sa.BigInteger(), nullable=True),
        sa.Column("revoke_at", sa.BigInteger(), nullable=True),
        sa.Column("revoke_tries", sa.Integer(), server_default="0", nullable=False),
        sa.CheckConstraint(
            "state IN ('active', 'reauth_required', 'disconnected')", name=op.f("ck_provider_connections_state")
        ),
        sa.CheckConstraint(
            "(state = 'disconnected') = (subject IS NULL)", name=op.f("ck_provider_connections_disconnected_whole")
        ),
        sa.ForeignKeyConstraint(["owner_id"], ["users.id"], name=op.f("fk_provider_connections_owner_id")),
        *_numbered("provider_connections"),
        sa.UniqueConstraint("owner_id", "subject", name=op.f("uq_provider_connections_owner_id_subject")),
    )
    op.create_index(
        "ix_provider_connections_revoke",
        "provider_connections",
        ["revoke_at"],
        sqlite_where=_REVOKING,
        postgresql_where=_REVOKING,
    )


def downgrade() -> None:
    op.drop_table("provider_connections")
    op.drop_column("locations", "disconnected_at")
    op.drop_column("locations", "connection_id")
