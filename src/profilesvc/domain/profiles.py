"""The rules of a sync: the fields that may be sent, those that must be sent, and those that differ.

Documents are the provider's Location as JSON. A leaf is a field that is not a message: a scalar, a whole array, a
null, or an empty message. null clears a field. An empty message has no effect, is never sent and is no difference.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import date

from profilesvc.contract.json import JsonObject
from profilesvc.contract.provider.format import Message, Writable
from profilesvc.contract.provider.location import Location
from profilesvc.contract.sync import FilterReason
from profilesvc.domain import location_rules, meaning
from profilesvc.domain.errors import invalid, invalid_many
from profilesvc.domain.hours import faults
from profilesvc.domain.messages import access_of, message_of, parse, without_nulls, without_read_only

# The provider accepts nested paths for these two. Every other field is sent whole, merged into its current value.
_NESTED_MASKS = ("profile", "openInfo")
_ADDRESS, _AREA = "storefrontAddress", "serviceArea"


@dataclass(frozen=True, slots=True)
class Patch:
    """One call to the provider: body and mask (empty: nothing to send), and the leaves that change or are equal."""

    body: JsonObject
    mask: list[str]
    changed: list[str]
    unchanged: list[str]


def leaves(document: JsonObject, prefix: str = "") -> list[tuple[str, object]]:
    """Return every leaf with its dotted path, in the document's order."""
    result: list[tuple[str, object]] = []
    for name, value in document.items():
        path = prefix + name.replace(".", "\\.")  # a dot inside a name must not look like a path to another leaf
        result += leaves(value, f"{path}.") if isinstance(value, dict) and value else [(path, value)]
    return result


def split(body: JsonObject, syncable: tuple[str, ...] | None) -> tuple[JsonObject, list[str]]:
    """Return the part of a body that may be sent and the filtered leaf paths, both in the request's order.

    Unknown fields, fields that are not writable, and top-level fields outside `syncable` (None: all) are filtered.
    Rejecting them would fail the whole sync of a plugin for one field (D-81).
    """
    sendable, filtered = _split(Location, body, "", syncable)
    return sendable, [path for path, _ in filtered]


def filter_reasons(body: JsonObject, syncable: tuple[str, ...] | None) -> list[tuple[str, FilterReason]]:
    """Return the filtered leaf paths with the reason of each: unknown, output only, immutable, or not in the plan."""
    return _split(Location, body, "", syncable)[1]


def filtered_leaves(source: JsonObject, syncable: tuple[str, ...] | None) -> list[str]:
    """Return the leaf paths of a source that a sync does not send."""
    return split(source, syncable)[1]


def check(sendable: JsonObject, today: date | None = None, known: JsonObject | None = None) -> JsonObject:
    """Return the sendable part with its numbers normalised.

    Read-only fields inside array items are dropped, because clients send an array back as they have read it. With the
    day, the rules of the provider's documentation for values apply too (D-124). No rule applies to leaves that agree
    with the `known` profile, because those are not sent.

    Raises:
        ServiceError: VALIDATION_ERROR that names every invalid field.
    """
    document, problems = parse(Location, without_read_only(Location, sendable))
    rules = [("body", one.field, one.problem) for one in faults(document)]
    rules += location_rules.problems(document, today) if today else []
    is_named = _near([field for _, field, _ in problems])
    is_sent = _near([path for path, value in leaves(document) if known is None or not _agrees(path, value, known)])
    problems += [one for one in rules if is_sent(one[1]) and not is_named(one[1])]
    if problems:
        raise invalid_many(problems)
    return document


def check_types(sendable: JsonObject) -> None:
    """Check the types of a body whose values are not all sent.

    Raises:
        ServiceError: VALIDATION_ERROR that names every field of another type.
    """
    if problems := parse(Location, without_read_only(Location, sendable))[1]:
        raise invalid_many(problems)


def _near(fields: list[str]) -> Callable[[str], bool]:
    """Return a function that returns whether a field is one of the fields, in one of them, or around one."""
    inside = set(fields)
    around = {outer for field in inside for outer in _outwards(field)}
    return lambda field: field in around or any(outer in inside for outer in _outwards(field))


def _outwards(path: str) -> Iterator[str]:
    """Yield a path and the paths of the fields around it."""
    while path:
        yield path
        path = path.rpartition(".")[0]


def require_complete(patch: Patch) -> None:
    """Require the fields that the provider requires of each message of an update, which is sent whole.

    Raises:
        ServiceError: VALIDATION_ERROR that names every missing field.
    """
    missing = [("body", one.path, one.fault.problem) for one in location_rules.incomplete(patch.body)]
    if missing:
        raise invalid_many(missing)


def merge(base: JsonObject, update: JsonObject) -> JsonObject:
    """Return `base` with `update` merged in: messages field by field, every other value, null too, replaced."""
    merged = dict(base)
    for name, value in update.items():
        old = merged.get(name)
        merged[name] = merge(old, value) if isinstance(old, dict) and isinstance(value, dict) else value
    return merged


def replaced(document: JsonObject, values: JsonObject, mask: list[str]) -> JsonObject:
    """Return the document with the masked fields of `values`, or with nulls where `values` has none."""
    result = dict(document)
    for path in mask:
        top, _, nested = path.partition(".")
        value = at(values, path)
        result[top] = {**(result.get(top) or {}), nested: value} if nested else value
    return result


def only(document: JsonObject, path: str) -> JsonObject:
    """Return the value at a dotted path in a document of its own, with null for the first part that is missing."""
    name, _, rest = path.partition(".")
    value = document.get(name)
    return {name: only(value, rest) if rest and isinstance(value, dict) else value if not rest else None}


def plan_patch(current: JsonObject, sendable: JsonObject) -> Patch:
    """Return the smallest patch that gives the provider's `current` location the values of `sendable`.

    Raises:
        ServiceError: VALIDATION_ERROR if neither address has a regionCode.
    """
    changed: list[str] = []
    unchanged: list[str] = []
    for path, value in leaves(sendable):
        (unchanged if _agrees(path, value, current, sendable) else changed).append(path)
    target = merge(current, sendable)
    mask = list(dict.fromkeys(mask_path(path) for path in changed))
    if _AREA in mask and _ADDRESS not in mask:
        mask += _address_of_area(target, keep=_ADDRESS in sendable)
    if _ADDRESS in mask and target[_ADDRESS] is not None and not target[_ADDRESS].get("regionCode"):
        raise invalid("body", f"{_ADDRESS}.regionCode", "is required: the provider's address has none to keep")
    return Patch(masked(target, mask), mask, changed, unchanged)


def differences(source: JsonObject, provider: JsonObject, filtered: list[str]) -> list[JsonObject]:
    """Return `{field, source, provider}` for every leaf of `source` that a sync could repair, in order."""
    hidden = set(filtered)
    return [
        {"field": path, "source": value, "provider": at(provider, path)}
        for path, value in leaves(source)
        if path not in hidden and not _agrees(path, value, provider, source)
    ]


def changed(before: JsonObject, after: JsonObject) -> list[str]:
    """Return the leaf paths of a profile that had another meaning before."""
    return [path for path, value in leaves(after) if not _agrees(path, value, before, after)]


def drift(source: JsonObject, provider: JsonObject, syncable: tuple[str, ...] | None) -> list[str]:
    """Return the leaf paths that differ. Fields with identical JSON are skipped."""
    changed = {name: value for name, value in source.items() if provider.get(name) != value}
    return [entry["field"] for entry in differences(changed, provider, filtered_leaves(changed, syncable))]


def _split(
    message: type[Message], value: JsonObject, prefix: str, allowed: tuple[str, ...] | None
) -> tuple[JsonObject, list[tuple[str, FilterReason]]]:
    sendable: JsonObject = {}
    filtered: list[tuple[str, FilterReason]] = []
    for name, field_value in value.items():
        reason = _filter_reason(message, name, allowed)
        if reason is not None:
            filtered += [(path, reason) for path, _ in leaves({name: field_value}, prefix)]
            continue
        inner, is_list = message_of(message.model_fields[name].annotation)
        if inner is None or is_list or not isinstance(field_value, dict) or not field_value:
            sendable[name] = field_value
            continue
        rest, dropped = _split(inner, field_value, f"{prefix}{name}.", None)
        filtered += dropped
        if rest:
            sendable[name] = rest
    return sendable, filtered


def _filter_reason(message: type[Message], name: str, allowed: tuple[str, ...] | None) -> FilterReason | None:
    field = message.model_fields.get(name)
    if field is None:
        return "unknown"
    if (access := access_of(field)) is not None:
        return "output_only" if access is Writable.OUTPUT_ONLY else "immutable"
    return "plan" if allowed is not None and name not in allowed else None


def _agrees(path: str, value: object, document: JsonObject, own: JsonObject | None = None) -> bool:
    """Return whether the document has what `value` means at `path` (D-122). `own` is the document of the value."""
    regions = meaning.region_of(own or {}), meaning.region_of(document)
    return value == {} or meaning.same(path, value, at(document, path), regions)


def at(document: JsonObject, path: str) -> object:
    """Return the value at a dotted path, or None."""
    value: object = document
    for name in path.split("."):
        value = value.get(name) if isinstance(value, dict) else None
    return value


def mask_path(path: str) -> str:
    """Return the path that an update mask names to change a leaf: the field around it, if that is sent whole."""
    names = path.split(".")
    return ".".join(names[:2]) if names[0] in _NESTED_MASKS else names[0]


def _address_of_area(target: JsonObject, *, keep: bool) -> list[str]:
    """Return the mask of the address if it must be sent or cleared with a change of the service area.

    Without the address, the provider silently turns a hybrid business into one without premises. A business without
    premises must not have an address.
    """
    kind = (target[_AREA] or {}).get("businessType")
    if not target.get(_ADDRESS):
        return []
    if kind == "CUSTOMER_LOCATION_ONLY" and not keep:
        target[_ADDRESS] = None
        return [_ADDRESS]
    return [_ADDRESS] if kind == "CUSTOMER_AND_BUSINESS_LOCATION" else []


def masked(target: JsonObject, mask: list[str]) -> JsonObject:
    """Return the masked fields of the target location, as a patch sends them. Cleared fields are absent."""
    target = without_nulls(without_read_only(Location, target))
    body: JsonObject = {}
    for path in mask:
        top, _, nested = path.partition(".")
        value = at(target, path)
        if value not in (None, {}):  # a message without a field is cleared
            body[top] = {**body.get(top, {}), nested: value} if nested else value
    return body
