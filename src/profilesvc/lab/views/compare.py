"""A comparison as a table: the three values of each field, and the side that changed it."""

from collections import Counter
from difflib import SequenceMatcher
from html import escape

from profilesvc.client import FieldVerdict, verdicts
from profilesvc.contract.sync import SyncComparison
from profilesvc.lab.views.view import AMBER, GREEN, GREY, View, badge, box, columns, in_line, small, table

# The text of each verdict, with a sign for readers who do not see the colour.
VERDICTS: dict[str, tuple[str, str]] = {
    "in_step": (GREEN, "✓ in sync"),
    "changed_here": (AMBER, "→ changed here"),
    "changed_at_provider": (AMBER, "← changed at the provider"),
    "changed_in_both": ("#cf222e", "⇄ changed in both"),
    "filtered": (GREY, "⊘ filtered"),
}
_ALIKE = 0.6
_SHORT = 20  # characters of a value that stays in one line, such as a phone number
_HEAD = ("field", "here", "at the provider", "last sync", "change")


def marked(before: str, after: str) -> tuple[str, str]:
    """Return two strings as HTML, with the differences struck out in the first and underlined in the second.

    Strings with little in common have no marks, because marks everywhere do not help.
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


def _values(row: FieldVerdict) -> list[str]:
    return ["—" if value is None else in_line(value) for value in (row.source, row.provider, row.last_sync)]


def comparison(thing: object) -> View:
    """Show a comparison, given as a model or as the `data` of the response. Fields in sync are only counted."""
    leaves = verdicts(SyncComparison.model_validate(getattr(thing, "model_dump", lambda: thing)()))
    apart = [field for field in leaves if field.verdict != "in_step"]
    counted: Counter[str] = Counter(field.verdict for field in leaves)
    total = ", ".join(f"{counted[name]} {text[2:]}" for name, (_, text) in VERDICTS.items() if counted[name])
    rows = [_HEAD, *((field.field, *_values(field), VERDICTS[field.verdict][1]) for field in apart)]
    html = table(_HEAD[:-1], [_cells(field) for field in apart]) if apart else ""
    colour = AMBER if apart else GREEN
    return View(f"{columns(rows)}\n{total}" if apart else total, box(colour, html, small(escape(total))))


def _cells(row: FieldVerdict) -> tuple[str, ...]:
    texts = _values(row)
    parts = [*marked(*texts[:2]), escape(texts[2])]
    values = (
        f'<span style="white-space:nowrap">{part}</span>' if len(text) <= _SHORT else part
        for text, part in zip(texts, parts, strict=True)
    )
    return (f"<code>{escape(row.field)}</code><br>{badge(*VERDICTS[row.verdict])}", *values)
