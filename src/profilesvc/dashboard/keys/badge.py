"""The status badge, which shows a key's name and state to anyone who has its link. It is English: caches share it."""

import json
import re
from html import escape

from quart import Blueprint, Response

from profilesvc.dashboard.visits import counted_by_address
from profilesvc.dashboard.words import words
from profilesvc.domain.time import iso_or_none
from profilesvc.services.insight import badges

_COLOURS = {"online": "#1a7f37", "idle": "#9a6700", "offline": "#c21f2c", "deactivated": "#57606a"}
_SVG = """<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="20" role="img" aria-label="{name}: {word}">
<title>{name}: {word}</title>
<rect width="{left}" height="20" fill="#444d56"/><rect x="{left}" width="{right}" height="20" fill="{colour}"/>
<g fill="#fff" font-family="Verdana,DejaVu Sans,sans-serif" font-size="11">
<text x="6" y="14">{name}</text><text x="{start}" y="14">{word}</text></g>
</svg>
"""
_NOT_IN_XML = re.compile(r"[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")  # not even escaped
_LONGEST = 40
_CACHED = {"Cache-Control": "public, max-age=60"}


blueprint = Blueprint("badge", __name__)


@blueprint.get("/badge/<badge>")
async def badge(badge: str) -> Response:
    """Serve `<secret>.svg` or `<secret>.json`."""
    services = await counted_by_address()
    secret, _, form = badge.rpartition(".")
    name, state, seen = await badges.read(services, secret if form in {"svg", "json"} else "")
    if form == "svg":
        return Response(_picture(name, state), 200, _CACHED, content_type="image/svg+xml")
    fields = {"name": name, "state": state, "last_heartbeat_at": iso_or_none(seen)}
    # shields.io reads these four fields.
    shields = {"schemaVersion": 1, "label": name, "message": words.STATES.english[state], "color": _COLOURS[state]}
    return Response(json.dumps(shields | fields), 200, _CACHED, content_type="application/json")


def _picture(name: str, state: str) -> str:
    label = name if len(name) <= _LONGEST else f"{name[: _LONGEST - 1]}…"
    word = words.STATES.english[state]
    left, right = 12 + 7 * len(label), 12 + 7 * len(word)
    return _SVG.format(
        name=escape(_NOT_IN_XML.sub("\ufffd", label)),
        word=word,
        left=left,
        right=right,
        width=left + right,
        start=left + 6,
        colour=_COLOURS[state],
    )
