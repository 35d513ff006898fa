"""The three-way reading of a comparison: who changed what since the provider last accepted it."""

from dataclasses import dataclass
from typing import Any, Literal

from profilesvc.contract.sync import SyncComparison

Verdict = Literal["in_step", "changed_here", "changed_at_provider", "changed_in_both", "filtered"]


@dataclass(frozen=True)
class FieldReading:
    """One leaf of the source with its three values (None where there is none) and what follows from them."""

    field: str
    source: Any
    provider: Any
    last_sync: Any
    verdict: Verdict


def reading(comparison: SyncComparison) -> list[FieldReading]:
    """Return one reading per leaf of the source, in its order.

    `in_step` is what the service does not list as a difference. Otherwise the value that was last accepted shows who
    moved away from it; a leaf that was never accepted has no common past and reads as changed in both, unless the
    provider has nothing there. `filtered` leaves are beyond any sync.
    """
    differing = {difference.field for difference in comparison.differences}
    found = []
    for names, source in _leaves(comparison.source):
        values = source, _at(comparison.provider, names), _at(comparison.lastSync, names)
        path = ".".join(name.replace(".", "\\.") for name in names)  # as the service writes it
        verdict: Verdict = "in_step"
        if path in comparison.filtered:
            verdict = "filtered"
        elif path in differing:
            verdict = _who_moved(*values)
        found.append(FieldReading(path, *values, verdict))
    return found


def _who_moved(source: Any, provider: Any, last: Any) -> Verdict:
    if _said(provider) == _said(last):
        return "changed_here"
    return "changed_at_provider" if _said(source) == _said(last) else "changed_in_both"


def _said(value: Any) -> Any:
    """The value as the provider would write it: it leaves out what is empty, zero or false."""
    if isinstance(value, dict):
        members = {name: _said(member) for name, member in value.items()}
        value = {name: member for name, member in members.items() if member is not None}
    elif isinstance(value, list):
        value = [_said(item) for item in value]
    return value or None


def _leaves(document: dict[str, Any], above: tuple[str, ...] = ()) -> list[tuple[tuple[str, ...], Any]]:
    """Yield every field that is not an object with fields, with its path; an array is one leaf."""
    found: list[tuple[tuple[str, ...], Any]] = []
    for name, value in document.items():
        names = (*above, name)
        found += _leaves(value, names) if isinstance(value, dict) and value else [(names, value)]
    return found


def _at(document: dict[str, Any], names: tuple[str, ...]) -> Any:
    value: Any = document
    for name in names:
        value = value.get(name) if isinstance(value, dict) else None
    return value
