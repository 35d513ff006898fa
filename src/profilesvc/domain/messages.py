"""Check, trim and compare documents by the provider's messages, from the annotations of their fields."""

import re
from collections.abc import Iterator
from typing import Any, Literal, get_args, get_origin

from pydantic import ValidationError
from pydantic.fields import FieldInfo
from pydantic_core import ErrorDetails

from profilesvc.contract.json import JsonObject
from profilesvc.contract.provider import limits
from profilesvc.contract.provider.format import OUTPUT_ONLY, Int64, Message, Writable
from profilesvc.contract.provider.location import (
    BusinessHours,
    Categories,
    Date,
    Location,
    MoreHours,
    PhoneNumbers,
    Places,
    PostalAddress,
    RelationshipData,
    SpecialHourPeriod,
    SpecialHours,
    TimeOfDay,
    TimePeriod,
)
from profilesvc.contract.provider.post import LocalPost, LocalPostEvent, TimeInterval, WeeklyOccurrencePattern
from profilesvc.domain.errors import MAX_PROBLEMS, Problem
from profilesvc.domain.problems import choices, counted, problem_of

_RANGES: dict[type[Message], dict[str, tuple[int, int]]] = {
    Date: {"year": (0, 9999), "month": (0, 12), "day": (0, 31)},
    TimeOfDay: {"hours": (0, 24), "minutes": (0, 59), "seconds": (0, 60), "nanos": (0, 999_999_999)},
}
_REQUIRED: dict[type[Message], tuple[str, ...]] = {
    TimePeriod: ("openDay", "openTime", "closeDay", "closeTime"),
    SpecialHourPeriod: ("startDate",),
    LocalPostEvent: ("title", "schedule"),
    TimeInterval: ("startDate", "startTime", "endDate", "endTime"),
}
# The largest arrays in a request: the provider's limits if it has them, else the service's, which are far above the
# needs of a business or post. Responses can have more, because the provider's data is returned unchanged.
_MOST: dict[type[Message], dict[str, int]] = {
    LocalPost: {"media": 10},
    WeeklyOccurrencePattern: {"daysOfWeek": 7},
    PhoneNumbers: {"additionalPhones": limits.ADDITIONAL_PHONES},
    PostalAddress: {"addressLines": limits.ADDRESS_LINES, "recipients": 10},
    Categories: {"additionalCategories": limits.ADDITIONAL_CATEGORIES},
    Places: {"placeInfos": limits.PLACES},
    BusinessHours: {"periods": 100},
    MoreHours: {"periods": 100},
    SpecialHours: {"specialHourPeriods": 1_000},
    RelationshipData: {"childrenLocations": 1_000},
    Location: {"labels": limits.LABELS, "moreHours": 50, "serviceItems": 1_000},
}
_WHOLE = re.compile(r"-?[0-9]{1,19}\Z")
_UNUSABLE = ("GET_OFFER", "VIDEO")  # in the provider's format, but rejected in a post


def access_of(field: FieldInfo) -> Writable | None:
    """Return OUTPUT_ONLY, IMMUTABLE, or None for a field that a caller may write."""
    return next((mark for mark in field.metadata if isinstance(mark, Writable)), None)


def message_of(annotation: object) -> tuple[type[Message] | None, bool]:
    """Return the message of an annotation and whether it is a list, such as (TimePeriod, True)."""
    if isinstance(annotation, type) and issubclass(annotation, Message):
        return annotation, False
    is_list = get_origin(annotation) is list
    for inner in get_args(annotation):
        message, inner_list = message_of(inner)
        if message is not None:
            return message, is_list or inner_list
    return None, is_list


def parse(message: type[Message], document: JsonObject) -> tuple[JsonObject, list[Problem]]:
    """Return the document with normalised numbers (10 for 10.0), in its own order, and its problems.

    Values with a wrong type are left out, so that later checks can continue with the rest and one response names every
    problem. This checks types, required fields of times and periods, and ranges of dates and times.
    """
    unknown = [name for name in document if name not in message.model_fields]
    if len(unknown) > MAX_PROBLEMS:  # an error names no more of them, and each would cost time
        unnamed = set(unknown[MAX_PROBLEMS:])
        document = {name: value for name, value in document.items() if name not in unnamed}
    try:
        model = message.model_validate(document)
    except ValidationError as error:
        errors = error.errors(include_url=False, include_input=False)
        problems = [_problem(problem) for problem in errors]
        rest, more = parse(message, _without(document, {problem["loc"] for problem in errors}))
        reported = {field for _, field, _ in problems}
        return rest, problems[:MAX_PROBLEMS] + [problem for problem in more if problem[1] not in reported]
    parsed = _in_order(document, model.model_dump(exclude_unset=True))
    return parsed, [problem for part in _messages(message, parsed, "") for problem in _value_problems(*part)]


def _without(value: Any, invalid: set[tuple[int | str, ...]]) -> Any:
    """Return the value without these paths. A list with an invalid item is removed whole, so that no index moves."""
    below: dict[int | str, set[tuple[int | str, ...]]] = {}
    for first, *rest in invalid:
        below.setdefault(first, set()).add(tuple(rest))
    if isinstance(value, list):
        return [_without(item, below[index]) if index in below else item for index, item in enumerate(value)]
    return {
        name: _without(inner, below[name]) if name in below else inner
        for name, inner in value.items()
        if not any(not path or (len(path) == 1 and isinstance(path[0], int)) for path in below.get(name, ()))
    }


def without_read_only(message: type[Message] | None, value: object) -> Any:
    """Return the value without output-only fields, at any depth. Values of a wrong type remain for the check."""
    if isinstance(value, list):
        return [without_read_only(message, item) for item in value]
    if message is None or not isinstance(value, dict):
        return value
    fields = message.model_fields
    return {
        name: without_read_only(message_of(fields[name].annotation)[0], inner) if name in fields else inner
        for name, inner in value.items()
        if name not in fields or access_of(fields[name]) is not OUTPUT_ONLY
    }


def without_nulls(value: object) -> Any:
    """Return the value as the provider writes it, without null fields, at any depth."""
    if isinstance(value, list):
        return [without_nulls(item) for item in value]
    if isinstance(value, dict):
        return {name: without_nulls(inner) for name, inner in value.items() if inner is not None}
    return value


def normal(annotation: object, value: object) -> object:
    """Return the value for comparison: None for values that proto JSON omits, and no output-only fields.

    Absent, null, "", 0, false, [], {} and the first value of an enum are equal. Items of a list remain.
    """
    message, _ = message_of(annotation)
    if isinstance(value, list):
        return [_normal_item(message, item) for item in value] or None
    if isinstance(value, dict):
        return _normal_item(message, value) or None
    if isinstance(value, str) and Int64 in get_args(annotation) and _WHOLE.match(value):
        return str(int(value)) if int(value) else None
    return None if value in (None, "", 0, _enum_default(annotation)) else value


def annotation_at(message: type[Message], path: str) -> object:
    """Return the type of a dotted path, or None if the message has no such field."""
    annotation: object = message
    for name in path.split("."):
        inner, _ = message_of(annotation)
        field = inner.model_fields.get(name) if inner else None
        if field is None:
            return None
        annotation = field.annotation
    return annotation


def _normal_item(message: type[Message] | None, value: object) -> object:
    if not isinstance(value, dict):
        return value
    fields = message.model_fields if message else {}
    normalised = {
        name: normal(fields[name].annotation if name in fields else None, inner)
        for name, inner in value.items()
        if name not in fields or access_of(fields[name]) is not OUTPUT_ONLY
    }
    return without_nulls(normalised)


def _enum_default(annotation: object) -> object:
    """Return the first value of an enum annotation, which the provider omits; None for other types."""
    if get_origin(annotation) is Literal:
        return get_args(annotation)[0]
    return next((first for inner in get_args(annotation) if (first := _enum_default(inner))), None)


def _problem(error: ErrorDetails) -> Problem:
    text = "is not a field of the provider's format" if error["type"] == "extra_forbidden" else _choices(error)
    return "body", ".".join(str(part) for part in error["loc"]), text or problem_of(error)


def _choices(error: ErrorDetails) -> str:
    """Return the problem with the enum's values that a caller may send; an empty string for other errors."""
    values = [value for value in choices(error) if not value.endswith("_UNSPECIFIED") and value not in _UNUSABLE]
    return f"must be one of {', '.join(values)}" if values else ""


def _in_order(original: Any, parsed: Any) -> Any:
    """Return the parsed value with its fields in the caller's order."""
    if isinstance(parsed, dict):
        return {name: _in_order(original[name], parsed[name]) for name in original}
    if isinstance(parsed, list):
        return [_in_order(*pair) for pair in zip(original, parsed, strict=True)]
    return parsed


def _messages(
    message: type[Message], value: JsonObject, prefix: str
) -> Iterator[tuple[type[Message], JsonObject, str]]:
    """Yield every message in a document with the prefix of its fields' paths."""
    yield message, value, prefix
    for name, field_value in value.items():
        inner, _ = message_of(message.model_fields[name].annotation)
        if inner is None or field_value is None:
            continue
        if isinstance(field_value, dict):
            yield from _messages(inner, field_value, f"{prefix}{name}.")
            continue
        for index, item in enumerate(field_value):
            yield from _messages(inner, item, f"{prefix}{name}.{index}.")


def _value_problems(message: type[Message], value: JsonObject, prefix: str) -> Iterator[Problem]:
    for name in _REQUIRED.get(message, ()):
        if value.get(name) is None:
            yield "body", f"{prefix}{name}", "is required"
    for name, most in _MOST.get(message, {}).items():
        if len(value.get(name) or ()) > most:
            yield "body", f"{prefix}{name}", f"must have at most {counted(most, 'item')}"
    for name, (low, high) in _RANGES.get(message, {}).items():
        if not low <= (value.get(name) or 0) <= high:
            yield "body", f"{prefix}{name}", f"must be from {low} to {high}"
    if message is TimeOfDay and value.get("hours") == 24 and any(value.get(name) for name in value if name != "hours"):
        yield "body", f"{prefix}hours", "must be below 24, or 24:00 exactly"
