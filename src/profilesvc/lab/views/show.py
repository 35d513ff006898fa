"""The function `show`, which displays a value as a card."""

from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

import httpx

from profilesvc.contract.json import JsonObject
from profilesvc.lab.views.cards import key_card, plain
from profilesvc.lab.views.compare import comparison
from profilesvc.lab.views.response import error_card, response_card
from profilesvc.lab.views.timeline import timeline
from profilesvc.lab.views.view import GREY, View, box, columns, folded, hide_in, in_line, pretty, table


def view(thing: object) -> View:
    """Return the card of a response, an error of the client, a key, a comparison or a history; else the JSON."""
    if isinstance(thing, View):
        return thing
    if isinstance(thing, httpx.Response):
        return response_card(thing)
    if isinstance(thing, BaseException):
        return error_card(thing)
    value = plain(thing)
    if isinstance(value, Mapping):
        return _mapping_view(value)
    if isinstance(value, list) and value and all(isinstance(row, Mapping) for row in value):
        return _rows_view(value)
    if isinstance(value, str):
        return View(hide_in(value))
    text = pretty([plain(part) for part in value] if isinstance(value, list | tuple) else value)
    return View(text, box(GREY, folded("value", text)))


def _mapping_view(value: Mapping[str, Any]) -> View:
    if "client_id" in value and "name" in value:
        return key_card(value)
    if {"source", "provider", "lastSync"} <= value.keys():
        return comparison(value)
    if "connection_status" in value and isinstance(value.get("history"), list):
        return timeline(value["history"])
    text = pretty(dict(value))
    return View(text, box(GREY, folded("value", text)))


def _rows_view(rows: Sequence[JsonObject]) -> View:
    """Show dicts with the same keys as a table. The keys are its head."""
    head = tuple(rows[0])
    cells = [tuple("" if row.get(name) is None else in_line(row[name]) for name in head) for row in rows]
    html = table(head, [tuple(escape(cell) for cell in row) for row in cells])
    return View(columns([head, *cells]), box(GREY, html))


def show(*things: object) -> None:
    """Display values as cards below the cell, or as text on a terminal."""
    for thing in things:
        try:
            from IPython.display import display
        except ImportError:
            print(view(thing))
        else:
            display(view(thing))  # type: ignore[no-untyped-call]
