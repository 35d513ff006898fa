"""Cards for a key and for the claims of a token."""

import base64
import json
from datetime import UTC, datetime, timedelta
from html import escape
from typing import Any

from profilesvc.contract.common import parse_timestamp
from profilesvc.contract.json import JsonObject
from profilesvc.lab.views.response import MASKED_NOTE
from profilesvc.lab.views.view import GREEN, GREY, View, box, columns, in_line, small, table, without_secrets, words

_TIMES = {"iat": "issued", "nbf": "not before", "exp": "expires"}


def plain(value: object) -> Any:
    """Return a model as JSON, and anything else unchanged."""
    return value.model_dump(mode="json", by_alias=True) if hasattr(value, "model_dump") else value


def key_card(key: object) -> View:
    """Show all fields of a key, with the secret shortened."""
    fields = plain(key)
    rows = [(name, in_line(value)) for name, value in without_secrets(dict(fields)).items()]
    html = table((), [(f"<code>{escape(name)}</code>", escape(value)) for name, value in rows])
    note = MASKED_NOTE if "client_secret" in fields else ""
    return View(columns(rows) + (f"\n{note}" if note else ""), box(GREEN, html, small(escape(note)) if note else ""))


def part_of(token: str, index: int) -> JsonObject:
    """Return the header (0) or the claims (1) of a token, which is not verified."""
    part = token.split(".")[index]
    decoded: JsonObject = json.loads(base64.urlsafe_b64decode(part + "=" * (-len(part) % 4)))
    return decoded


def token_card(token: str, at: str | None = None) -> View:
    """Show the header and the claims of a token, with times in words relative to `at`. The token is not verified.

    Raises:
        ValueError: The string is not a JWT.
    """
    if token.count(".") != 2:
        raise ValueError("a token has three parts, separated by dots")
    header, claims = part_of(token, 0), part_of(token, 1)
    rows = [(name, in_line(value), "") for name, value in header.items()]
    rows += [(name, in_line(value), _in_words(name, value, claims, at)) for name, value in claims.items()]
    note = "Decoded only. The service checks the signature."
    html = [(*(f"<code>{escape(part)}</code>" for part in row[:2]), escape(row[2])) for row in rows]
    return View(f"{columns(rows)}\n{note}", box(GREY, table(("claim", "value", "in words"), html), small(note)))


def _in_words(name: str, value: object, claims: JsonObject, at: str | None) -> str:
    if name not in _TIMES or not isinstance(value, int):
        return ""
    moment = datetime.fromtimestamp(value, UTC)
    text = f"{_TIMES[name]} {moment:%Y-%m-%d %H:%M:%S} UTC"
    if name != "exp":
        return text
    text += f", valid for {words(timedelta(seconds=value - claims['iat']))}" if "iat" in claims else ""
    if at is None:
        return text
    left = moment - parse_timestamp(at).replace(microsecond=0)
    return f"{text}, {f'{words(left)} left' if left > timedelta(0) else f'expired {words(left)} ago'}"
