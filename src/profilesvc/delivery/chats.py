"""Events as messages of chats, by their incoming webhooks: Slack, Microsoft Teams, Discord."""

import re
from html import escape

from profilesvc.contract.json import JsonObject
from profilesvc.delivery.messages import one_line

_LONGEST = 1_500  # characters; Discord accepts 2,000
_MARKUP = re.compile(r"([\\`*_~|<>\[\]{}&#!])")  # braces, because cards replace {{DATE(…)}}
_LIST_ITEM = re.compile(r"\A(\d*)([-+.)])(?=\s|\Z)")
_NO_PREVIEW = 4  # of the links in a message, Discord's flag SUPPRESS_EMBEDS


def message(kind: str, title: str, document: JsonObject) -> JsonObject:
    """Return the body of a chat's incoming webhook for an event. No text of the event formats, mentions or links."""
    title, facts = one_line(title), _facts(document)
    if kind == "slack":
        lines = [title, *(f"{name}: {value}" for name, value in facts)]
        # Slack has no escape for its Markdown, so it is switched off.
        return {"text": escape("\n".join(lines)[:_LONGEST], quote=False), "mrkdwn": False, "unfurl_links": False}
    if kind == "discord":
        lines = [_plain(title), *(f"{name}: `{value.replace('`', '')}`" for name, value in facts)]
        return {"content": "\n".join(lines)[:_LONGEST], "allowed_mentions": {"parse": []}, "flags": _NO_PREVIEW}
    card = {
        "type": "AdaptiveCard",
        "$schema": "http://adaptivecards.io/schemas/adaptive-card.json",
        "version": "1.4",
        "body": [
            {"type": "TextBlock", "text": _plain(title), "weight": "bolder", "wrap": True},
            {"type": "FactSet", "facts": [{"title": name, "value": _plain(value)} for name, value in facts]},
        ],
    }
    attachment = {"contentType": "application/vnd.microsoft.card.adaptive", "contentUrl": None, "content": card}
    return {"type": "message", "attachments": [attachment]}


def _facts(document: JsonObject) -> list[tuple[str, str]]:
    """Return what identifies the site, and the event. Text of reviews and posts is left out."""
    data = document["data"]
    key = data.get("key", {})
    facts = [
        ("Location", data.get("location_id") or key.get("assigned_location_id")),
        ("API key", data.get("client_id") or key.get("client_id")),
        ("Posts", f"{data['used']} of {data['limit']}" if "used" in data else None),
        ("Error", data.get("error")),
        ("Event", document["id"]),
        ("Time", document["created_at"]),
    ]
    return [(name, one_line(value)) for name, value in facts if value]


def _plain(text: str) -> str:
    """Return a line for Markdown that shows it as it is."""
    return _LIST_ITEM.sub(r"\1\\\2", _MARKUP.sub(r"\\\1", text))
