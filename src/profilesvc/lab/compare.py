"""A comparison as a table: the three values of each field and who changed what."""

from collections import Counter
from difflib import SequenceMatcher
from html import escape
from typing import Any

from profilesvc.client import FieldReading, reading
from profilesvc.contract.sync import SyncComparison
from profilesvc.lab.view import AMBER, GREEN, GREY, View, badge, box, columns, in_line, small, table

# The meaning of each verdict of the client's reading, with a sign, because some readers do not see the colour.
VERDICTS: dict[str, tuple[str, str]] = {
    "in_step": (GREEN, "✓ in step"),
    "changed_here": (AMBER, "→ changed here"),
    "changed_at_provider": (AMBER, "← changed at the provider"),
    "changed_in_both": ("#cf222e", "⇄ changed in both"),
    "filtered": (GREY, "⊘ kept back"),
}
_ALIKE = 0.6
_HEAD = ("field", "here", "at the provider", "last sync", "who changed it")


def marked(before: str, after: str) -> tuple[str, str]:
    """Two texts as HTML, with what differs struck out in the first and underlined in the second.

    Texts with little in common get no marks, because marks everywhere do not help.
    """
    matcher = SequenceMatcher(None, before, after, autojunk=False)
    if matcher.ratio() < _ALIKE:
        return escape(before), escape(after)
    left, right = [], []
    for kind, a, b, c, d in matcher.get_opcodes():
        old, new = escape(before[a:b]), escape(after[c:d])
        left.append(f"<del>{old}</del>" if kind != "equal" and old else old)
        right.append(f"<ins>{new}</ins>" if kind != "equal" and new else new)
    return "".join(left), "".join(right)


def _value(value: Any) -> str:
    return "—" if value is None else in_line(value)


def comparison(thing: Any) -> View:
    """A comparison, as a model or as the `data` of the answer; fields in step are counted, not listed."""
    readings = reading(SyncComparison.model_validate(getattr(thing, "model_dump", lambda: thing)()))
    apart = [found for found in readings if found.verdict != "in_step"]
    counted: Counter[str] = Counter(found.verdict for found in readings)
    total = ", ".join(f"{counted[name]} {said[2:]}" for name, (_, said) in VERDICTS.items() if counted[name])
    rows = [_HEAD, *(_texts(found) for found in apart)]
    html = table(_HEAD, [_cells(found) for found in apart]) if apart else ""
    colour = AMBER if apart else GREEN
    return View(f"{columns(rows)}\n{total}" if apart else total, box(colour, html, small(escape(total))))


def _texts(found: FieldReading) -> tuple[str, ...]:
    values = (_value(value) for value in (found.source, found.provider, found.last_sync))
    return (found.field, *values, VERDICTS[found.verdict][1])


def _cells(found: FieldReading) -> tuple[str, ...]:
    here, provider = marked(_value(found.source), _value(found.provider))
    last = escape(_value(found.last_sync))
    return (f"<code>{escape(found.field)}</code>", here, provider, last, badge(*VERDICTS[found.verdict]))
