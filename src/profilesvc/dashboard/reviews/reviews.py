"""The page of a location's reviews and replies."""

import json
from dataclasses import dataclass
from urllib.parse import urlencode

from quart import Blueprint, Response, request

from profilesvc.api.html_forms import TEXTS
from profilesvc.api.parsing import checked
from profilesvc.contract.common import review_id
from profilesvc.contract.errors import NOT_FOUND
from profilesvc.contract.json import JsonObject
from profilesvc.contract.reviews import ReviewListQuery
from profilesvc.dashboard import pages, problems
from profilesvc.dashboard.edits import Edit
from profilesvc.dashboard.posts import form as post_form
from profilesvc.dashboard.visits import Visit, path_value, view
from profilesvc.domain.errors import ServiceError
from profilesvc.services.context import AllowedLocation
from profilesvc.services.reviews import reply_templates, reviews

_SITE = "/sites/<location:locationId>"
_SIZE = 25
_MOST_PAGES = 8  # of the provider, for one page of a filter
STARS = {"1": "ONE", "2": "TWO", "3": "THREE", "4": "FOUR", "5": "FIVE"}


blueprint = Blueprint("reviews", __name__)


@view(blueprint, f"{_SITE}/reviews")
async def show(visit: Visit, locationId: str) -> Response:
    return await _page(visit, await visit.location(locationId))


@view(blueprint, f"{_SITE}/reviews/<review:reviewId>/reply", "POST", TEXTS)
async def reply(visit: Visit, locationId: str, reviewId: str) -> Response:
    location, form = await visit.location(locationId), await request.form
    ident = path_value("reviewId", review_id, reviewId, location.name)
    text = post_form.one_line_ends(form.get("comment", ""))
    edit = Edit({"comment": text}).fill(form)
    if form.get("intent") == "template":
        templates = await reply_templates.listing(visit.services, visit.caller)
        chosen = next((one.text for one in templates if one.id == form.get("template")), None)
        if chosen is None:
            gone = ServiceError(NOT_FOUND, "The template does not exist any more.")
            return await _page(visit, location, _Unsent(ident, text, gone, edit))
        return await _page(visit, location, _Unsent(ident, chosen, None, edit))
    try:
        review = json.loads((await reviews.get(visit.services, location, ident)).data)
        edit = _edit_of(review).fill(form, {"comment": text})
        edit.require_no_conflict()
        if is_sent := bool(edit.changed()) or not text:
            await reviews.reply(visit.services, location, ident, {"comment": text})
    except ServiceError as error:
        return await _page(visit, location, _Unsent(ident, text, error, edit))
    return pages.redirect(_address_of(location, ident), "replied" if is_sent else "unchanged")


def _edit_of(review: JsonObject) -> Edit:
    return Edit({"comment": review.get("reviewReply", {}).get("comment", "")})


@view(blueprint, f"{_SITE}/reviews/<review:reviewId>/withdraw", "POST")
async def withdraw(visit: Visit, locationId: str, reviewId: str) -> Response:
    location, form = await visit.location(locationId), await request.form
    ident = path_value("reviewId", review_id, reviewId, location.name)
    try:
        problems.require_confirmation("sure" in form)
        await reviews.delete_reply(visit.services, location, ident)
    except ServiceError as error:
        return await _page(visit, location, _Unsent(ident, None, error))
    return pages.redirect(_address_of(location, ident), "withdrawn")


@view(blueprint, f"{_SITE}/reviews/<review:reviewId>/live")
async def live(visit: Visit, locationId: str, reviewId: str) -> Response:
    """Return the state of the reply to a review, as long as the provider checks it."""
    location = await visit.location(locationId)
    ident = path_value("reviewId", review_id, reviewId, location.name)
    review = json.loads((await reviews.get(visit.services, location, ident)).data)
    existing = review.get("reviewReply", {})
    return pages.page("_reply_state.html", visit=visit, location=location, id=ident, existing=existing)


@dataclass(frozen=True, slots=True)
class _Unsent:
    """A reply that is not sent, with its review and form, and the error if the provider or we have rejected it."""

    review_id: str
    text: str | None
    error: ServiceError | None
    edit: Edit | None = None


async def _page(visit: Visit, location: AllowedLocation, failed: _Unsent | None = None) -> Response:
    """Return the reviews, and after a failure the text that the user entered with its problems.

    The review of a failed reply may be on another page or deleted, or the provider may not be available. Then the form
    is shown separately, so that the text is not lost.
    """
    try:
        listed, failure = await _listed(visit, location), None
    except ServiceError as error:
        if error.kind.status < 500 and failed is None:
            raise
        listed, failure = {"reviews": [], "nextPageToken": "", "read": 0, "is_filtered": False}, error
    names = [review["name"].rpartition("/")[2] for review in listed["reviews"]]
    return pages.page(
        "reviews.html",
        visit=visit,
        location=location,
        title=await visit.title(location),
        listed=listed,
        failure=failure,
        failed=failed,
        edits={name: _edit_of(review) for name, review in zip(names, listed["reviews"], strict=True)},
        is_listed=failed is not None and failed.review_id in names,
        templates=await reply_templates.listing(visit.services, visit.caller),
        stars=request.args.get("stars", ""),
        unanswered="unanswered" in request.args,
        query=_filter(),
        place=_filter("page"),
        problems=problems.NONE if failed is None else problems.from_error(failed.error, f"{failed.review_id}-"),
    )


async def _listed(visit: Visit, location: AllowedLocation) -> JsonObject:
    """Return the reviews of a page. With a filter, read pages of the provider until one page is full."""
    stars, unanswered = request.args.get("stars", ""), "unanswered" in request.args
    is_filtered = stars in STARS or unanswered
    token, wanted = request.args.get("page", ""), list[JsonObject]()
    read = 0
    for _ in range(_MOST_PAGES if is_filtered else 1):
        values = {"locationId": location.name, "pageSize": str(_SIZE), "pageToken": token}
        query = checked(ReviewListQuery, values, "query")
        listed: JsonObject = json.loads((await reviews.list_page(visit.services, location, query)).data)
        read += len(listed["reviews"])
        wanted += [one for one in listed["reviews"] if _is_wanted(one, stars, unanswered)]
        token = listed["nextPageToken"]
        if not token or len(wanted) >= _SIZE:
            break
    return {**listed, "reviews": wanted, "read": read, "is_filtered": is_filtered}


def _is_wanted(review: JsonObject, stars: str, unanswered: bool) -> bool:
    if stars in STARS and review.get("starRating") != STARS[stars]:
        return False
    return not (unanswered and "comment" in review.get("reviewReply", {}))


def _address_of(location: AllowedLocation, review: str) -> str:
    """Return the address of a review on its page of the list."""
    query = _filter("page")
    return f"{pages.PATH}/sites/{location.id}/reviews{'?' if query else ''}{query}#review-{review}"


def _filter(*more: str) -> str:
    """Return the filter as a query, so that forms and links stay in it."""
    values = {name: request.args[name] for name in ("stars", "unanswered", *more) if request.args.get(name)}
    return urlencode(values)
