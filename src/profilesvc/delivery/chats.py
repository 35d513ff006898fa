"""Events as messages of chats, by their incoming webhooks: Slack, Microsoft Teams, Discord."""

from profilesvc.contract.json import JsonObject

_LONGEST = 1_500  # characters; Discord accepts 2,000
_TITLES: dict[str, str] = {
    "connection.online": "The site is connected again",
    "connection.idle": "The site has not reported for more than 2 hours",
    "connection.offline": "The site is offline",
    "connection.never_connected": "The site has never connected",
    "connection.site_mismatch": "A second site uses the credentials",
    "key.created": "An API key was created",
    "key.rolled": "The secret of an API key was replaced",
    "key.deactivated": "An API key was deactivated",
    "key.reactivated": "An API key was reactivated",
    "key.revoked": "An API key was revoked",
    "key.expiring": "An API key expires soon",
    "token.reuse_detected": "A used refresh token came back, so its tokens were revoked",
    "location.verification_changed": "The verification of a location changed",
    "location.sync_switched": "The sync of a location was switched",
    "profile.drifted": "The profile differs from the last sync",
    "sync.succeeded": "A sync succeeded",
    "sync.failed": "A sync failed",
    "post.published": "A post was published",
    "post.rejected": "A post was rejected",
    "post.deleted_at_provider": "A post was deleted at the provider",
    "review.created": "There is a new review",
    "review.updated": "A review was changed",
    "quota.warning": "The month's posts are almost used up",
    "webhook.test": "This is a test",
}


def message(kind: str, document: JsonObject) -> JsonObject:
    """Return the body of a chat's incoming webhook for an event."""
    title = _TITLES.get(str(document["type"]), "An event")
    facts = _facts(document)
    if kind == "slack":
        lines = [f"*{_slack(title)}*", *(f"{name}: {_slack(value)}" for name, value in facts)]
        return {"text": "\n".join(lines)[:_LONGEST]}
    if kind == "discord":
        lines = [title, *(f"{name}: `{value.replace('`', '')}`" for name, value in facts)]
        return {"content": "\n".join(lines)[:_LONGEST], "allowed_mentions": {"parse": []}}
    card = {
        "type": "AdaptiveCard",
        "$schema": "http://adaptivecards.io/schemas/adaptive-card.json",
        "version": "1.4",
        "body": [
            {"type": "TextBlock", "text": title, "weight": "bolder", "wrap": True},
            {"type": "FactSet", "facts": [{"title": name, "value": value} for name, value in facts]},
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
    return [(name, str(value)) for name, value in facts if value]


def _slack(text: str) -> str:
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
