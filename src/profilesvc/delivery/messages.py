"""Events as sentences for people: in messages of chats, and as the subject and the advice of an alert."""

from typing import NamedTuple

from profilesvc.contract.events import EventType, PublishedEvent
from profilesvc.contract.json import JsonObject
from profilesvc.storage.events import Subject


class Story(NamedTuple):
    """An event in one sentence, and what its reader can do about it. `detail` is long, such as the text of a post."""

    title: str
    advice: str = ""
    detail: str = ""


_CHECK = "Is the site online, is the plugin active, and does its cron run?"
_COPY = "It is probably a copy, such as a staging site. Give it a key of its own, or remove the key there."
_REUSE = "The tokens that descend from it were revoked. If no backup was restored, replace the secret of the key."
_ENABLE = "Repair the endpoint and enable the webhook. Then send the missed events on the page of the webhook."
_REASONS = {"gone": "the endpoint responded that it no longer exists", "failing": "all attempts failed for 5 days"}
# What a message about a connection advises instead, by the reason that was known when the event was published.
_ADVICE: dict[str, str] = {
    "deactivated": "The API key is deactivated. Open its page to see why.",
    "secret_changed": "The secret of the API key was replaced{at}. Enter the new one in the plugin.",
    "token_revoked": "A revoked token of the site was rejected{at}. Enter the current secret in the plugin.",
    "secret_rejected": "A wrong secret was sent{at}. Enter the secret in the plugin again, whole.",
    "origin_not_allowed": "A page of a domain that the API key does not allow used it{at}. Check the key's domains.",
}
# The fields in braces are those of `_fields`.
_STORIES: dict[EventType, Story] = {
    "connection.online": Story("{site} is connected again"),
    "connection.idle": Story("{site} has not reported for more than two hours", _CHECK),
    "connection.offline": Story("{site} is offline: no heartbeat{since}", _CHECK),
    "connection.never_connected": Story("{site} has never connected", "Is the key entered in the plugin?"),
    "connection.site_mismatch": Story("{site}: a second site uses its credentials", _COPY),
    "key.created": Story("The API key “{name}” was created"),
    "key.rolled": Story("The secret of the API key “{name}” was replaced"),
    "key.deactivated": Story("The API key “{name}” was deactivated"),
    "key.reactivated": Story("The API key “{name}” is active again"),
    "key.revoked": Story("The API key “{name}” was revoked"),
    "key.expiring": Story("The API key “{name}” ends on {end}", "Create a new key and enter it in the plugin."),
    "token.reuse_detected": Story("A used refresh token of the API key “{name}” came back", _REUSE),
    "location.verification_changed": Story("The verification of {place} is now {state}"),
    "location.sync_switched": Story("The sync of {place} is now {switch}"),
    "profile.drifted": Story("The provider's profile of {place} differs from the last sync", detail="{differences}"),
    "sync.succeeded": Story("The profile of {place} was synced", detail="{updated}"),
    "sync.failed": Story("The sync of {place} failed", "The data is not sent again by itself. Sync it again."),
    "post.created": Story("A post of {place} was created", detail="{summary}"),
    "post.updated": Story("A post of {place} was changed", detail="{summary}"),
    "post.deleted": Story("A post of {place} was deleted", detail="{summary}"),
    "post.published": Story("A post of {place} was published", detail="{summary}"),
    "post.rejected": Story(
        "The provider rejected a post of {place}", "Change the post to submit it again.", "{summary}"
    ),
    "post.deleted_at_provider": Story("A post of {place} was deleted at the provider", detail="{summary}"),
    "review.created": Story("{place} has a new review"),
    "review.updated": Story("A review of {place} was changed"),
    "review.replied": Story("A review of {place} was replied to", detail="{reply}"),
    "review.reply_deleted": Story("The reply to a review of {place} was deleted"),
    "quota.warning": Story("{used} of {limit} posts of the month are used"),
    "webhook.disabled": Story("The webhook to {host} was disabled: {reason}", _ENABLE),
    "provider_connection.connected": Story("A login at the provider was connected"),
    "provider_connection.reauth_required": Story(
        "The provider has ended a connected login", "Connect it again on the page Connections."
    ),
    "provider_connection.disconnected": Story("A login at the provider was disconnected"),
}


def story(event: PublishedEvent, subject: Subject) -> Story:
    fields, text_of_type = _fields(event.data, subject), _STORIES.get(event.type, Story(event.type))
    if text_of_type.advice == _CHECK or event.type == "connection.never_connected":
        hint = event.data.get("connection", {}).get("reason_hint")
        text_of_type = text_of_type._replace(advice=_ADVICE.get(str(hint), text_of_type.advice))
    return Story(*(text.format_map(fields) for text in text_of_type))


def page_of(event: PublishedEvent, subject: Subject) -> tuple[str, str]:
    """Return the page of the dashboard that shows more, as a path and the text of a link to it."""
    if event.type.startswith("provider_connection."):
        return "/dashboard/connections", "Open the connections"
    if "key" in event.data and subject.client_id is not None:
        return f"/dashboard/keys/{subject.client_id}", "Open the page of the key"
    if subject.location_name is not None:
        return f"/dashboard/sites/{subject.location_name.removeprefix('locations/')}", "Open the page of the site"
    if "webhook_id" in event.data:
        return f"/dashboard/webhooks/{event.data['webhook_id']}", "Open the page of the webhook"
    return "/dashboard", "Open the dashboard"


def _fields(data: JsonObject, subject: Subject) -> dict[str, str]:
    key, connection = data.get("key", {}), data.get("connection", {})
    last, reason_at = connection.get("last_heartbeat_at"), connection.get("reason_at")
    place = f"“{one_line(subject.title)}”" if subject.title else str(data.get("location_id", ""))
    return {
        "site": subject.domain or f"The site of {place}",
        "since": f" since {_minute(last)}" if last else "",
        "at": f" on {_minute(reason_at)}" if reason_at else "",
        "name": one_line(key.get("name", "")),
        "end": str(key.get("expires_at"))[:10],
        "place": place,
        "state": str(data.get("verification_state", "")),
        "switch": "on" if data.get("sync_enabled") else "off",
        "differences": ", ".join(str(each.get("field")) for each in data.get("differences", [])[:5]),
        "updated": ", ".join(data.get("fields_updated", [])) or "no change",
        "summary": _quoted(data.get("post", {}).get("summary", "")),
        "reply": _quoted((data.get("reply") or {}).get("comment", "")),
        "used": str(data.get("used", "")),
        "limit": str(data.get("limit", "")),
        "host": str(data.get("host", "")),
        "reason": _REASONS.get(str(data.get("disabled_reason")), ""),
    }


def _minute(instant: object) -> str:
    return f"{str(instant)[:16].replace('T', ' ')} UTC"


def one_line(text: object) -> str:
    """Return text in one line, so that it cannot look like another line of the message."""
    return " ".join(str(text).split())


def _quoted(text: object) -> str:
    line = one_line(text)
    return f"“{line[:60]}{'…' if len(line) > 60 else ''}”"
