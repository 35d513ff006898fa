"""The rules of a sync: what of a body may be sent, what must be sent, and what still differs.

Documents are the provider's Location as JSON. A leaf is a field that is not a message: a scalar, an array as a whole,
a null, or an empty message. An empty message has no effect: it is never sent and never a difference. null clears.
"""

from dataclasses import dataclass
from typing import Any, Literal

from profilesvc.contract.provider.format import Message, Writable, access_of, message_of
from profilesvc.contract.provider.location import Location
from profilesvc.domain.errors import invalid, invalid_many
from profilesvc.domain.messages import Document, annotation_at, normal, parse, without_nulls, without_read_only

# The provider accepts nested paths for these two. Every other field is sent whole, merged into its current value.
_MASKED_BY_MEMBER = ("profile", "openInfo")
FilterReason = Literal["unknown", "output_only", "immutable", "plan"]
_ADDRESS, _AREA = "storefrontAddress", "serviceArea"


@dataclass(frozen=True, slots=True)
class Patch:
    """One call to the provider: its body and update mask, and the leaves that change or are already equal.

    An empty mask means that there is nothing to send.
    """

    body: Document
    mask: list[str]
    changed: list[str]
    unchanged: list[str]


def leaves(document: Document, prefix: str = "") -> list[tuple[str, Any]]:
    """Return every leaf with its dotted path, in the document's order."""
    found: list[tuple[str, Any]] = []
    for name, value in document.items():
        path = prefix + name.replace(".", "\\.")  # a dot inside a name must not look like a path to another leaf
        found += leaves(value, f"{path}.") if isinstance(value, dict) and value else [(path, value)]
    return found


def split(body: Document, syncable: tuple[str, ...] | None) -> tuple[Document, list[str]]:
    """Return the part of a body that may be sent and the filtered leaf paths, both in the request's order.

    Filtered are unknown fields, fields that the provider does not let a caller write, and top-level fields outside
    `syncable` (None: all). Rejecting them would fail the whole sync of a plugin for one field (D-81).
    """
    sendable, filtered = _split(Location, body, "", syncable)
    return sendable, [path for path, _ in filtered]


def filter_reasons(body: Document, syncable: tuple[str, ...] | None) -> list[tuple[str, FilterReason]]:
    """Return the filtered leaf paths with the reason of each: unknown, output only, immutable, or not in the plan."""
    return _split(Location, body, "", syncable)[1]


def filtered_leaves(source: Document, syncable: tuple[str, ...] | None) -> list[str]:
    """Return the leaf paths of a source that a sync does not send."""
    return split(source, syncable)[1]


def check(sendable: Document) -> Document:
    """Return the sendable part with its numbers normalised.

    Read-only fields inside array items are dropped, because an array is one leaf and clients send back what they read.

    Raises:
        ServiceError: VALIDATION_ERROR that names every invalid field.
    """
    document, problems = parse(Location, without_read_only(Location, sendable))
    if problems:
        raise invalid_many(problems)
    return document


def merge(base: Document, update: Document) -> Document:
    """Return `base` with `update` merged in: messages field by field, every other value, null too, replaced."""
    merged = dict(base)
    for name, value in update.items():
        old = merged.get(name)
        merged[name] = merge(old, value) if isinstance(old, dict) and isinstance(value, dict) else value
    return merged


def plan_patch(current: Document, sendable: Document) -> Patch:
    """Return the smallest patch that gives the provider's `current` location the values of `sendable`.

    Raises:
        ServiceError: VALIDATION_ERROR if neither address has a regionCode.
    """
    changed: list[str] = []
    unchanged: list[str] = []
    for path, value in leaves(sendable):
        (unchanged if _agrees(path, value, current) else changed).append(path)
    wanted = merge(current, sendable)
    mask = list(dict.fromkeys(_mask_path(path) for path in changed))
    if _AREA in mask and _ADDRESS not in mask:
        mask += _address_of_area(wanted, keep=_ADDRESS in sendable)
    if _ADDRESS in mask and wanted[_ADDRESS] is not None and not wanted[_ADDRESS].get("regionCode"):
        raise invalid("body", f"{_ADDRESS}.regionCode", "is required: the provider's address has none to keep")
    return Patch(_body(wanted, mask), mask, changed, unchanged)


def differences(source: Document, provider: Document, filtered: list[str]) -> list[Document]:
    """Return `{field, source, provider}` for every leaf of `source` that a sync could repair, in order."""
    hidden = set(filtered)
    return [
        {"field": path, "source": value, "provider": _at(provider, path)}
        for path, value in leaves(source)
        if path not in hidden and not _agrees(path, value, provider)
    ]


def drift(source: Document, provider: Document, syncable: tuple[str, ...] | None) -> list[str]:
    """Return the leaf paths that differ. Fields with identical JSON are skipped."""
    moved = {name: value for name, value in source.items() if provider.get(name) != value}
    return [found["field"] for found in differences(moved, provider, filtered_leaves(moved, syncable))]


def _split(
    message: type[Message], value: Document, prefix: str, allowed: tuple[str, ...] | None
) -> tuple[Document, list[tuple[str, FilterReason]]]:
    sendable: Document = {}
    filtered: list[tuple[str, FilterReason]] = []
    for name, member in value.items():
        reason = _filter_reason(message, name, allowed)
        if reason is not None:
            filtered += [(path, reason) for path, _ in leaves({name: member}, prefix)]
            continue
        inner, is_list = message_of(message.model_fields[name].annotation)
        if inner is None or is_list or not isinstance(member, dict) or not member:
            sendable[name] = member
            continue
        kept, dropped = _split(inner, member, f"{prefix}{name}.", None)
        filtered += dropped
        if kept:
            sendable[name] = kept
    return sendable, filtered


def _filter_reason(message: type[Message], name: str, allowed: tuple[str, ...] | None) -> FilterReason | None:
    field = message.model_fields.get(name)
    if field is None:
        return "unknown"
    if (access := access_of(field)) is not None:
        return "output_only" if access is Writable.OUTPUT_ONLY else "immutable"
    return "plan" if allowed is not None and name not in allowed else None


def _agrees(path: str, value: Any, document: Document) -> bool:
    """Return whether the document has `value` at `path`, with absent fields as the provider means them."""
    if value == {}:
        return True
    annotation = annotation_at(Location, path)
    return bool(normal(annotation, value) == normal(annotation, _at(document, path)))


def _at(document: Document, path: str) -> Any:
    value: Any = document
    for name in path.split("."):
        value = value.get(name) if isinstance(value, dict) else None
    return value


def _mask_path(path: str) -> str:
    names = path.split(".")
    return ".".join(names[:2]) if names[0] in _MASKED_BY_MEMBER else names[0]


def _address_of_area(wanted: Document, *, keep: bool) -> list[str]:
    """Return the address that must be sent, or cleared, together with a change of the service area.

    Without it the provider silently turns a hybrid business into one without premises; a business without premises
    must not have an address.
    """
    kind = (wanted[_AREA] or {}).get("businessType")
    if not wanted.get(_ADDRESS):
        return []
    if kind == "CUSTOMER_LOCATION_ONLY" and not keep:
        wanted[_ADDRESS] = None
        return [_ADDRESS]
    return [_ADDRESS] if kind == "CUSTOMER_AND_BUSINESS_LOCATION" else []


def _body(wanted: Document, mask: list[str]) -> Document:
    """Return the masked part of the wanted location. Cleared fields are absent."""
    wanted = without_nulls(without_read_only(Location, wanted))
    body: Document = {}
    for path in mask:
        top, _, member = path.partition(".")
        value = _at(wanted, path)
        if value is not None:
            body[top] = {**body.get(top, {}), member: value} if member else value
    return body
