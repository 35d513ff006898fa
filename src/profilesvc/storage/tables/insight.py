"""The tables of what keys request: counts per day, and a log of some requests.

They do not refer to `keys`: a row is written seconds after its request, and if the key was deleted meanwhile, that must
not fail the rows that are written with it. The next pass of the deletion finds it.
"""

from sqlalchemy import BigInteger, CheckConstraint
from sqlmodel import Field

from profilesvc.database.schema import metadata
from profilesvc.domain.time import DAY
from profilesvc.storage.tables.columns import Tenant, instant, reference

LOG_KEPT = 7 * DAY


class KeyUsageRow(Tenant, table=True):
    """The number of a key's requests on a day (UTC), and of those that failed, by the class of the status."""

    __tablename__ = "key_usage"
    __table_args__ = (CheckConstraint("client_errors <= requests AND server_errors <= requests", name="whole"),)

    key_id: int = reference(primary_key=True)
    day: int = instant(primary_key=True, index=True)
    requests: int = Field(sa_type=BigInteger)
    client_errors: int = Field(sa_type=BigInteger)
    server_errors: int = Field(sa_type=BigInteger)


class RequestRow(Tenant, table=True):
    """A request of a key. Nothing in it is text that the caller wrote, except a short request id."""

    __tablename__ = "request_log"
    key_id: int = reference(primary_key=True)
    at: int = instant(primary_key=True, index=True)
    id: str = Field(max_length=24, primary_key=True)  # orders those of a millisecond, by a count of the process
    method: str = Field(max_length=8)
    route: str = Field(max_length=120)
    status: int
    code: str | None = Field(max_length=40)
    reason: str | None = Field(max_length=40)
    field: str | None = Field(max_length=120)
    duration_ms: int
    request_id: str | None = Field(max_length=40)
    ip_prefix: str | None = Field(max_length=64)


key_usage = metadata.tables["key_usage"]
request_log = metadata.tables["request_log"]
