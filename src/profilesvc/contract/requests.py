"""The requests of a key on the wire, an addition of this service."""

from typing import Annotated, Literal

from pydantic import Field

from profilesvc.contract.common import Data, PageLimit, PageNumber, Query, UtcTime, reduced_to

MAX_DAYS = 30


class KeyRequestsQuery(Query):
    """The days that are counted, and the page of the log."""

    days: Annotated[
        PageNumber,
        reduced_to(MAX_DAYS),
        Field(description="How many days to count, today included; a larger value is reduced to 30."),
    ] = 7
    errors_only: Annotated[Literal["true", "false"], Field(description="`true` lists only requests that failed.")] = (
        "false"
    )
    limit: PageLimit = 50
    before: Annotated[
        str | None, Field(pattern=r"^[0-9]{1,15}-[0-9a-f]{1,24}$", description="`next_before` of the previous page.")
    ] = None


class UsageDay(Data):
    """The requests of a key on a day. Each is counted."""

    day: str = Field(description="The day in UTC.", examples=["2026-01-02"], json_schema_extra={"format": "date"})
    requests: int = Field(description="All requests of the day, those with errors included.")
    client_errors: int = Field(description="Requests with a status of 400 to 499.")
    server_errors: int = Field(description="Requests with a status of 500 or more.")


class LoggedRequest(Data):
    """A request of a key. Its path, query, headers and body are not stored."""

    at: UtcTime = Field(description="When the request arrived.")
    method: str = Field(description="The method of the request.", examples=["POST"])
    path: str = Field(
        description="The documented path, without the values in it; `unknown` if there is no such path.",
        examples=["/api/v1/posts/{postId}"],
    )
    status: int = Field(description="The status of the response.", examples=[403])
    code: str | None = Field(description="The code of the error; null for a success.", examples=["PLAN_RESTRICTION"])
    reason: str | None = Field(
        description="`reason` or `deactivation_reason` of the error's details, if it has one; or `wrong_secret`.",
        examples=["permission_missing"],
    )
    field: str | None = Field(
        description="The first field that the error names; null also for a name that is not documented.",
        examples=["callToAction.url"],
    )
    duration_ms: int = Field(description="Milliseconds until the response.")
    request_id: str | None = Field(
        description="`X-Request-Id` of the response; null for one of more than 40 characters, which a caller chose."
    )
    ip_prefix: str | None = Field(description="The caller's network, in CIDR notation.", examples=["192.0.2.0/24"])


class KeyRequests(Data):
    """The number of a key's requests per day, and a page of the log."""

    usage: list[UsageDay] = Field(description="One entry per day, the newest first, also for days without a request.")
    requests: list[LoggedRequest] = Field(
        description="The newest first, of the last 7 days. Errors are logged up to a limit per hour, successes are "
        "sampled."
    )
    limit: int = Field(description="The effective size of the page.")
    next_before: str | None = Field(description="Send as `before` for the next page; null on the last.")
