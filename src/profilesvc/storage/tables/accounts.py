"""The tables of accounts: the sessions of users, and the accounts that are deleted. They follow `tables.py`."""

from sqlalchemy import BigInteger, Column, ForeignKeyConstraint, Index, String, text
from sqlmodel import Field

from profilesvc.storage.tables.columns import owner
from profilesvc.storage.tables.directories import Table

_UNFINISHED = text("finished_at IS NULL")  # the index of the rounds stays small, however many are finished


class SessionRow(Table, table=True):
    """A user token that was issued, by its id (`jti`). Whether it is valid is for `revocations` and `users` to say.

    `browser` and `system` are names such as `Firefox` and `Windows`, empty if they are unknown.
    """

    __tablename__ = "sessions"
    __table_args__ = (ForeignKeyConstraint(["owner_id"], ["users.id"]),)

    owner_id: int = Field(sa_column=owner())
    id: str = Field(sa_column=Column(String(32), primary_key=True))
    created_at: int = Field(sa_column=Column(BigInteger, nullable=False))
    # Written at most once an hour.
    used_at: int = Field(sa_column=Column(BigInteger, nullable=False))
    expires_at: int = Field(sa_column=Column(BigInteger, nullable=False, index=True))
    # That of the user when the token was issued.
    epoch: int = Field(sa_column=Column(BigInteger, nullable=False))
    ip_prefix: str | None = Field(default=None, sa_column=Column(String(64)))
    browser: str = Field(default="", sa_column=Column(String(40), nullable=False, server_default=""))
    system: str = Field(default="", sa_column=Column(String(40), nullable=False, server_default=""))


class DeletionRow(Table, table=True):
    """An account whose deletion was requested. It stays as long as the pseudonymous audit trail of the account.

    `digest` is that of the e-mail address, with the pepper, so that the operator can find a deletion by the address.
    """

    __tablename__ = "deletions"
    __table_args__ = (
        ForeignKeyConstraint(["owner_id"], ["users.id"]),
        Index(
            "ix_deletions_unfinished",
            *("requested_at", "owner_id"),
            sqlite_where=_UNFINISHED,
            postgresql_where=_UNFINISHED,
        ),
    )

    owner_id: int = Field(sa_column=owner())
    requested_at: int = Field(sa_column=Column(BigInteger, nullable=False))
    finished_at: int | None = Field(default=None, sa_column=Column(BigInteger, index=True))
    digest: str = Field(sa_column=Column(String(64), nullable=False))
