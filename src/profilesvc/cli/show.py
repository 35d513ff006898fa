"""Printing of data: aligned text for people, JSON for programs."""

import json
import re
import unicodedata
from collections.abc import Sequence
from typing import Annotated

import typer

from profilesvc.contract.json import JsonObject

AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]
Row = JsonObject
_TIME = re.compile(r"\b(\d{4}-\d\d-\d\d)T(\d\d:\d\d:\d\d)(?:\.\d+)?Z")


def show(data: Row | Sequence[Row], as_json: bool) -> None:
    """Print an object as lines of name and value, and a list as a table with a heading."""
    if as_json:
        typer.echo(json.dumps(data, indent=2, ensure_ascii=False))
    elif isinstance(data, dict):
        typer.echo(_aligned([[name, _text(value)] for name, value in data.items()]))
    elif data:
        typer.echo(_aligned([list(data[0]), *([_text(value) for value in row.values()] for row in data)]))


def say(line: str) -> None:
    """Print a line of text for people."""
    typer.echo(printable(line))


def printable(text: str) -> str:
    """Return a text with its control and format characters escaped, such as `\\x1b`.

    Owners choose names and addresses, and such characters could forge a row or control the terminal.
    """
    return "".join(char if _is_shown(char) else char.encode("unicode_escape").decode() for char in text)


def _is_shown(char: str) -> bool:
    return char.isprintable() or unicodedata.category(char) == "Zs"


def utc(text: str) -> str:
    """Write the RFC 3339 times in a text for people: `2026-01-05 09:00:00 UTC`."""
    return _TIME.sub(r"\1 \2 UTC", text)


def _text(value: object) -> str:
    if isinstance(value, list):
        return ", ".join(utc(printable(str(item))) for item in value) or "-"
    if isinstance(value, bool):
        return "yes" if value else "no"
    return "-" if value is None else utc(printable(str(value)))


def _aligned(rows: list[list[str]]) -> str:
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = ("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)) for row in rows)
    return "\n".join(line.rstrip() for line in lines)
