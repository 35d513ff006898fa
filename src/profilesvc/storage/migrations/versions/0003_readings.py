"""The reviews that were seen

Revision ID: 0003
Revises: 0002
"""

import sqlalchemy as sa
from alembic import op

revision: str = "0003"
down_revision: str | None = "0002"
branch_labels: None = None
depends_on: None = None

_ID = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def upgrade() -> None:
    op.create_table(
        "readings",
        sa.Column("owner_id", _ID, autoincrement=False, nullable=False),
        sa.Column("location_name", sa.String(length=80), nullable=False),
        sa.Column("reviews_at", sa.BigInteger(), nullable=True),
        sa.Column("posts_at", sa.BigInteger(), nullable=True),
        sa.Column("seen", sa.Text(), nullable=True),
        sa.Column("floor", sa.BigInteger(), server_default="0", nullable=False),
        sa.ForeignKeyConstraint(
            ["owner_id", "location_name"],
            ["locations.owner_id", "locations.name"],
            name=op.f("fk_readings_owner_id_location_name"),
        ),
        sa.PrimaryKeyConstraint("owner_id", "location_name", name=op.f("pk_readings")),
    )


def downgrade() -> None:
    op.drop_table("readings")
