"""The base of the provider's messages: strict fields, their access, and the scalar types of proto JSON.

Every field is optional and can be null, which clears it. The rules in `domain/` decide which fields an operation needs.
The JSON document, not the model, is stored and forwarded, so that nothing is lost or coerced.
"""

from enum import Enum
from typing import Annotated

from pydantic import AfterValidator, BaseModel, ConfigDict, Field
from pydantic_core import PydanticCustomError

from profilesvc.contract.common import STORABLE, Text, parse_timestamp


class Writable(Enum):
    """The mark of a field that a caller cannot write. Fields without a mark are writable."""

    OUTPUT_ONLY = "output only"
    IMMUTABLE = "immutable"


OUTPUT_ONLY, IMMUTABLE = Writable.OUTPUT_ONLY, Writable.IMMUTABLE


def _timestamp(value: str) -> str:
    try:
        parse_timestamp(value)
    except ValueError:
        raise PydanticCustomError("timestamp", "must be an RFC 3339 time such as 2026-01-02T03:04:05Z") from None
    return value


String = Annotated[str, Field(max_length=4096), STORABLE]
ShortText = Annotated[str, Field(max_length=300), STORABLE]
Phone = Annotated[str, Field(max_length=64), STORABLE]
Uri = Annotated[str, Field(max_length=2048), STORABLE]
Int64 = Annotated[str, Field(pattern=r"^-?[0-9]{1,19}$", description="64-bit integer as a string (proto JSON).")]
Number = Annotated[float, Field(allow_inf_nan=False)]
Timestamp = Annotated[Text, AfterValidator(_timestamp), Field(json_schema_extra={"format": "date-time"})]


class Message(BaseModel):
    """A provider message: unknown fields and wrong types are rejected, and nothing is coerced."""

    model_config = ConfigDict(strict=True, extra="forbid", allow_inf_nan=False, hide_input_in_errors=True)


class OpenMessage(Message):
    """A message of a profile. A sync filters its unknown and read-only fields instead of rejecting them (D-81)."""
