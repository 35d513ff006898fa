"""The tables of what keys request: counts per day, and a log of some requests. They follow the rules of `tables.py`.

They do not refer to `keys`: a row is written seconds after its request, and if the key was deleted meanwhile, that must
not fail the rows that are written with it. The next pass of the deletion finds it.
"""

from sqlalchemy import BigInteger, CheckConstraint, Column, Integer, String
from sqlmodel import Field

from profilesvc.database.schema import metadata
from profilesvc.storage.tables.columns import owner
from profilesvc.storage.tables.directories import ID, Table


class KeyUsageRow(Table, table=True):
    """The number of a key's requests on a day (UTC), and of those that failed, by the class of the status."""

    __tablename__ = "key_usage"
    __table_args__ = (CheckConstraint("client_errors <= requests AND server_errors <= requests", name="whole"),)

    owner_id: int = Field(sa_column=owner())
    key_id: int = Field(sa_column=Column(ID, primary_key=True, autoincrement=False))
    day: int = Field(sa_column=Column(BigInteger, primary_key=True, autoincrement=False, index=True))
    requests: int = Field(sa_column=Column(BigInteger, nullable=False))
    client_errors: int = Field(sa_column=Column(BigInteger, nullable=False))
    server_errors: int = Field(sa_column=Column(BigInteger, nullable=False))


class RequestRow(Table, table=True):
    """A request of a key. Nothing in it is text that the caller wrote, except a short request id.

    `id` orders the requests of a millisecond; its start is a count of the process that wrote it.
    """

    __tablename__ = "request_log"
    owner_id: int = Field(sa_column=owner())
    key_id: int = Field(sa_column=Column(ID, primary_key=True, autoincrement=False))
    at: int = Field(sa_column=Column(BigInteger, primary_key=True, autoincrement=False, index=True))
    id: str = Field(sa_column=Column(String(24), primary_key=True))
    method: str = Field(sa_column=Column(String(8), nullable=False))
    route: str = Field(sa_column=Column(String(120), nullable=False))
    status: int = Field(sa_column=Column(Integer, nullable=False))
    code: str | None = Field(default=None, sa_column=Column(String(40)))
    reason: str | None = Field(default=None, sa_column=Column(String(40)))
    field: str | None = Field(default=None, sa_column=Column("field", String(120)))
    duration_ms: int = Field(sa_column=Column(Integer, nullable=False))
    request_id: str | None = Field(default=None, sa_column=Column(String(40)))
    ip_prefix: str | None = Field(default=None, sa_column=Column(String(64)))


key_usage = metadata.tables["key_usage"]
request_log = metadata.tables["request_log"]
