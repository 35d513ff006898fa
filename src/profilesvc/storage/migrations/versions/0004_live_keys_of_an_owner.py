"""live keys of an owner

Revision ID: 0004
Revises: 0003
"""

import sqlalchemy as sa
from alembic import op

revision: str = "0004"
down_revision: str | None = "0003"
branch_labels: None = None
depends_on: None = None


def upgrade() -> None:
    live = sa.text("revoked_at IS NULL")
    columns = ["user_id", "id"]
    op.create_index("ix_keys_live", "keys", columns, sqlite_where=live, postgresql_where=live)


def downgrade() -> None:
    op.drop_index("ix_keys_live", "keys")
