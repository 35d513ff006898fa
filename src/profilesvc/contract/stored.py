"""Models that are built from stored values: a value that no longer validates is shown, and does not act (D-137)."""

import json
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from profilesvc.contract.json import JsonObject

Model = TypeVar("Model", bound=BaseModel)
_MOST_ROUNDS = 50  # a removed value can make another one invalid, such as the list that it was in


def stored_object(text: str | None) -> JsonObject:
    """Return the JSON object of a column; an empty one if the column has no such object."""
    try:
        value = json.loads(text or "{}")
    except ValueError:
        return {}
    return value if isinstance(value, dict) else {}


def stored_list(text: str | None) -> list[Any]:
    """Return the JSON array of a column; an empty one if the column has no such array."""
    try:
        value = json.loads(text or "[]")
    except ValueError:
        return []
    return value if isinstance(value, list) else []


def as_stored(model: type[Model], values: JsonObject) -> Model:
    """Return what a response shows of a row: its values, valid or not. A required value that is missing is None."""
    try:
        return model.model_validate(values)
    except ValidationError:
        missing = {name: None for name, field in model.model_fields.items() if field.is_required()}
        return model.model_construct(**{**missing, **values})


def acting(model: type[Model], values: JsonObject) -> Model:
    """Return what acts of stored values: those that are valid, also in lists. The others have their defaults."""
    values = json.loads(json.dumps(values))
    for _ in range(_MOST_ROUNDS):
        try:
            return model.model_validate(values)
        except ValidationError as error:
            # The last first, so that the positions of the others in a list stay the same.
            for problem in reversed(error.errors(include_url=False, include_input=False, include_context=False)):
                place = problem["loc"][:-1] if problem["type"] == "missing" else problem["loc"]
                _remove(values, place)
    return model()


def _remove(document: Any, place: tuple[int | str, ...]) -> None:
    """Remove the value at a place, or the nearest one that contains it."""
    for step in place[:-1]:
        inner = _at(document, step)
        if not isinstance(inner, dict | list):
            place = (step,)
            break
        document, place = inner, place[1:]
    if not place:
        return
    if isinstance(document, list) and isinstance(place[0], int) and place[0] < len(document):
        del document[place[0]]
    elif isinstance(document, dict):
        document.pop(str(place[0]), None)


def _at(document: Any, step: int | str) -> Any:
    if isinstance(document, list):
        return document[step] if isinstance(step, int) and step < len(document) else None
    return document.get(str(step)) if isinstance(document, dict) else None
