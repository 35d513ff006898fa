"""From the form of a post to the provider's LocalPost, and from its problems back to the words of the form."""

from typing import Any

from werkzeug.datastructures import MultiDict

from profilesvc.dashboard.problems import NONE, Problems, of
from profilesvc.domain.errors import ServiceError
from profilesvc.domain.messages import Document
from profilesvc.domain.posts import check_create


def document(kind: str, form: "MultiDict[str, str]") -> Document:
    """The post that a filled-in form means; what was left empty is left out."""
    given = {name: text.strip() for name, text in form.items() if text.strip()}
    post: Document = {"topicType": kind}
    if "summary" in given:
        post["summary"] = given["summary"]
    if "action" in given and kind != "OFFER":  # the form of an offer has no button
        post["callToAction"] = _present({"actionType": given["action"], "url": given.get("action_url")})
    if kind in {"EVENT", "OFFER"}:
        post["event"] = _present({"title": given.get("title"), "schedule": _schedule(given)})
    if kind == "OFFER":
        coupon, url, terms = (given.get(name) for name in ("coupon", "redeem_url", "terms"))
        post["offer"] = _present({"couponCode": coupon, "redeemOnlineUrl": url, "termsConditions": terms})
    if "photo" in given:
        post["media"] = [{"sourceUrl": given["photo"]}]
    return post


def problems(post: Document) -> Problems:
    """What the provider would refuse, each with the label of its field; none for a post that is valid."""
    try:
        check_create(post)
    except ServiceError as error:
        return of(error)
    return NONE


def _schedule(given: dict[str, str]) -> Document:
    times = {side: _numbers(given.get(f"{side}_time", ""), ":", ("hours", "minutes")) for side in ("start", "end")}
    days = {side: _numbers(given.get(f"{side}_date", ""), "-", ("year", "month", "day")) for side in ("start", "end")}
    return _present(
        {
            "startDate": days["start"],
            "startTime": times["start"],
            "endDate": days["end"],
            "endTime": times["end"],
        }
    )


def _numbers(text: str, divider: str, names: tuple[str, ...]) -> Document | None:
    """`2026-01-05` or `09:30` as the provider's date or time; None for anything else, which the rules then miss."""
    parts = text.split(divider)[: len(names)]
    if len(parts) != len(names) or not all(part.isdecimal() and len(part) <= 4 for part in parts):
        return None
    return dict(zip(names, map(int, parts), strict=True))


def _present(members: dict[str, Any]) -> Document:
    return {name: value for name, value in members.items() if value is not None}
