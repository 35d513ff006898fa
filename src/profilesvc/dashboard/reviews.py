"""The page of a location's reviews and replies."""

import json
from dataclasses import dataclass

from quart import Blueprint, Response, request

from profilesvc.api.parsing import checked
from profilesvc.contract.common import review_id
from profilesvc.contract.json import JsonObject
from profilesvc.contract.reviews import ReviewListQuery
from profilesvc.dashboard import pages, post_form, problems
from profilesvc.dashboard.visits import Visit, of_path, view
from profilesvc.domain.errors import ServiceError
from profilesvc.services import reviews
from profilesvc.services.context import AllowedLocation

_SITE = "/sites/<location:locationId>"


blueprint = Blueprint("reviews", __name__)


@view(blueprint, f"{_SITE}/reviews")
async def show(visit: Visit, locationId: str) -> Response:
    return await _page(visit, await visit.location(locationId))


@view(blueprint, f"{_SITE}/reviews/<review:reviewId>/reply", "POST")
async def reply(visit: Visit, locationId: str, reviewId: str) -> Response:
    location, form = await visit.location(locationId), await request.form
    ident, text = (
        of_path("reviewId", review_id, reviewId, location.name),
        post_form.one_line_ends(form.get("comment", "")),
    )
    try:
        await reviews.reply(visit.services, location, ident, {"comment": text})
    except ServiceError as error:
        return await _page(visit, location, _FailedReply(ident, text, error))
    return pages.redirect(f"{pages.PATH}/sites/{location.id}/reviews", "replied")


@view(blueprint, f"{_SITE}/reviews/<review:reviewId>/withdraw", "POST")
async def withdraw(visit: Visit, locationId: str, reviewId: str) -> Response:
    location, form = await visit.location(locationId), await request.form
    ident = of_path("reviewId", review_id, reviewId, location.name)
    try:
        problems.require_confirmation("sure" in form)
        await reviews.delete_reply(visit.services, location, ident)
    except ServiceError as error:
        return await _page(visit, location, _FailedReply(ident, None, error))
    return pages.redirect(f"{pages.PATH}/sites/{location.id}/reviews", "withdrawn")


@dataclass(frozen=True, slots=True)
class _FailedReply:
    """A reply that was not accepted: its review, its text and the error."""

    review_id: str
    text: str | None
    error: ServiceError


async def _page(visit: Visit, location: AllowedLocation, failed: _FailedReply | None = None) -> Response:
    """Return the reviews, and after a failure the text that the user entered with its problems.

    The review of a failed reply may be on another page or deleted, or the provider may not be available. Then the form
    is shown separately, so that the text is not lost.
    """
    try:
        listed, failure = await _listed(visit, location), None
    except ServiceError as error:
        if error.kind.status < 500 and failed is None:
            raise
        listed, failure = {"reviews": [], "nextPageToken": ""}, error
    names = [review["name"].rpartition("/")[2] for review in listed["reviews"]]
    return pages.page(
        "reviews.html",
        visit=visit,
        location=location,
        title=await visit.title(location),
        listed=listed,
        failure=failure,
        failed=failed,
        is_listed=failed is not None and failed.review_id in names,
        problems=problems.NONE if failed is None else problems.of(failed.error, f"{failed.review_id}-"),
    )


async def _listed(visit: Visit, location: AllowedLocation) -> JsonObject:
    values = {"locationId": location.name, "pageSize": "25", "pageToken": request.args.get("page", "")}
    query = checked(ReviewListQuery, values, "query")
    listed: JsonObject = json.loads((await reviews.list_page(visit.services, location, query)).data)
    return listed
