"""refresh token keys

Revision ID: 0005
Revises: 0004
"""

import sqlalchemy as sa
from alembic import op

revision: str = "0005"
down_revision: str | None = "0004"
branch_labels: None = None
depends_on: None = None


def upgrade() -> None:
    op.add_column("signing_keys", sa.Column("alg", sa.String(length=8), server_default="RS256", nullable=False))


def downgrade() -> None:
    op.execute("DELETE FROM signing_keys WHERE alg <> 'RS256'")
    op.drop_column("signing_keys", "alg")
