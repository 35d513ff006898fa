"""The response envelope: every response under /api/v1 is a Success or a Failure (docs/api-contract.md#envelope)."""

from typing import Generic, Literal, TypeVar

from pydantic import BaseModel, Field

from profilesvc.contract.errors import CATALOGUE
from profilesvc.contract.json import JsonObject

T = TypeVar("T")


class Success(BaseModel, Generic[T]):
    """`{status: 'ok', data: …}`."""

    status: Literal["ok"] = "ok"
    data: T


class ErrorBody(BaseModel):
    """The error: a code for programs, a message for people, and details that depend on the code."""

    code: str = Field(
        description="Stable, in upper case.", examples=["VALIDATION_ERROR"], json_schema_extra={"enum": list(CATALOGUE)}
    )
    message: str = Field(description="For people; can change.")
    details: JsonObject | None = Field(default=None, description="Depends on the code.")


class Failure(BaseModel):
    """`{status: 'error', error: {code, message, details?}}`."""

    status: Literal["error"] = "error"
    error: ErrorBody
