"""Views for cells, as text and as HTML, escaped, shortened and without secrets."""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from html import escape
from typing import Any

HIDDEN = "••••••••"
SECRET_FIELDS = frozenset(
    {"client_secret", "access_token", "refresh_token", "subject_token", "id_token", "token", "assertion"}
)
_SECRET_TEXT = re.compile(
    r"whsec_[A-Za-z0-9+/=]{24,}|eyJ[\w-]+\.[\w-]+\.[\w-]*|(?<![\w+/])[A-Za-z0-9+/]{64}(?![\w+/=])"
    r"|(?:(?<=state=)|(?<=/))[\w-]{24,}\.[\w-]{43}(?![\w-])|(?<=code_challenge=)[\w-]{43}",  # sealed links, and PKCE
    re.ASCII,
)
MAX_LINES = 500
GREEN, AMBER = "#1a7f37", "#9a6700"
RED, GREY = "#cf222e", "#6e7781"
_BOX = (
    "border:1px solid #8886;border-left:4px solid {};border-radius:6px;padding:.5em .8em;margin:.3em 0;overflow-x:auto"
)
# JupyterLab's colours of its theme; elsewhere colours that can be read on light and on dark.
_JSON_COLOURS = (
    "var(--jp-mirror-editor-def-color,#2f7fd1)",  # names
    "var(--jp-mirror-editor-string-color,#b3543a)",
    "var(--jp-mirror-editor-number-color,#2a8a4a)",  # numbers, booleans and null
)
_JSON_TOKEN = re.compile(
    r'(?P<name>"(?:[^"\\]|\\.)*")(?=:)|(?P<string>"(?:[^"\\]|\\.)*")|(?P<other>-?\b\d[\d.eE+-]*|\b(?:true|false|null)\b)'
)
_CELL = "text-align:left;padding:.2em .7em;vertical-align:top"
_PRE = "margin:.3em 0;white-space:pre-wrap;word-break:normal;overflow-wrap:anywhere;font-size:.9em"
_TALL_LINES, _SCROLLED = 40, ";max-height:36em;overflow-y:auto"  # a long text scrolls in its card


@dataclass(frozen=True, repr=False)
class View:
    """A view; its repr is the plain text. `extra` has further MIME types."""

    text: str
    html: str = ""
    extra: Mapping[str, str] = field(default_factory=dict)

    def __repr__(self) -> str:
        return self.text

    def _repr_mimebundle_(self, include: object = None, exclude: object = None) -> dict[str, str]:
        """Return all forms, from which Jupyter chooses."""
        html = {"text/html": self.html} if self.html else {}
        return {"text/plain": self.text, **html, **self.extra}


def hide(secret: str) -> str:
    """Return only the first four characters, by which a reader recognises the secret."""
    return f"{secret[:4]}{HIDDEN}"


def hide_in(text: str) -> str:
    """Return a string with the secrets and tokens in it shortened."""
    return _SECRET_TEXT.sub(lambda match: hide(match.group()), text)


def without_secrets(value: object) -> Any:
    """Return a JSON value with secrets and tokens shortened, which are recognised by field name and by form."""
    if isinstance(value, dict):
        return {
            name: hide(inner) if name in SECRET_FIELDS and isinstance(inner, str) else without_secrets(inner)
            for name, inner in value.items()
        }
    if isinstance(value, list):
        return [without_secrets(item) for item in value]
    return hide_in(value) if isinstance(value, str) else value


def pretty(value: object, most: int = MAX_LINES) -> str:
    """Return indented JSON without secrets, at most `most` lines."""
    lines = json.dumps(without_secrets(value), indent=2, ensure_ascii=False).splitlines()
    if len(lines) > most:
        lines = [*lines[:most], f"… {len(lines) - most} more lines"]
    return "\n".join(lines)


def in_line(value: object) -> str:
    """Return a JSON value in one line; a string without quotation marks."""
    return hide_in(value) if isinstance(value, str) else json.dumps(without_secrets(value), ensure_ascii=False)


def box(colour: str, *parts: str) -> str:
    """Return a card with a coloured edge. The parts are HTML."""
    return f'<div style="{_BOX.format(colour)}">{"".join(parts)}</div>'


def badge(colour: str, text: str) -> str:
    """Return white text on a colour. The text has the same meaning as the colour."""
    style = f"background:{colour};color:#fff;border-radius:4px;padding:.1em .5em;font-weight:600;white-space:nowrap"
    return f'<span style="{style}">{escape(text)}</span>'


def small(html: str) -> str:
    return f'<div style="opacity:.75;font-size:.9em">{html}</div>'


def coloured(text: str) -> str:
    """Return JSON as HTML, with names, strings and other values in colours."""
    parts, end = [], 0
    for match in _JSON_TOKEN.finditer(text):
        kind = ("name", "string", "other").index(match.lastgroup or "other")
        parts.append(escape(text[end : match.start()], quote=False))
        parts.append(f'<span style="color:{_JSON_COLOURS[kind]}">{escape(match.group(), quote=False)}</span>')
        end = match.end()
    return "".join([*parts, escape(text[end:], quote=False)])


def folded(summary: str, text: str) -> str:
    """Return an open text that the reader can fold. The part from the first brace is coloured as JSON."""
    tall = text.count("\n") > _TALL_LINES
    style = f'style="{_PRE}{_SCROLLED}" tabindex="0"' if tall else f'style="{_PRE}"'
    brace = re.search(r"^[{\[]", text, re.MULTILINE)
    before, body = (text, "") if brace is None else (text[: brace.start()], text[brace.start() :])
    html = f"{escape(before, quote=False)}{coloured(body)}"
    return f"<details open><summary>{escape(summary)}</summary><pre {style}>{html}</pre></details>"


def plain_folded(summary: str, text: str) -> str:
    """Return a closed fold with a text without colours."""
    return f'<details><summary>{escape(summary)}</summary><pre style="{_PRE}">{escape(text)}</pre></details>'


def _cell(html: str, column: int) -> str:
    """Return a cell. A word is broken only if it is longer than a line."""
    wrap = "overflow-wrap:break-word" if column else "white-space:nowrap"
    return f'<td style="{_CELL};{wrap}">{html}</td>'


def table(head: tuple[str, ...], rows: Sequence[tuple[str, ...]]) -> str:
    """Return a table. The cells of the rows are HTML, those of the head are text."""
    top = "".join(f'<th style="{_CELL}">{escape(name)}</th>' for name in head)
    body = "".join(f"<tr>{''.join(_cell(part, index) for index, part in enumerate(row))}</tr>" for row in rows)
    return f"<table>{f'<thead><tr>{top}</tr></thead>' if head else ''}<tbody>{body}</tbody></table>"


def columns(rows: Sequence[tuple[str, ...]]) -> str:
    """Return rows of text in aligned columns."""
    widths = [max(len(row[index]) for row in rows) for index in range(len(rows[0]))] if rows else []
    lines = ("  ".join(part.ljust(width) for part, width in zip(row, widths, strict=True)) for row in rows)
    return "\n".join(line.rstrip() for line in lines)


def words(duration: timedelta) -> str:
    """Return a duration in its two largest units, such as `89 days 23 hours`."""
    seconds, parts = round(abs(duration.total_seconds())), []
    for unit, size in (("day", 86_400), ("hour", 3_600), ("minute", 60), ("second", 1)):
        count, seconds = divmod(seconds, size)
        if count:
            parts.append(f"{count} {unit}{'' if count == 1 else 's'}")
    return " ".join(parts[:2]) or "no time"
