"""Convert the post form to the provider's LocalPost, and its problems to those of the form."""

from werkzeug.datastructures import MultiDict

from profilesvc.contract.json import JsonObject
from profilesvc.dashboard.problems import NONE, Problems, of
from profilesvc.domain.errors import ServiceError
from profilesvc.domain.posts import check_create


def document(kind: str, form: "MultiDict[str, str]") -> JsonObject:
    """Return the post that the form describes, without empty fields."""
    values = {name: text.strip() for name, text in form.items() if text.strip()}
    post: JsonObject = {"topicType": kind}
    if "summary" in values:
        post["summary"] = values["summary"]
    if "action" in values and kind != "OFFER":  # the form of an offer has no button
        post["callToAction"] = _present({"actionType": values["action"], "url": values.get("action_url")})
    if kind in {"EVENT", "OFFER"}:
        post["event"] = _present({"title": values.get("title"), "schedule": _schedule(values)})
    if kind == "OFFER":
        coupon, url, terms = (values.get(name) for name in ("coupon", "redeem_url", "terms"))
        post["offer"] = _present({"couponCode": coupon, "redeemOnlineUrl": url, "termsConditions": terms})
    if "photo" in values:
        post["media"] = [{"sourceUrl": values["photo"]}]
    return post


def problems(post: JsonObject) -> Problems:
    """Return what the provider would reject, with the labels of the fields."""
    try:
        check_create(post)
    except ServiceError as error:
        return of(error)
    return NONE


def _schedule(values: dict[str, str]) -> JsonObject:
    times = {side: _numbers(values.get(f"{side}_time", ""), ":", ("hours", "minutes")) for side in ("start", "end")}
    days = {side: _numbers(values.get(f"{side}_date", ""), "-", ("year", "month", "day")) for side in ("start", "end")}
    return _present(
        {
            "startDate": days["start"],
            "startTime": times["start"],
            "endDate": days["end"],
            "endTime": times["end"],
        }
    )


def _numbers(text: str, divider: str, names: tuple[str, ...]) -> JsonObject | None:
    """Convert `2026-01-05` or `09:30` to the provider's date or time. Anything else counts as missing."""
    parts = text.split(divider)[: len(names)]
    if len(parts) != len(names) or not all(part.isdecimal() and len(part) <= 4 for part in parts):
        return None
    return dict(zip(names, map(int, parts), strict=True))


def _present(fields: JsonObject) -> JsonObject:
    return {name: value for name, value in fields.items() if value is not None}
