"""The connection of a site over time, as an inline SVG bar."""

from html import escape

from profilesvc.contract.common import parse_timestamp
from profilesvc.contract.json import JsonObject
from profilesvc.lab.views.drawing import WIDTH, svg
from profilesvc.lab.views.view import AMBER, GREEN, GREY, RED, View, columns, words

# A sign for readers who do not see colours, and for periods that are too short for a name.
_LOOKS = {"online": (GREEN, "●"), "idle": (AMBER, "◐"), "offline": (RED, "○")}
_BAR, _HEIGHT = 30, 76
_LETTER, _SIGN = 8, 14


def _short(time: str) -> str:
    return f"{parse_timestamp(time):%Y-%m-%d %H:%M}"


def timeline(history: list[JsonObject]) -> View:
    """Show the periods of `status?history=true`: `[{state, from, to}]`, oldest first."""
    if not history:
        return View("no history yet", "<p>no history yet</p>")
    rows, shapes = [], []
    begin, end = (parse_timestamp(history[index][side]) for index, side in ((0, "from"), (-1, "to")))
    duration = max((end - begin).total_seconds(), 0.001)
    for period in history:
        start, stop = parse_timestamp(period["from"]), parse_timestamp(period["to"])
        lasted = words(stop - start)
        rows.append((period["state"], _short(period["from"]), "to", _short(period["to"]), lasted))
        left, width = ((value.total_seconds() / duration * WIDTH) for value in (start - begin, stop - start))
        shapes.append(_shape(str(period["state"]), left, width, " ".join(rows[-1])))
    ends = (
        f'<text x="0" y="64" fill="currentColor">{_short(history[0]["from"])}</text>'
        f'<text x="{WIDTH}" y="64" fill="currentColor" text-anchor="end">{_short(history[-1]["to"])}</text>'
    )
    legend = "  ".join(f"{sign} {state}" for state, (_, sign) in _LOOKS.items())
    ends += f'<text x="{WIDTH / 2}" y="64" fill="currentColor" text-anchor="middle">{legend}</text>'
    title = f"Connection, {_short(history[0]['from'])} to {_short(history[-1]['to'])} UTC"
    return View(columns(rows), svg(title, _HEIGHT, [*shapes, ends]))


def _shape(state: str, left: float, width: float, tip: str) -> str:
    """Return a period as a coloured rectangle with a tooltip, and with the name or sign if it fits."""
    colour, sign = _LOOKS.get(state, (GREY, "?"))
    rect = f'<rect x="{left:.1f}" y="14" width="{max(width, 1):.1f}" height="{_BAR}" fill="{colour}"/>'
    words_fit = width > (len(state) + 2) * _LETTER
    text = f"{sign} {state}" if words_fit else sign if width > _SIGN else ""
    label = f'<text x="{left + width / 2:.1f}" y="34" fill="#fff" text-anchor="middle">{escape(text)}</text>'
    return f"<g><title>{escape(tip)}</title>{rect}{label}</g>"
