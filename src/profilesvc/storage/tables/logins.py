"""The table of owners' logins at the provider (docs/connections.md). It follows the rules of `tables.py`."""

from sqlalchemy import (
    BigInteger,
    CheckConstraint,
    Column,
    ForeignKeyConstraint,
    Index,
    Integer,
    String,
    Text,
    UniqueConstraint,
    text,
)
from sqlmodel import Field

from profilesvc.storage.tables.columns import number, owner
from profilesvc.storage.tables.directories import Table

_REVOKING = text("revoke_at IS NOT NULL")


class ProviderConnectionRow(Table, table=True):
    """A login at the provider that an owner has connected.

    `subject` and `email` are the provider's, and null once the owner has disconnected. `refresh_token` is encrypted
    (`tokens/vault.py`); a disconnected one keeps it until `revoke_at`, the next attempt to revoke it, has succeeded.
    """

    __tablename__ = "provider_connections"
    __table_args__ = (
        ForeignKeyConstraint(["owner_id"], ["users.id"]),
        UniqueConstraint("owner_id", "subject"),
        CheckConstraint("state IN ('active', 'reauth_required', 'disconnected')", name="state"),
        CheckConstraint("(state = 'disconnected') = (subject IS NULL)", name="disconnected_whole"),
        Index("ix_provider_connections_revoke", "revoke_at", sqlite_where=_REVOKING, postgresql_where=_REVOKING),
    )

    owner_id: int = Field(sa_column=owner())
    id: int | None = Field(default=None, sa_column=number())
    subject: str | None = Field(default=None, sa_column=Column(String(255)))
    email: str | None = Field(default=None, sa_column=Column(String(320)))
    scopes: str = Field(sa_column=Column(Text, nullable=False))
    refresh_token: str | None = Field(default=None, sa_column=Column(Text))
    state: str = Field(sa_column=Column(String(16), nullable=False))
    created_at: int = Field(sa_column=Column(BigInteger, nullable=False))
    last_used_at: int | None = Field(default=None, sa_column=Column(BigInteger))
    last_error: str | None = Field(default=None, sa_column=Column(String(200)))
    last_error_at: int | None = Field(default=None, sa_column=Column(BigInteger))
    revoke_at: int | None = Field(default=None, sa_column=Column(BigInteger))
    revoke_tries: int = Field(default=0, sa_column=Column(Integer, nullable=False, server_default="0"))
