"""The texts for invalid values, in one form for all validators.

A problem continues the name of its field: "`permissions` must be an array of strings".
"""

import re

from pydantic_core import ErrorDetails

from profilesvc.contract.json import JsonObject

_BY_TYPE = {
    "missing": "is required",
    "string_type": "must be a string",
    "bool_type": "must be true or false",
    "bool_parsing": "must be true or false",
    "int_type": "must be an integer",
    "int_parsing": "must be an integer",
    "int_parsing_size": "must be an integer of fewer digits",
    "int_from_float": "must be an integer",
    "float_type": "must be a number",
    "float_parsing": "must be a number",
    "finite_number": "must be a finite number",
    "list_type": "must be an array",
    "tuple_type": "must be an array",
    "dict_type": "must be an object",
    "model_type": "must be an object",
    "model_attributes_type": "must be an object",
    "none_required": "must be null",
    "string_unicode": "must be Unicode text",
    "extra_forbidden": "is not a known field",
}
_BY_LIMIT = {
    "greater_than": "must be greater than {gt}",
    "greater_than_equal": "must be at least {ge}",
    "less_than": "must be less than {lt}",
    "less_than_equal": "must be at most {le}",
    "string_pattern_mismatch": "must match {pattern}",
}
_BY_COUNT = {
    "string_too_short": ("at least", "min_length", "character"),
    "string_too_long": ("at most", "max_length", "character"),
    "too_short": ("at least", "min_length", "item"),
    "too_long": ("at most", "max_length", "item"),
}
_PLACES = {"body": "", "form": "", "query": "query parameter ", "path": "path parameter ", "header": "header "}
_CHOICE = re.compile(r"'([^']*)'")
_PYTHON_SUBJECT = re.compile(r"^(?:Input|Value|\w+) should")


def counted(number: int, noun: str) -> str:
    """Return `1 item`, `2 items`."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def choices(error: ErrorDetails) -> list[str]:
    """Return the values that a field with a closed list of values accepts; none for other errors."""
    return _CHOICE.findall(error["ctx"]["expected"]) if error["type"] in {"literal_error", "enum"} else []


def problem_of(error: ErrorDetails) -> str:
    """Return the problem for one of pydantic's errors. It never repeats the input."""
    kind, context = error["type"], error.get("ctx", {})
    if kind in _BY_TYPE:
        return _BY_TYPE[kind]
    if kind in _BY_LIMIT:
        return _BY_LIMIT[kind].format(**context)
    if kind in _BY_COUNT:
        return _count(context, *_BY_COUNT[kind])
    if accepted := choices(error):
        return f"must be one of {', '.join(accepted)}"
    return _PYTHON_SUBJECT.sub("must", error["msg"].removeprefix("Value error, "))


def _count(context: JsonObject, limit: str, name: str, noun: str) -> str:
    if name == "min_length" and context[name] == 1:
        return "must not be empty"
    return f"must have {limit} {counted(context[name], noun)}"


def sentence(where: str, field: str, problem: str) -> str:
    """Return the message of one problem: the field as the caller wrote it (none: the whole body), then the rule."""
    if not field:
        return f"The {where} {problem}."
    text = f"{_PLACES[where]}`{field}` {problem}."
    return text[0].upper() + text[1:]
