"""Field masks: parse them, and apply them to documents and updates."""

from profilesvc.contract.json import JsonObject
from profilesvc.contract.provider.format import Message
from profilesvc.domain.messages import access_of, message_of
from profilesvc.emulator.errors import ApiError, bad_request
from profilesvc.emulator.wire import camel

Path = tuple[str, ...]
_SENT_TOGETHER = {
    "phoneNumbers": {"primaryPhone", "additionalPhones"},
    "categories": {"primaryCategory", "additionalCategories"},
}


def _invalid(field: str) -> ApiError:
    return bad_request(field, "Invalid field mask provided")


def _is_field(path: Path, model: type[Message], *, writable: bool) -> bool:
    """Return whether the path names a field outside of lists that is writable if `writable`."""
    inner: type[Message] | None = model
    for name in path:
        if inner is None or name not in inner.model_fields:
            return False
        field = inner.model_fields[name]
        if writable and access_of(field) is not None:
            return False
        message, is_list = message_of(field.annotation)
        inner = None if is_list else message
    return True


def _parse(text: str | None, model: type[Message], field: str, *, writable: bool) -> list[Path]:
    if not text:
        raise bad_request(field, "Field is required")
    paths = [tuple(camel(part) for part in path.strip().split(".")) for path in text.split(",")]
    if not all(_is_field(path, model, writable=writable) for path in paths):
        raise _invalid(field)
    return paths


def read_mask(text: str | None, model: type[Message]) -> list[Path]:
    """Return the paths of a readMask.

    Raises:
        ApiError: 400 if it is missing, `*`, or has an unknown path.
    """
    return _parse(text, model, "read_mask", writable=False)


def update_mask(text: str | None, model: type[Message], *, strict: bool) -> list[Path]:
    """Return the paths of an updateMask.

    The schema requires both fields of phoneNumbers and of categories together. Only strict mode enforces this, because
    integrators saw the provider accept one of them.

    Raises:
        ApiError: 400 if it is missing, or has an unknown, output-only or immutable field.
    """
    paths = _parse(text, model, "update_mask", writable=True)
    for parent, children in _SENT_TOGETHER.items():
        named = {path[1] for path in paths if path[0] == parent and len(path) > 1}
        if strict and named and (parent,) not in paths and named != children:
            raise _invalid("update_mask")
    return paths


def trimmed(document: JsonObject, paths: list[Path]) -> JsonObject:
    """Return the fields of a document that the mask names."""
    result: JsonObject = {}
    for path in paths:
        source, target = document, result
        for name in path[:-1]:
            if name not in source:
                break
            source, target = source[name], target.setdefault(name, {})
        else:
            if path[-1] in source:
                target[path[-1]] = source[path[-1]]
    return result


def _lookup(document: JsonObject, path: Path) -> object:
    value: object = document
    for name in path:
        value = value.get(name) if isinstance(value, dict) else None
    return value


def applied(document: JsonObject, body: JsonObject, paths: list[Path]) -> JsonObject:
    """Return a new document in which every masked field has the body's value, or is absent if the body has none."""
    result = {**document}
    for path in paths:
        value, target = _lookup(body, path), result
        if value is None and _lookup(result, path) is None:
            continue
        for name in path[:-1]:
            target[name] = {**target.get(name, {})}
            target = target[name]
        if value is None:
            target.pop(path[-1], None)
        else:
            target[path[-1]] = value
    return result
