"""Annotated types for bodies and queries. They never coerce, because a coerced value hides a client's mistake."""

import re
from datetime import datetime
from functools import partial
from typing import Annotated, ClassVar, Literal

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, WithJsonSchema
from pydantic_core import PydanticCustomError

_ACCOUNT = re.compile(r"\Aaccounts/[^/]+/")

LOCATION_ID = re.compile(r"(?!locations\Z)[A-Za-z0-9_-]{1,64}\Z")
POST_ID = re.compile(r"(?!localPosts\Z)[A-Za-z0-9_-]{1,64}\Z")
REVIEW_ID = re.compile(r"(?!reviews\Z|reply\Z)[A-Za-z0-9_-]{1,200}\Z")  # the provider's ids are long
LOCATION_PATTERN = "^(locations/)?[A-Za-z0-9_-]{1,64}$"
POST_PATTERN = "^(locations/[A-Za-z0-9_-]{1,64}/localPosts/)?[A-Za-z0-9_-]{1,64}$"
REVIEW_PATTERN = "^(locations/[A-Za-z0-9_-]{1,64}/reviews/)?[A-Za-z0-9_-]{1,200}$"
MAX_LIMIT = 100  # entries of a page
DIGITS = re.compile(r"[0-9]{1,9}\Z", re.ASCII)
_RFC3339 = re.compile(r"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)(\.\d{1,9})?(Z|[+-]\d\d:\d\d)\Z", re.ASCII)


def _storable(value: str) -> str:
    """Reject characters that a database cannot store: NUL (PostgreSQL) and lone surrogates (both)."""
    if "\x00" in value or any("\ud800" <= char <= "\udfff" for char in value):
        raise PydanticCustomError("text", "must not contain NUL characters or lone surrogates")
    return value


def whole_number(value: object) -> object:
    """Return 10 for 10.0, because PHP writes integers so; the strict check rejects everything else (D-23a)."""
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _query_number(value: object) -> object:
    """Return a number written in plain ASCII digits; `int` would also accept signs, spaces and underscores (A097)."""
    if isinstance(value, str):
        if not DIGITS.match(value):
            raise PydanticCustomError("query_number", "must be a whole number of at least 1, in plain digits")
        return int(value)
    return value


def reduced_to(most: int) -> AfterValidator:
    """Return the validator that reduces a larger number."""
    return AfterValidator(partial(min, most))


def location_name(value: str) -> str:
    """Return `locations/123` for `123` or `locations/123`.

    Access checks and queries use only this form, so that they cannot see different ids (D-20).

    Raises:
        ValueError: The value is not a location id or resource name.
    """
    ident = value.removeprefix("locations/")
    if not LOCATION_ID.match(ident):
        raise ValueError("must be a location id or resource name, such as locations/123")
    return f"locations/{ident}"


def post_id(value: str, location: str) -> str:
    """Return `p1` for `p1` or `locations/123/localPosts/p1`.

    Raises:
        ValueError: The value is not a post id, or names a post of another location.
    """
    parent, _, ident = value.rpartition("/localPosts/")
    if not POST_ID.match(ident):
        raise ValueError("must be a post id or resource name, such as locations/123/localPosts/456")
    return _ident_at(location, parent, ident)


def review_id(value: str, location: str) -> str:
    """Return `r1` for `r1` or `locations/123/reviews/r1`.

    Raises:
        ValueError: The value is not a review id, or names a review of another location.
    """
    parent, _, ident = value.rpartition("/reviews/")
    if not REVIEW_ID.match(ident):
        raise ValueError("must be a review id or resource name, such as locations/123/reviews/456")
    return _ident_at(location, parent, ident)


def _ident_at(location: str, parent: str, ident: str) -> str:
    if parent and parent != location:
        raise ValueError("must belong to the location in locationId")
    return ident


def _location_name(value: str) -> str:
    try:
        return location_name(value)
    except ValueError as error:
        raise PydanticCustomError("location_name", "{reason}", {"reason": str(error)}) from None


# Pydantic writes a constraint into the JSON schema only if it precedes the validator.
STORABLE = AfterValidator(_storable)  # must follow a length limit, which counts characters only of a plain str
Text = Annotated[str, STORABLE]
Int32 = Annotated[int, Field(ge=-(2**31), le=2**31 - 1), BeforeValidator(whole_number)]
Id = Annotated[int, Field(ge=1, le=2**63 - 1), BeforeValidator(whole_number)]
PageNumber = Annotated[int, Field(ge=1, le=999_999_999), BeforeValidator(_query_number)]
PageLimit = Annotated[
    PageNumber,
    reduced_to(MAX_LIMIT),
    Field(description=f"At most {MAX_LIMIT}; a larger value is reduced to {MAX_LIMIT}."),
]
Cursor = Annotated[str, Field(max_length=200, description="`next_before` of the previous page.")]
UtcTime = Annotated[
    str, WithJsonSchema({"type": "string", "format": "date-time", "examples": ["2026-01-02T03:04:05.678Z"]})
]
LocationName = Annotated[
    str,
    AfterValidator(_location_name),
    Field(
        description="Location resource name `locations/<id>`; the bare id is accepted too.",
        examples=["locations/111"],
        json_schema_extra={"pattern": LOCATION_PATTERN},
    ),
]
PermissionName = Literal["business.read", "business.write"]
DeactivationReason = Literal["security_concern", "billing_issue", "plan_downgrade", "user_requested"]


class Body(BaseModel):
    """A request body: strict types; unknown fields are ignored, so that newer clients keep working (D-23a)."""

    model_config = ConfigDict(strict=True, extra="ignore", allow_inf_nan=False, hide_input_in_errors=True)


class Query(BaseModel):
    """Query parameters. The parser rejects repeated ones, and unknown ones of a write (D-123).

    A read ignores unknown ones, except for a misspelling of a parameter in `exact`, because ignoring that would change
    what the request does.
    """

    exact: ClassVar[tuple[str, ...]] = ()
    model_config = ConfigDict(extra="ignore", hide_input_in_errors=True)


class LocationQuery(Query):
    """Query parameters with the location of the request."""

    locationId: LocationName


class Data(BaseModel):
    """The `data` of a response."""

    model_config = ConfigDict(extra="forbid")


def without_account(name: str) -> str:
    """Return `locations/2/reviews/3` for the provider's `accounts/1/locations/2/reviews/3` (D-74)."""
    return _ACCOUNT.sub("", name)


def parse_timestamp(text: str) -> datetime:
    """Parse an RFC 3339 time with Z or an offset; digits beyond microseconds are dropped.

    Raises:
        ValueError: The text is not an RFC 3339 time.
    """
    match = _RFC3339.match(text)
    if match is None:
        raise ValueError("not an RFC 3339 time")
    seconds, fraction, zone = match.groups()
    return datetime.fromisoformat(f"{seconds}{(fraction or '.0')[:7]}{zone}")
