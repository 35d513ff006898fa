"""Counts of the requests of keys, and a log of some of them

Revision ID: 0007
Revises: 0006
"""

import sqlalchemy as sa
from alembic import op

revision: str = "0007"
down_revision: str | None = "0006"
branch_labels: None = None
depends_on: None = None

_ID = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def _of_key() -> "list[sa.Column[int]]":
    return [sa.Column(name, _ID, autoincrement=False, nullable=False) for name in ("owner_id", "key_id")]


def upgrade() -> None:
    op.create_table(
        "key_usage",
        *_of_key(),
        sa.Column("day", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("requests", sa.BigInteger(), nullable=False),
        sa.Column("client_errors", sa.BigInteger(), nullable=False),
        sa.Column("server_errors", sa.BigInteger(), nullable=False),
        sa.CheckConstraint("client_errors <= requests AND server_errors <= requests", name=op.f("ck_key_usage_whole")),
        sa.PrimaryKeyConstraint("owner_id", "key_id", "day", name=op.f("pk_key_usage")),
    )
    op.create_index(op.f("ix_key_usage_day"), "key_usage", ["day"])
    op.create_table(
        "request_log",
        *_of_key(),
        sa.Column("at", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("id", sa.String(length=24), nullable=False),
        sa.Column("method", sa.String(length=8), nullable=False),
        sa.Column("route", sa.String(length=120), nullable=False),
        sa.Column("status", sa.Integer(), nullable=False),
        sa.Column("code", sa.String(length=40), nullable=True),
        sa.Column("reason", sa.String(length=40), nullable=True),
        sa.Column("field", sa.String(length=120), nullable=True),
        sa.Column("duration_ms", sa.Integer(), nullable=False),
        sa.Column("request_id", sa.String(length=40), nullable=True),
        sa.Column("ip_prefix", sa.String(length=64), nullable=True),
        sa.PrimaryKeyConstraint("owner_id", "key_id", "at", "id", name=op.f("pk_request_log")),
    )
    op.create_index(op.f("ix_request_log_at"), "request_log", ["at"])


def downgrade() -> None:
    op.drop_table("request_log")
    op.drop_table("key_usage")
