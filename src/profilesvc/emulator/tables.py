"""The emulator's tables: whole JSON documents, and columns only for what is searched or ordered."""

from typing import ClassVar

from sqlalchemy import MetaData
from sqlmodel import Field, SQLModel


class EmulatorTable(SQLModel):
    """Keeps the emulator's tables apart from the service's, which have a file and migrations of their own."""

    metadata: ClassVar[MetaData] = MetaData()


class EmulatorStateRow(EmulatorTable, table=True):
    """The switches, one row; its presence says that the file is seeded."""

    __tablename__ = "state"

    id: int = Field(default=1, primary_key=True)
    document: str


class EmulatorAccountRow(EmulatorTable, table=True):
    """An account; `position` keeps the caller's personal account first."""

    __tablename__ = "accounts"

    name: str = Field(primary_key=True)
    position: int
    document: str


class EmulatorLocationRow(EmulatorTable, table=True):
    """A location as the merchant last set it.

    `google_updated` has the fields that consumers see differently; `pending` the edits in review, by field, each
    `{ends, shown}` with what consumers see until then; `blocked` the fields that cannot be edited, with the reason.
    """

    __tablename__ = "locations"

    name: str = Field(primary_key=True)
    account: str = Field(index=True)
    document: str
    google_updated: str = "{}"
    voice_of_merchant: str = "{}"
    verifications: str = "[]"
    attributes: str = "[]"
    pending: str = "{}"
    blocked: str = "{}"


class EmulatorPostRow(EmulatorTable, table=True):
    """A post; its state follows from the three columns at the end and the time (milliseconds; 0 means past)."""

    __tablename__ = "posts"

    name: str = Field(primary_key=True)
    parent: str = Field(index=True)
    document: str
    created: int
    review_ends: int = 0
    publish_at: int = 0
    verdict: str = "LIVE"


class EmulatorReviewRow(EmulatorTable, table=True):
    """A review; its reply is PENDING until `reply_ends` (milliseconds; 0 means past)."""

    __tablename__ = "reviews"

    name: str = Field(primary_key=True)
    parent: str = Field(index=True)
    document: str
    updated: int
    reply_ends: int = 0
    reply_verdict: str = "APPROVED"


class EmulatorTokenRow(EmulatorTable, table=True):
    """An access token that was issued, by its SHA-256."""

    __tablename__ = "tokens"

    digest: str = Field(primary_key=True)
    expires: int
