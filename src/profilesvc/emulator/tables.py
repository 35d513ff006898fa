"""The emulator's tables: whole JSON documents, and columns only for searching and sorting."""

from typing import ClassVar

from sqlalchemy import MetaData
from sqlmodel import Field, SQLModel


class EmulatorTable(SQLModel):
    """The base of the emulator's tables, separate from the service's, which have their own file and migrations."""

    metadata: ClassVar[MetaData] = MetaData()


class EmulatorStateRow(EmulatorTable, table=True):
    """The switches, in one row. The row exists once the file is filled."""

    __tablename__ = "state"

    id: int = Field(default=1, primary_key=True)
    document: str


class EmulatorAccountRow(EmulatorTable, table=True):
    """An account; `position` sorts the caller's personal account first."""

    __tablename__ = "accounts"

    name: str = Field(primary_key=True)
    position: int
    document: str


class EmulatorLocationRow(EmulatorTable, table=True):
    """A location as the merchant last set it.

    `google_updated` has the fields that consumers see differently. `pending` has the edits in review by field, each
    `{ends, shown}` with the value that consumers see until then. `blocked` has the reason of each field that cannot be
    edited.
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
    """A post; its state depends on the last three columns and the time (milliseconds; 0 means past)."""

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


class EmulatorNotificationRow(EmulatorTable, table=True):
    """The notification setting of an account, without its name."""

    __tablename__ = "notification_settings"

    account: str = Field(primary_key=True)
    document: str


class EmulatorPushKeyRow(EmulatorTable, table=True):
    """The RSA key that signs the tokens of pushes."""

    __tablename__ = "push_keys"

    kid: str = Field(primary_key=True)
    pem: str


class EmulatorTokenRow(EmulatorTable, table=True):
    """An access token that was issued, by its SHA-256. Without a subject it is of the installation's own login."""

    __tablename__ = "tokens"

    digest: str = Field(primary_key=True)
    expires: int
    subject: str = Field(default="", index=True)
    scope: str


class EmulatorLoginRow(EmulatorTable, table=True):
    """A login that the consent page offers; `accounts` is a JSON list of those that it has access to."""

    __tablename__ = "logins"

    subject: str = Field(primary_key=True)
    email: str
    accounts: str = "[]"


class EmulatorGrantRow(EmulatorTable, table=True):
    """A code or a refresh token, by its SHA-256. `kind` is `code`, `online` (a code without refresh) or `refresh`."""

    __tablename__ = "grants"

    digest: str = Field(primary_key=True)
    kind: str
    subject: str = Field(index=True)
    client_id: str = ""
    scope: str
    redirect_uri: str = ""
    challenge: str = ""
    expires: int = 0
