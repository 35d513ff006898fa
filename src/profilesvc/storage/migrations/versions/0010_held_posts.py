"""The posts of a month that hold a place and may still be given back

Revision ID: 0010
Revises: 0009
"""

import sqlalchemy as sa
from alembic import op

revision: str = "0010"
down_revision: str | None = "0009"
branch_labels: None = None
depends_on: None = None


def upgrade() -> None:
    op.add_column("post_usage", sa.Column("held", sa.Integer(), server_default="0", nullable=False))
    op.add_column("post_usage", sa.Column("held_until", sa.BigInteger(), server_default="0", nullable=False))


def downgrade() -> None:
    op.drop_column("post_usage", "held_until")
    op.drop_column("post_usage", "held")
