"""The three-way reading of a comparison: which side changed each field since the last sync."""

from dataclasses import dataclass
from typing import Literal

from profilesvc.contract.json import JsonObject
from profilesvc.contract.sync import SyncComparison

Verdict = Literal["in_step", "changed_here", "changed_at_provider", "changed_in_both", "filtered"]


@dataclass(frozen=True)
class FieldReading:
    """A leaf of the source with its three values, None if absent, and the verdict."""

    field: str
    source: object
    provider: object
    last_sync: object
    verdict: Verdict


def reading(comparison: SyncComparison) -> list[FieldReading]:
    """Return one reading per leaf of the source, in its order.

    `in_step` means that the service does not list a difference. Otherwise, the side whose value is not that of the last
    sync has changed it. A leaf that was never synced is `changed_in_both`, unless the provider has no value. A sync
    does not send `filtered` leaves.
    """
    differing = {difference.field for difference in comparison.differences}
    readings = []
    for names, source in _leaves(comparison.source):
        values = source, _at(comparison.provider, names), _at(comparison.lastSync, names)
        path = ".".join(name.replace(".", "\\.") for name in names)  # as in `differences`
        verdict: Verdict = "in_step"
        if path in comparison.filtered:
            verdict = "filtered"
        elif path in differing:
            verdict = _changed_by(*values)
        readings.append(FieldReading(path, *values, verdict))
    return readings


def _changed_by(source: object, provider: object, last: object) -> Verdict:
    if _normal(provider) == _normal(last):
        return "changed_here"
    return "changed_at_provider" if _normal(source) == _normal(last) else "changed_in_both"


def _normal(value: object) -> object:
    """Return the value as the provider writes it, without fields that are empty, zero or false."""
    if isinstance(value, dict):
        fields = {name: _normal(inner) for name, inner in value.items()}
        value = {name: inner for name, inner in fields.items() if inner is not None}
    elif isinstance(value, list):
        value = [_normal(item) for item in value]
    return value or None


def _leaves(document: JsonObject, above: tuple[str, ...] = ()) -> list[tuple[tuple[str, ...], object]]:
    """Return every field that is not an object with fields, with its path. An array is one leaf."""
    leaves: list[tuple[tuple[str, ...], object]] = []
    for name, value in document.items():
        names = (*above, name)
        leaves += _leaves(value, names) if isinstance(value, dict) and value else [(names, value)]
    return leaves


def _at(document: JsonObject, names: tuple[str, ...]) -> object:
    value: object = document
    for name in names:
        value = value.get(name) if isinstance(value, dict) else None
    return value
