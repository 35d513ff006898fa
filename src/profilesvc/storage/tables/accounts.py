"""The tables of accounts: the sessions of users, and the accounts that are deleted."""

from sqlalchemy import BigInteger, ForeignKeyConstraint
from sqlmodel import Field

from profilesvc.storage.tables.columns import Tenant, instant, partial_index


class SessionRow(Tenant, table=True):
    """A user token that was issued, by its id (`jti`). `revocations` and `users` decide whether it is valid."""

    __tablename__ = "sessions"
    __table_args__ = (ForeignKeyConstraint(["owner_id"], ["users.id"]),)

    id: str = Field(max_length=32, primary_key=True)
    created_at: int = instant()
    used_at: int = instant()  # written at most once an hour
    expires_at: int = instant(index=True)
    epoch: int = Field(sa_type=BigInteger)  # that of the user when the token was issued
    ip_prefix: str | None = Field(max_length=64)
    # Names such as `Firefox` and `Windows`, empty if they are unknown.
    browser: str = Field(max_length=40, sa_column_kwargs={"server_default": ""})
    system: str = Field(max_length=40, sa_column_kwargs={"server_default": ""})


class DeletionRow(Tenant, table=True):
    """An account whose deletion was requested. It stays as long as the pseudonymous audit trail of the account."""

    __tablename__ = "deletions"
    __table_args__ = (
        ForeignKeyConstraint(["owner_id"], ["users.id"]),
        partial_index("ix_deletions_unfinished", "requested_at", "owner_id", where="finished_at IS NULL"),
    )

    requested_at: int = instant()
    finished_at: int | None = instant(index=True)
    digest: str = Field(max_length=64)  # of the e-mail address, with the pepper, by which the operator finds it
