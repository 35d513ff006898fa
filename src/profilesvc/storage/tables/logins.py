"""The table of owners' logins at the provider (docs/connections.md)."""

from sqlalchemy import CheckConstraint, ForeignKeyConstraint, Text, UniqueConstraint
from sqlmodel import Field

from profilesvc.storage.tables.columns import ZERO, Tenant, instant, number, partial_index


class ProviderConnectionRow(Tenant, table=True):
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
        partial_index("ix_provider_connections_revoke", "revoke_at", where="revoke_at IS NOT NULL"),
    )

    id: int | None = number()
    subject: str | None = Field(max_length=255)
    email: str | None = Field(max_length=320)
    scopes: str = Field(sa_type=Text)
    refresh_token: str | None = Field(sa_type=Text)
    state: str = Field(max_length=16)
    created_at: int = instant()
    last_used_at: int | None = instant()
    last_error: str | None = Field(max_length=200)
    last_error_at: int | None = instant()
    revoke_at: int | None = instant()
    revoke_tries: int = Field(sa_column_kwargs=ZERO)
