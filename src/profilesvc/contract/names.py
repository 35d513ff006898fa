"""The documented names of fields. Other names in a request are text that its caller wrote."""

from collections.abc import Iterator
from functools import cache

from pydantic import BaseModel

_OTHERS = ("postId", "reviewId", "X-Idempotency-Key")
_LONGEST_INDEX = 4  # digits of the place in an array


@cache
def _names() -> frozenset[str]:
    names = set(_OTHERS)
    for model in _models(BaseModel):
        for name, field in model.model_fields.items():
            names |= {name, *(alias for alias in (field.alias, field.validation_alias) if isinstance(alias, str))}
    return frozenset(names)


def _models(base: type[BaseModel]) -> Iterator[type[BaseModel]]:
    for model in base.__subclasses__():
        if model.__module__.startswith(f"{__package__}."):
            yield model
        yield from _models(model)


def is_documented(path: str) -> bool:
    """Return whether each part of the path of a field, such as `media.0.sourceUrl`, is the name of one or an index."""
    return all(
        part in _names() or (part.isascii() and part.isdecimal() and len(part) <= _LONGEST_INDEX)
        for part in path.split(".")
    )
