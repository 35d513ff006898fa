"""The response envelope: every answer under /api/v1 is a Success or a Failure."""

from typing import Any, Generic, Literal, TypeVar

from pydantic import BaseModel, Field

from profilesvc.contract.errors import CATALOGUE

T = TypeVar("T")


class Success(BaseModel, Generic[T]):
    """`{status: 'ok', data: …}` (API document, Response envelope)."""

    status: Literal["ok"] = "ok"
    data: T


class ErrorBody(BaseModel):
    """What went wrong: a code to switch on, a sentence to read, members that depend on the code."""

    code: str = Field(
        description="Stable, upper case; see the error catalogue.",
        examples=["VALIDATION_ERROR"],
        json_schema_extra={"enum": list(CATALOGUE)},
    )
    message: str = Field(description="For people; may change.")
    details: dict[str, Any] | None = Field(default=None, description="Depends on the code.")


class Failure(BaseModel):
    """`{status: 'error', error: {code, message, details?}}` (API document, Errors)."""

    status: Literal["error"] = "error"
    error: ErrorBody
