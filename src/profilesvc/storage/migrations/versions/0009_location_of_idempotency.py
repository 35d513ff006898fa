"""The location of an idempotency key

Revision ID: 0009
Revises: 0008
"""

import sqlalchemy as sa
from alembic import op

revision: str = "0009"
down_revision: str | None = "0008"
branch_labels: None = None
depends_on: None = None


def upgrade() -> None:
    op.add_column("idempotency", sa.Column("location_name", sa.String(length=80), nullable=True))


def downgrade() -> None:
    op.drop_column("idempotency", "location_name")
