"""The tables of what owners write: drafts, photos, quota of posts, templates of replies."""

from sqlalchemy import CheckConstraint, ForeignKeyConstraint, Index, Text, UniqueConstraint
from sqlmodel import Field

from profilesvc.storage.tables.columns import ZERO, Tenant, instant, partial_index


class PostUsageRow(Tenant, table=True):
    """The number of posts that the owner of the locations created in a calendar month (UTC)."""

    __tablename__ = "post_usage"
    __table_args__ = (
        ForeignKeyConstraint(["owner_id"], ["users.id"]),
        CheckConstraint("used >= 0", name="not_negative"),
    )

    month: int = instant(primary_key=True)
    used: int
    # The percentage of the quota that the last `quota.warning` reported.
    warned: int = Field(sa_column_kwargs=ZERO)
    # How many of `used` only hold a place, because they are being sent; none after `held_until`.
    held: int = Field(sa_column_kwargs=ZERO)
    held_until: int = instant(server_default="0")


class DraftRow(Tenant, table=True):
    """A post that is not sent yet. The form as it was filled in and the post that it describes are JSON."""

    __tablename__ = "drafts"
    __table_args__ = (
        ForeignKeyConstraint(["owner_id", "location_name"], ["locations.owner_id", "locations.name"]),
        CheckConstraint("state IN ('draft', 'scheduled', 'sending', 'failed')", name="state"),
        Index("ix_drafts_location", "owner_id", "location_name"),
        partial_index("ix_drafts_due", "next_at", where="next_at IS NOT NULL"),
    )

    id: str = Field(max_length=32, primary_key=True)
    location_name: str = Field(max_length=80)
    state: str = Field(max_length=16)
    fields: str = Field(sa_type=Text)  # the form
    document: str = Field(sa_type=Text)
    due_at: int | None = instant()  # when the owner wants it published
    zone: str = Field(max_length=64)
    next_at: int | None = instant()  # the next attempt
    started_at: int | None = instant()  # the first attempt
    problem: str | None = Field(max_length=1000)
    updated_at: int = instant()


class PhotoRow(Tenant, table=True):
    """A photo that the provider fetches from a public address. It is deleted after `expires_at`."""

    __tablename__ = "photos"
    __table_args__ = (ForeignKeyConstraint(["owner_id"], ["users.id"]),)

    id: str = Field(max_length=32, primary_key=True)
    media_type: str = Field(max_length=16)
    content: bytes
    expires_at: int = instant(index=True)


class ReplyTemplateRow(Tenant, table=True):
    """A text that an owner uses for replies."""

    __tablename__ = "reply_templates"
    __table_args__ = (ForeignKeyConstraint(["owner_id"], ["users.id"]), UniqueConstraint("owner_id", "name"))

    id: str = Field(max_length=32, primary_key=True)
    name: str = Field(max_length=60)
    text: str = Field(sa_type=Text)
