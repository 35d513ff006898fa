"""Convert the post form to the provider's LocalPost, and its problems to those of the form."""

from collections.abc import Mapping

from profilesvc.contract.json import JsonObject
from profilesvc.contract.provider.post import LocalPost
from profilesvc.dashboard.edits import Edit
from profilesvc.dashboard.problems import NONE, Problems, from_error
from profilesvc.dashboard.words.hours import clock
from profilesvc.dashboard.words.words import ACTIONS, KINDS
from profilesvc.domain.errors import ServiceError, invalid
from profilesvc.domain.messages import normal
from profilesvc.domain.posts import check_create
from profilesvc.language.texts import gettext

_DAY, _TIME = ("year", "month", "day"), ("hours", "minutes")
_ALL_DAY = {"start_time": "00:00", "end_time": "23:59"}
_SCHEDULE = ("start_date", "start_time", "end_date", "end_time")
# The inputs of each field of a post that a change may have. With another kind, every field may differ.
_INPUTS = {
    "topicType": ("kind",),
    "summary": ("summary",),
    "languageCode": ("language",),
    "callToAction": ("action", "action_url"),
    "event": ("title", *_SCHEDULE),
    "offer": ("coupon", "redeem_url", "terms"),
}


def kind_of(form: Mapping[str, str]) -> str:
    """Return the kind of post that the form is for."""
    return form["kind"] if form.get("kind") in KINDS else "STANDARD"


def require_kind(form: Mapping[str, str]) -> None:
    """Reject a kind of post that the form does not offer; without one it is a standard post.

    Raises:
        ServiceError: VALIDATION_ERROR.
    """
    if form.get("kind", "STANDARD") not in KINDS:
        raise invalid("body", "topicType", f"must be one of {', '.join(KINDS)}")


def document(form: Mapping[str, str]) -> JsonObject:
    """Return the post that the form describes, without empty fields."""
    kind = kind_of(form)
    values = {name: one_line_ends(text) for name, text in form.items() if text.strip()}
    post: JsonObject = {"topicType": kind}
    for name, of_input in (("summary", "summary"), ("languageCode", "language")):
        if of_input in values:
            post[name] = values[of_input]
    if "action" in values and kind != "OFFER":  # the form of an offer has no button
        post["callToAction"] = _present({"actionType": values["action"], "url": values.get("action_url")})
    if kind in {"EVENT", "OFFER"}:
        schedule = _schedule(values, _ALL_DAY if kind == "OFFER" else {})
        post["event"] = _present({"title": values.get("title"), "schedule": schedule})
    if kind == "OFFER":
        coupon, url, terms = (values.get(name) for name in ("coupon", "redeem_url", "terms"))
        post["offer"] = _present({"couponCode": coupon, "redeemOnlineUrl": url, "termsConditions": terms})
    if "photo" in values:
        post["media"] = [{"sourceUrl": values["photo"]}]
    return post


def one_line_ends(text: str) -> str:
    """Return what was typed. Browsers send two characters for the end of a line, and a limit counts one."""
    return text.strip().replace("\r\n", "\n")


def inputs_of(form: Mapping[str, str]) -> dict[str, str]:
    """Return every input of a post that can be changed."""
    return {name: form.get(name, "") for names in _INPUTS.values() for name in names} | {"kind": kind_of(form)}


def in_words(edit: Edit, name: str) -> str:
    """Return the current value of an input as its page shows it."""
    text = str(edit.current[name])
    if name == "kind":
        return gettext(KINDS[text][0])
    return ACTIONS.get(text, text) if name == "action" else text


def values(post: JsonObject) -> dict[str, str]:
    """Return the inputs of the form that describe a post: the reverse of `document`."""
    event, offer, action = (post.get(name, {}) for name in ("event", "offer", "callToAction"))
    schedule = event.get("schedule", {})
    inputs = {
        "kind": post.get("topicType"),
        "summary": post.get("summary"),
        "language": post.get("languageCode"),
        "action": action.get("actionType"),
        "action_url": action.get("url"),
        "title": event.get("title"),
        "coupon": offer.get("couponCode"),
        "redeem_url": offer.get("redeemOnlineUrl"),
        "terms": offer.get("termsConditions"),
        "photo": next((item.get("sourceUrl") for item in post.get("media", [])), None),
    }
    for side in ("start", "end"):
        if day := schedule.get(f"{side}Date"):
            inputs[f"{side}_date"] = "{:04}-{:02}-{:02}".format(*(day.get(part, 0) for part in _DAY))
        if (time := schedule.get(f"{side}Time")) is not None:
            inputs[f"{side}_time"] = clock(time)
    return {name: value for name, value in inputs.items() if value}


def changes(existing: JsonObject, edit: Edit) -> JsonObject:
    """Return the fields of a post that the user has changed; null clears one. Parts that the form lacks stay.

    Raises:
        ServiceError: CONFLICT for what somebody else has changed too.
    """
    edit.require_no_conflict(lambda name: in_words(edit, name))
    post, changed = document(edit.inputs), edit.changed()
    if "event" in post and "event" in existing:
        together = {"title": ("title",), "schedule": _SCHEDULE}
        own = {part for part, names in together.items() if "kind" in changed or not changed.keys().isdisjoint(names)}
        others = {part: value for part, value in existing["event"].items() if part not in own}
        post["event"] = others | {part: value for part, value in post["event"].items() if part in own}
    edited = [name for name, inputs in _INPUTS.items() if "kind" in changed or not changed.keys().isdisjoint(inputs)]
    return {name: post.get(name) for name in edited if not _is_same(name, post.get(name), existing.get(name))}


def _is_same(name: str, one: object, other: object) -> bool:
    """Return whether two values of a field are the same to the provider, which leaves out zeros."""
    annotation = LocalPost.model_fields[name].annotation
    return normal(annotation, one) == normal(annotation, other)


def problems(post: JsonObject) -> Problems:
    """Return what the provider would reject, with the labels of the fields."""
    try:
        check_create(post)
    except ServiceError as error:
        return from_error(error)
    return NONE


def _schedule(values: dict[str, str], default: dict[str, str]) -> JsonObject:
    """Return the days and times. A default applies only if no time was typed."""
    given = {name: values.get(name, "") for name in _ALL_DAY}
    typed = given if any(given.values()) else default
    times = {side: _numbers(typed.get(f"{side}_time", ""), ":", _TIME) for side in ("start", "end")}
    days = {side: _numbers(values.get(f"{side}_date", ""), "-", _DAY) for side in ("start", "end")}
    return _present(
        {"startDate": days["start"], "startTime": times["start"], "endDate": days["end"], "endTime": times["end"]}
    )


def _numbers(text: str, divider: str, names: tuple[str, ...]) -> JsonObject | None:
    """Convert `2026-01-05` or `09:30` to the provider's date or time. Anything else counts as missing."""
    parts = text.split(divider)[: len(names)]
    if len(parts) != len(names) or not all(part.isdecimal() and len(part) <= 4 for part in parts):
        return None
    return dict(zip(names, map(int, parts), strict=True))


def _present(fields: JsonObject) -> JsonObject:
    return {name: value for name, value in fields.items() if value is not None}
