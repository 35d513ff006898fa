"""Charts as inline SVG: the same bytes on every machine, and readable in light and dark themes."""

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

from profilesvc.lab.views.view import View, columns

WIDTH, LABEL = 720, 130
ROW, TOP = 30, 26
_LETTER, _WIDE_LETTER = 7.5, 8.5
BLUE, PALE = "#0969da", "#8886"


@dataclass(frozen=True, slots=True)
class Bar:
    """A bar from `begin` to `end` on the axis of its chart."""

    begin: float
    end: float
    colour: str
    text: str


def svg(title: str, height: float, shapes: Sequence[str]) -> str:
    """Return a drawing with a title for screen readers. Text has the colour of the page."""
    return (
        f'<svg viewBox="0 0 {WIDTH} {height:.0f}" width="100%" style="max-width:{WIDTH}px" role="img" '
        f'font-family="sans-serif" font-size="13" xmlns="http://www.w3.org/2000/svg">'
        f"<title>{escape(title)}</title>{''.join(shapes)}</svg>"
    )


def text(x: float, y: float, words: str, anchor: str = "start", fill: str = "currentColor") -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" fill="{fill}" text-anchor="{anchor}">{escape(words)}</text>'


def line(x1: float, y1: float, x2: float, y2: float, *, colour: str = PALE, dashed: bool = False) -> str:
    dashes = ' stroke-dasharray="4 3"' if dashed else ""
    return f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" stroke="{colour}"{dashes}/>'


def rect(x: float, y: float, width: float, height: float, colour: str, tip: str = "") -> str:
    """Return a filled rectangle with a tooltip."""
    title = f"<title>{escape(tip)}</title>" if tip else ""
    return (
        f'<rect x="{x:.1f}" y="{y:.1f}" width="{max(width, 1):.1f}" height="{height:.1f}" rx="2" fill="{colour}">'
        f"{title}</rect>"
    )


def heading(title: str, legend: Sequence[tuple[str, str]] = ()) -> list[str]:
    """Return the title of a chart above its rows, and on the right the legend as (words, colour)."""
    shapes = [f'<text x="{LABEL}" y="16" fill="currentColor" font-weight="bold">{escape(title)}</text>']
    right = WIDTH - 20.0
    for words, colour in reversed(legend):
        shapes.append(text(right, 16, words, "end"))
        right -= len(words) * _WIDE_LETTER + 14
        shapes.append(rect(right, 6, 11, 11, colour))
        right -= 12
    return shapes


def bars(
    title: str,
    rows: Sequence[tuple[str, Sequence[Bar]]],
    ticks: Sequence[tuple[float, str]],
    legend: Sequence[tuple[str, str]] = (),
) -> View:
    """Draw rows of bars over an axis. The first and the last tick are its ends.

    The text of a bar is in it, or behind the last bar of the row, where it fits. Name other bars in the legend.
    """
    begin, end = ticks[0][0], ticks[-1][0]
    scale = (WIDTH - LABEL - 20) / ((end - begin) or 1)

    def x(value: float) -> float:
        return LABEL + (value - begin) * scale

    bottom = TOP + ROW * len(rows) + 2
    shapes = [*heading(title, legend), *(line(x(value), TOP, x(value), bottom) for value, _ in ticks)]
    anchors = ["start", *["middle"] * (len(ticks) - 2), "end"]
    shapes += [
        text(x(value), bottom + 16, words, anchor) for (value, words), anchor in zip(ticks, anchors, strict=False)
    ]
    for number, (label, drawn) in enumerate(rows):
        top = TOP + number * ROW + 4
        shapes.append(text(LABEL - 8, top + 16, label, "end"))
        for bar in drawn:
            left, width = x(bar.begin), (bar.end - bar.begin) * scale
            shapes.append(rect(left, top, width, ROW - 8, bar.colour, bar.text))
            needed = len(bar.text) * _LETTER + 8
            if width > needed:
                shapes.append(text(left + width / 2, top + 16, bar.text, "middle", "#fff"))
            elif bar is drawn[-1] and left + width + needed < WIDTH - 20:
                shapes.append(text(left + width + 8, top + 16, bar.text))
    lines = [(label, ", ".join(bar.text for bar in drawn) or "—") for label, drawn in rows]
    return View(f"{title}\n{columns(lines)}", svg(title, bottom + 24, shapes))
