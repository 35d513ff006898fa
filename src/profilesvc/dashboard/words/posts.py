"""The texts of drafts, replies and schedules."""

import json

from profilesvc.contract.json import JsonObject
from profilesvc.dashboard.words.hours import clock
from profilesvc.language.texts import N_, Words, _
from profilesvc.services.drafts.drafts import Draft

LANGUAGES = Words(
    {
        "ar": N_("Arabic"),
        "de": N_("German"),
        "en": N_("English"),
        "en-GB": N_("English (United Kingdom)"),
        "es": N_("Spanish"),
        "fr": N_("French"),
        "it": N_("Italian"),
        "ja": N_("Japanese"),
        "ko": N_("Korean"),
        "nl": N_("Dutch"),
        "pl": N_("Polish"),
        "pt-BR": N_("Portuguese (Brazil)"),
        "pt-PT": N_("Portuguese (Portugal)"),
        "sv": N_("Swedish"),
        "tr": N_("Turkish"),
        "zh-Hans": N_("Chinese (simplified)"),
    }
)
DRAFT_STATES = Words(draft=N_("Draft"), scheduled=N_("Scheduled"), sending=N_("Being sent"), failed=N_("Not published"))
REPLY_STATES = Words(
    PENDING=N_("The provider checks your reply before it is public."),
    APPROVED=N_("Your reply is public."),
    REJECTED=N_("The provider rejected your reply. Change it, and send it again."),
)


def draft_post(draft: Draft) -> JsonObject:
    post: JsonObject = json.loads(draft.document)
    return post


def draft_name(draft: Draft) -> str:
    """Return the name of a draft for people who do not see its place on the page."""
    return f"{DRAFT_STATES[draft.state]}: {draft_text(draft)}"


def draft_text(draft: Draft) -> str:
    """Return the start of the title or text of a draft."""
    return start_of(draft_post(draft)) or _("without a text")


def start_of(post: JsonObject, most: int = 60) -> str:
    """Return the start of the title or text of a post."""
    text: object = (post.get("event") or {}).get("title") or post.get("summary") or ""
    return str(text)[:most]


def schedule(interval: JsonObject) -> str:
    """Return when an event takes place."""
    sides = []
    for side in ("start", "end"):
        day, time = interval[f"{side}Date"], interval.get(f"{side}Time")
        sides.append(f"{day['year']:04}-{day['month']:02}-{day['day']:02} {clock(time)}")
    return _("%(start)s to %(end)s", start=sides[0], end=sides[1])
