"""The texts of drafts, replies and schedules."""

import json

from profilesvc.contract.json import JsonObject
from profilesvc.services.drafts import Draft

LANGUAGES = {
    "ar": "Arabic",
    "de": "German",
    "en": "English",
    "en-GB": "English (United Kingdom)",
    "es": "Spanish",
    "fr": "French",
    "it": "Italian",
    "ja": "Japanese",
    "ko": "Korean",
    "nl": "Dutch",
    "pl": "Polish",
    "pt-BR": "Portuguese (Brazil)",
    "pt-PT": "Portuguese (Portugal)",
    "sv": "Swedish",
    "tr": "Turkish",
    "zh-Hans": "Chinese (simplified)",
}
DRAFT_STATES = {
    "draft": "Draft",
    "scheduled": "Scheduled",
    "sending": "Being sent",
    "failed": "Not published",
}
REPLY_STATES = {
    "PENDING": "The provider checks your reply before it is public.",
    "APPROVED": "Your reply is public.",
    "REJECTED": "The provider rejected your reply. Change it, and send it again.",
}


def draft_post(draft: Draft) -> JsonObject:
    """Return the post that a draft describes."""
    post: JsonObject = json.loads(draft.document)
    return post


def draft_name(draft: Draft) -> str:
    """Return the name of a draft for people who do not see its place on the page."""
    return f"{DRAFT_STATES[draft.state]}: {draft_text(draft)}"


def draft_text(draft: Draft) -> str:
    """Return the start of the title or text of a draft."""
    post = draft_post(draft)
    text: str = post.get("event", {}).get("title") or post.get("summary") or "without a text"
    return text[:60]


def schedule(interval: JsonObject) -> str:
    """Return when an event takes place."""
    sides = []
    for side in ("start", "end"):
        day, time = interval[f"{side}Date"], interval.get(f"{side}Time", {})
        clock = f"{time.get('hours', 0):02}:{time.get('minutes', 0):02}"
        sides.append(f"{day['year']:04}-{day['month']:02}-{day['day']:02} {clock}")
    return " to ".join(sides)
