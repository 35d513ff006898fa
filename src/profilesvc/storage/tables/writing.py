"""The tables of what owners write: drafts, photos, quota of posts, templates of replies. They follow `tables.py`."""

from sqlalchemy import (
    BigInteger,
    CheckConstraint,
    Column,
    ForeignKeyConstraint,
    Index,
    Integer,
    LargeBinary,
    String,
    Text,
    UniqueConstraint,
    text,
)
from sqlmodel import Field

from profilesvc.storage.tables.columns import owner
from profilesvc.storage.tables.directories import Table

_DUE = text("next_at IS NOT NULL")


class PostUsageRow(Table, table=True):
    """The number of posts that the owner of the locations created in a calendar month (UTC)."""

    __tablename__ = "post_usage"
    __table_args__ = (
        ForeignKeyConstraint(["owner_id"], ["users.id"]),
        CheckConstraint("used >= 0", name="not_negative"),
    )

    owner_id: int = Field(sa_column=owner())
    month: int = Field(sa_column=Column(BigInteger, primary_key=True, autoincrement=False))
    used: int = Field(sa_column=Column(Integer, nullable=False))
    # The percentage of the quota that the last `quota.warning` reported.
    warned: int = Field(default=0, sa_column=Column(Integer, nullable=False, server_default="0"))
    # How many of `used` only hold a place, because they are being sent; none after `held_until`.
    held: int = Field(default=0, sa_column=Column(Integer, nullable=False, server_default="0"))
    held_until: int = Field(default=0, sa_column=Column(BigInteger, nullable=False, server_default="0"))


class DraftRow(Table, table=True):
    """A post that is not sent yet.

    `fields` is the form as it was filled in, and `document` the post that it describes, both as JSON. `due_at` is when
    the owner wants it published, `next_at` the next attempt, and `started_at` the first one.
    """

    __tablename__ = "drafts"
    __table_args__ = (
        ForeignKeyConstraint(["owner_id", "location_name"], ["locations.owner_id", "locations.name"]),
        CheckConstraint("state IN ('draft', 'scheduled', 'sending', 'failed')", name="state"),
        Index("ix_drafts_location", "owner_id", "location_name"),
        Index("ix_drafts_due", "next_at", sqlite_where=_DUE, postgresql_where=_DUE),
    )

    owner_id: int = Field(sa_column=owner())
    id: str = Field(sa_column=Column(String(32), primary_key=True))
    location_name: str = Field(sa_column=Column(String(80), nullable=False))
    state: str = Field(sa_column=Column(String(16), nullable=False))
    fields: str = Field(sa_column=Column("fields", Text, nullable=False))
    document: str = Field(sa_column=Column(Text, nullable=False))
    due_at: int | None = Field(default=None, sa_column=Column(BigInteger))
    zone: str = Field(sa_column=Column(String(64), nullable=False))
    next_at: int | None = Field(default=None, sa_column=Column(BigInteger))
    started_at: int | None = Field(default=None, sa_column=Column(BigInteger))
    problem: str | None = Field(default=None, sa_column=Column(String(1000)))
    updated_at: int = Field(sa_column=Column(BigInteger, nullable=False))


class PhotoRow(Table, table=True):
    """A photo that the provider fetches from a public address. It is deleted after `expires_at`."""

    __tablename__ = "photos"
    __table_args__ = (ForeignKeyConstraint(["owner_id"], ["users.id"]),)

    owner_id: int = Field(sa_column=owner())
    id: str = Field(sa_column=Column(String(32), primary_key=True))
    media_type: str = Field(sa_column=Column(String(16), nullable=False))
    content: bytes = Field(sa_column=Column(LargeBinary, nullable=False))
    expires_at: int = Field(sa_column=Column(BigInteger, nullable=False, index=True))


class ReplyTemplateRow(Table, table=True):
    """A text that an owner uses for replies."""

    __tablename__ = "reply_templates"
    __table_args__ = (ForeignKeyConstraint(["owner_id"], ["users.id"]), UniqueConstraint("owner_id", "name"))

    owner_id: int = Field(sa_column=owner())
    id: str = Field(sa_column=Column(String(32), primary_key=True))
    name: str = Field(sa_column=Column(String(60), nullable=False))
    text: str = Field(sa_column=Column(Text, nullable=False))
