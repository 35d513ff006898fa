"""Annotated types that bodies and queries are made of; none of them coerces (D-23a)."""

import re
from typing import Annotated, Any, ClassVar, Literal

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, WithJsonSchema
from pydantic_core import PydanticCustomError

_ACCOUNT = re.compile(r"\Aaccounts/[^/]+/")

LOCATION_ID = re.compile(r"(?!locations\Z)[A-Za-z0-9_-]{1,64}\Z")
POST_ID = re.compile(r"(?!localPosts\Z)[A-Za-z0-9_-]{1,64}\Z")
REVIEW_ID = re.compile(r"(?!reviews\Z|reply\Z)[A-Za-z0-9_-]{1,200}\Z")  # the provider's are long
LOCATION_PATTERN = "^(locations/)?[A-Za-z0-9_-]{1,64}$"
POST_PATTERN = "^(locations/[A-Za-z0-9_-]{1,64}/localPosts/)?[A-Za-z0-9_-]{1,64}$"
REVIEW_PATTERN = "^(locations/[A-Za-z0-9_-]{1,64}/reviews/)?[A-Za-z0-9_-]{1,200}$"
DIGITS = re.compile(r"[0-9]{1,9}\Z", re.ASCII)


def _storable(value: str) -> str:
    """Refuse what one of the databases cannot keep: NUL (PostgreSQL) and lone surrogates (both)."""
    if "\x00" in value or any("\ud800" <= char <= "\udfff" for char in value):
        raise PydanticCustomError("text", "must not contain NUL characters or lone surrogates")
    return value


def whole_number(value: Any) -> Any:
    """PHP writes 10.0 for 10; everything else that is not an integer is left to the strict check (D-23a)."""
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _query_number(value: Any) -> Any:
    """A query number is ASCII digits and nothing else: no sign, blank, exponent or separator (A097)."""
    if isinstance(value, str):
        if not DIGITS.match(value):
            raise PydanticCustomError("query_number", "must be a whole number from 1, in plain digits")
        return int(value)
    return value


def location_name(value: str) -> str:
    """The one canonicaliser of location ids: `123` or `locations/123` to `locations/123` (D-20).

    Raises ValueError for anything else; its result is the only form that is used afterwards.
    """
    ident = value.removeprefix("locations/")
    if not LOCATION_ID.match(ident):
        raise ValueError("must be a location id or resource name, such as locations/123")
    return f"locations/{ident}"


def post_id(value: str, location: str) -> str:
    """`p1` or `locations/123/localPosts/p1` to `p1`; raises ValueError unless it fits the location (D-20)."""
    parent, _, ident = value.rpartition("/localPosts/")
    if not POST_ID.match(ident):
        raise ValueError("must be a post id or resource name, such as locations/123/localPosts/456")
    return _of(location, parent, ident)


def review_id(value: str, location: str) -> str:
    """`r1` or `locations/123/reviews/r1` to `r1`; raises ValueError unless it fits the location."""
    parent, _, ident = value.rpartition("/reviews/")
    if not REVIEW_ID.match(ident):
        raise ValueError("must be a review id or resource name, such as locations/123/reviews/456")
    return _of(location, parent, ident)


def _of(location: str, parent: str, ident: str) -> str:
    if parent and parent != location:
        raise ValueError("names one of another location than locationId")
    return ident


def _location_name(value: str) -> str:
    try:
        return location_name(value)
    except ValueError as error:
        raise PydanticCustomError("location_name", "{reason}", {"reason": str(error)}) from None


# A constraint stands before what reads the value first: otherwise the JSON schema does not have it.
STORABLE = AfterValidator(_storable)  # after a length, which is counted in characters only of a bare str
Text = Annotated[str, STORABLE]
Int32 = Annotated[int, Field(ge=-(2**31), le=2**31 - 1), BeforeValidator(whole_number)]
Id = Annotated[int, Field(ge=1, le=2**63 - 1), BeforeValidator(whole_number)]
PageNumber = Annotated[int, Field(ge=1, le=999_999_999), BeforeValidator(_query_number)]
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
    """A request body: strict types; unknown members are ignored unless a body says otherwise (D-23a)."""

    model_config = ConfigDict(strict=True, extra="ignore", allow_inf_nan=False, hide_input_in_errors=True)


class Query(BaseModel):
    """Query parameters: unknown ones are ignored, repeats are refused before they get here (D-03).

    `exact` are those that must not be lost to a typing error, in case or underscores.
    """

    exact: ClassVar[tuple[str, ...]] = ()
    model_config = ConfigDict(extra="ignore", hide_input_in_errors=True)


class Data(BaseModel):
    """The `data` of an answer."""

    model_config = ConfigDict(extra="forbid")


def without_account(name: str) -> str:
    """Return `locations/2/reviews/3` for the provider's `accounts/1/locations/2/reviews/3` (D-74)."""
    return _ACCOUNT.sub("", name)
