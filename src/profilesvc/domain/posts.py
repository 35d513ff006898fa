"""The rules for creating and changing local posts, and the fields that are sent to the provider.

Only rules that the provider certainly enforces are checked, because others would diverge from the provider's (D-75).
The strict emulator applies them too.
"""

from collections.abc import Iterator
from datetime import date

from profilesvc.contract.json import JsonObject
from profilesvc.contract.provider.post import LocalPost
from profilesvc.contract.visible import has_visible_text
from profilesvc.domain.errors import Problem, invalid_many
from profilesvc.domain.location_rules import WEB_ADDRESS
from profilesvc.domain.messages import access_of, parse, without_nulls, without_read_only
from profilesvc.domain.provider_values import is_web_address

UPDATABLE = ("summary", "callToAction", "event", "offer", "scheduledTime", "languageCode", "topicType", "alertType")
_TOPICS = ("STANDARD", "EVENT", "OFFER", "ALERT")
_ACTIONS = ("BOOK", "ORDER", "SHOP", "LEARN_MORE", "SIGN_UP", "CALL")
_PATTERNS = ("dailyPattern", "weeklyPattern", "monthlyPattern")
# The kinds of posts that a field is for. The others do not accept it: an offer, for example, has a button of its own.
_KINDS = {
    "event": ("EVENT", "OFFER"),
    "offer": ("OFFER",),
    "callToAction": ("STANDARD", "EVENT", "ALERT"),
    "alertType": ("ALERT",),
    "media": ("STANDARD", "EVENT", "OFFER"),
}
_UNSET = "ALERT_TYPE_UNSPECIFIED"
_READ_ONLY = tuple(name for name, field in LocalPost.model_fields.items() if access_of(field) is not None)


def can_have_posts(profile: JsonObject) -> bool:
    """Return whether a location can have posts: the provider says so only if it cannot."""
    metadata = profile.get("metadata")
    return not (isinstance(metadata, dict) and metadata.get("canOperateLocalPost") is False)


def check_create(body: JsonObject) -> JsonObject:
    """Return the post to send to the provider, with its topic filled in.

    Read-only fields are ignored, so that a post can be sent back as it was read; null is the same as absent.

    Raises:
        ServiceError: VALIDATION_ERROR that names every invalid field.
    """
    post, problems = _read(body)
    post = without_nulls(post)
    problems += _further_problems(post, problems)
    if problems:
        raise invalid_many(problems)
    return _to_send(post)


def check_patch(existing: JsonObject | None, body: JsonObject) -> tuple[JsonObject, list[str]]:
    """Return the fields to send to the provider and the update mask, top-level names in the request's order.

    `existing` is the post at the provider; the rules for creation apply to the result. A null field is cleared: it is
    in the mask and not in the body. If there is no such post, only the rules that do not depend on it apply, and the
    mask is empty.

    Raises:
        ServiceError: VALIDATION_ERROR that names every invalid field.
    """
    changes, problems = _read({name: value for name, value in body.items() if name != "media"})
    if "media" in body:
        problems.append(("body", "media", "cannot be changed: delete the post and create it again"))
    if "topicType" in changes and changes["topicType"] is None:
        problems.append(("body", "topicType", "cannot be cleared"))
    if not changes and not problems:
        problems.append(("body", "", f"must have at least one of {', '.join(UPDATABLE)}"))
    result = without_nulls({**_stored(existing or {}), **changes})
    problems += _further_problems(result, problems, is_whole=existing is not None)
    if problems:
        raise invalid_many(problems)
    if existing is None:
        return {}, []
    document = _to_send(result)
    mask = [name for name in changes if name in document or changes[name] is None]
    if document.get("alertType") != result.get("alertType") and "alertType" not in mask:
        mask.append("alertType")
    return {name: document[name] for name in mask if name in document}, mask


def _read(body: JsonObject) -> tuple[JsonObject, list[Problem]]:
    """Return the valid fields of a request without read-only ones, and the problems of the others."""
    writable = {name: value for name, value in body.items() if name not in _READ_ONLY}
    return parse(LocalPost, without_read_only(LocalPost, writable))


def _to_send(post: JsonObject) -> JsonObject:
    """Return a valid post in the form that the provider accepts."""
    document = dict(post)
    if document["topicType"] == "ALERT" and document.get("alertType") in (None, _UNSET):
        document["alertType"] = "COVID_19"
    if "media" in document:
        document["media"] = [{"mediaFormat": "PHOTO", **item} for item in document["media"]]
    return document


def _stored(existing: JsonObject) -> JsonObject:
    """Return the fields of a post at the provider that can change, without what the provider itself ignores in them."""
    stored = {name: existing[name] for name in UPDATABLE if name in existing}
    action = stored.get("callToAction")
    if stored.get("topicType") == "OFFER":
        stored.pop("callToAction", None)
    elif isinstance(action, dict) and action.get("actionType") == "CALL":
        stored["callToAction"] = {"actionType": "CALL"}
    return stored


def _has_problem(problems: list[Problem], field: str) -> bool:
    """Return whether this field, a field inside it or a field around it has a problem."""
    return any(f"{field}.".startswith(f"{name}.") or name.startswith(f"{field}.") for _, name, _ in problems)


def _further_problems(post: JsonObject, reported: list[Problem], *, is_whole: bool = True) -> list[Problem]:
    """Return the violations of rules by fields without a problem. A whole post without a topic becomes STANDARD."""
    has_topic = is_whole and not _has_problem(reported, "topicType")
    if has_topic:
        post.setdefault("topicType", "STANDARD")
    problems = violations(post, has_topic=has_topic)
    return [("body", field, problem) for field, problem in problems if not _has_problem(reported, field)]


def violations(post: JsonObject, *, has_topic: bool = True) -> Iterator[tuple[str, str]]:
    """Yield the fields of a post, whose types are valid, that violate a rule, with the rule."""
    of_topic = list(_topic(post)) if has_topic else []
    yield from of_topic
    refused = {field for field, _ in of_topic}
    for part in (_call_to_action, _event, _offer, _media):
        yield from (one for one in part(post) if one[0].partition(".")[0] not in refused)


def _topic(post: JsonObject) -> Iterator[tuple[str, str]]:
    topic = post["topicType"]
    if topic not in _TOPICS:
        yield "topicType", f"must be one of {', '.join(_TOPICS)}"
    if topic == "STANDARD" and not has_visible_text(post.get("summary", "")):
        yield "summary", "is required for a STANDARD post"
    for field, kinds in _KINDS.items():
        if topic in _TOPICS and topic not in kinds and post.get(field) not in (None, [], _UNSET):
            others = f"{', '.join(kinds[:-1])} and " if kinds[1:] else ""
            yield field, f"is for {others}{kinds[-1]} posts only"


def _call_to_action(post: JsonObject) -> Iterator[tuple[str, str]]:
    if "callToAction" not in post:
        return
    action, url = post["callToAction"].get("actionType"), post["callToAction"].get("url")
    if action not in _ACTIONS:
        yield "callToAction.actionType", f"must be one of {', '.join(_ACTIONS)}"
    elif action == "CALL" and url is not None:
        yield "callToAction.url", "is not for CALL, which uses the phone number of the profile"
    elif action != "CALL" and not is_web_address(url):
        yield "callToAction.url", WEB_ADDRESS if url else f"is required for {action}"


def _event(post: JsonObject) -> Iterator[tuple[str, str]]:
    event = post.get("event", {})
    if "title" in event and not has_visible_text(event["title"]):
        yield "event.title", "must not be blank"
    if "schedule" in event:
        yield from _schedule(event["schedule"])
    recurrence = event.get("recurrenceInfo")
    if recurrence is not None and sum(name in recurrence for name in _PATTERNS) != 1:
        yield "event.recurrenceInfo", f"must have exactly one of {', '.join(_PATTERNS)}"


def _schedule(schedule: JsonObject) -> Iterator[tuple[str, str]]:
    moments: list[tuple[date, list[int]]] = []
    for side in ("start", "end"):
        day, time = schedule.get(f"{side}Date", {}), schedule.get(f"{side}Time", {})
        clock = [time.get(part, 0) for part in ("hours", "minutes", "seconds", "nanos")]
        try:
            moments.append((date(*(day.get(part, 0) for part in ("year", "month", "day"))), clock))
        except ValueError:
            yield f"event.schedule.{side}Date", "must be a real date with year, month and day"
    if len(moments) == 2 and moments[1] < moments[0]:
        yield "event.schedule", "must not end before it starts"


def _offer(post: JsonObject) -> Iterator[tuple[str, str]]:
    url = post.get("offer", {}).get("redeemOnlineUrl")
    if url is not None and not is_web_address(url):
        yield "offer.redeemOnlineUrl", WEB_ADDRESS


def _media(post: JsonObject) -> Iterator[tuple[str, str]]:
    for index, item in enumerate(post.get("media", [])):
        if item.get("mediaFormat", "PHOTO") != "PHOTO":
            yield f"media.{index}.mediaFormat", "must be PHOTO: a post cannot have other media"
        if not is_web_address(item.get("sourceUrl")):
            yield f"media.{index}.sourceUrl", WEB_ADDRESS if item.get("sourceUrl") else "is required"
        for field in ("dataRef", "locationAssociation"):
            if item.get(field) is not None:
                yield f"media.{index}.{field}", "is not for the photo of a post"
