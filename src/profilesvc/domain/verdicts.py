"""The verdicts of a three-way comparison: which side changed each field since the last sync."""

from dataclasses import dataclass
from typing import Literal

from profilesvc.contract.json import JsonObject
from profilesvc.contract.sync import SyncComparison
from profilesvc.domain import meaning

Verdict = Literal["in_step", "changed_here", "changed_at_provider", "changed_in_both", "filtered"]


@dataclass(frozen=True)
class FieldVerdict:
    """A leaf of the source with its three values, None if absent, and the verdict."""

    field: str
    source: object
    provider: object
    last_sync: object
    verdict: Verdict


def verdicts(comparison: SyncComparison) -> list[FieldVerdict]:
    """Return one verdict per leaf of the source, in its order.

    `in_step` means that the service does not list a difference. Otherwise, the side whose value is not that of the last
    sync has changed it. A leaf that was never synced is `changed_in_both`, unless the provider has no value. A sync
    does not send `filtered` leaves.
    """
    differing = {difference.field for difference in comparison.differences}
    documents = comparison.source, comparison.provider, comparison.lastSync
    leaves = []
    for names, source in _leaves(comparison.source):
        values = source, _at(comparison.provider, names), _at(comparison.lastSync, names)
        path = ".".join(name.replace(".", "\\.") for name in names)  # as in `differences`
        verdict: Verdict = "in_step"
        if path in comparison.filtered:
            verdict = "filtered"
        elif path in differing:
            verdict = _changed_by(path, values, documents)
        leaves.append(FieldVerdict(path, *values, verdict))
    return leaves


def _changed_by(path: str, values: tuple[object, object, object], documents: tuple[JsonObject, ...]) -> Verdict:
    source, provider, last = values
    regions = [meaning.region_of(document) for document in documents]
    if meaning.same(path, provider, last, (regions[1], regions[2])):
        return "changed_here"
    is_ours = meaning.same(path, source, last, (regions[0], regions[2]))
    return "changed_at_provider" if is_ours else "changed_in_both"


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
