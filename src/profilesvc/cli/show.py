"""Print data: aligned text for people, JSON for programs."""

import json
from collections.abc import Sequence
from typing import Annotated, Any

import typer

AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]
Row = dict[str, Any]


def show(data: Row | Sequence[Row], as_json: bool) -> None:
    """One object as lines of name and value, a list as a table with a heading."""
    if as_json:
        typer.echo(json.dumps(data, indent=2, ensure_ascii=False))
    elif isinstance(data, dict):
        typer.echo(_aligned([[name, _text(value)] for name, value in data.items()]))
    elif data:
        typer.echo(_aligned([list(data[0]), *([_text(value) for value in row.values()] for row in data)]))


def _text(value: Any) -> str:
    if isinstance(value, list):
        return ", ".join(map(str, value)) or "-"
    if isinstance(value, bool):
        return "yes" if value else "no"
    return "-" if value is None else str(value)


def _aligned(rows: list[list[str]]) -> str:
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = ("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)) for row in rows)
    return "\n".join(line.rstrip() for line in lines)
