"""The words of every validator have one form, and none of Python's or pydantic's."""

from typing import Annotated, Any, Literal

import pytest
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from profilesvc.domain.problems import problem_of, sentence


class Example(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)

    text: str = Field(default="", min_length=1, max_length=3)
    flag: bool = False
    number: int = Field(default=1, ge=1, le=9)
    names: Annotated[list[str], Field(min_length=1, max_length=1)] = ["x"]
    inner: dict[str, Any] = {}
    choice: Literal["a", "b"] = "a"
    needed: int


@pytest.mark.parametrize(
    ("field", "value", "problem"),
    [
        ("text", 1, "must be a string"),
        ("text", "", "must not be empty"),
        ("text", "long", "must have at most 3 characters"),
        ("flag", "yes", "must be true or false"),
        ("number", "1", "must be an integer"),
        ("number", 0, "must be at least 1"),
        ("number", 10, "must be at most 9"),
        ("names", "x", "must be an array"),
        ("names", [], "must not be empty"),
        ("names", ["x", "y"], "must have at most 1 item"),
        ("inner", [], "must be an object"),
        ("choice", "c", "must be one of a, b"),
        ("other", 1, "is not a known field"),
        ("needed", None, "must be an integer"),
    ],
)
def test_a_problem_is_in_the_words_of_json(field: str, value: object, problem: str) -> None:
    with pytest.raises(ValidationError) as refused:
        Example.model_validate({"needed": 1, field: value})
    assert [problem_of(error) for error in refused.value.errors()] == [problem]


def test_a_missing_field_is_required() -> None:
    with pytest.raises(ValidationError) as refused:
        Example.model_validate({})
    assert [problem_of(error) for error in refused.value.errors()] == ["is required"]


def test_a_message_names_the_field_as_the_caller_wrote_it() -> None:
    assert sentence("body", "permissions", "must be an array") == "`permissions` must be an array."
    assert sentence("query", "limit", "must be at least 1") == "Query parameter `limit` must be at least 1."
    assert sentence("body", "", "must be a JSON object") == "The body must be a JSON object."
