"""A location's reviews with the replies to them, where the plan has them."""

import json
from dataclasses import dataclass
from typing import Any

from quart import Blueprint, Response, request

from profilesvc.api.parsing import checked
from profilesvc.contract.common import review_id
from profilesvc.contract.reviews import ReviewListQuery
from profilesvc.dashboard import pages, problems
from profilesvc.dashboard.visits import Visit, view
from profilesvc.domain.errors import ServiceError, invalid
from profilesvc.services import reviews
from profilesvc.services.context import Reached

_SITE = "/sites/<location:locationId>"


def register(blueprint: Blueprint) -> None:
    """Declare them."""

    @view(blueprint, f"{_SITE}/reviews")
    async def show(here: Visit, locationId: str) -> Response:
        return await _page(here, await here.reach(locationId))

    @view(blueprint, f"{_SITE}/reviews/<review:reviewId>/reply", "POST")
    async def reply(here: Visit, locationId: str, reviewId: str) -> Response:
        location, form = await here.reach(locationId), await request.form
        ident, typed = _ident(reviewId, location), form.get("comment", "").strip()
        try:
            await reviews.reply(here.services, location, ident, {"comment": typed})
        except ServiceError as error:
            return await _page(here, location, _Refused(ident, typed, error))
        return pages.see(f"{pages.PATH}/sites/{location.id}/reviews")

    @view(blueprint, f"{_SITE}/reviews/<review:reviewId>/withdraw", "POST")
    async def withdraw(here: Visit, locationId: str, reviewId: str) -> Response:
        location, form = await here.reach(locationId), await request.form
        ident = _ident(reviewId, location)
        try:
            problems.require_sure("sure" in form)
            await reviews.delete_reply(here.services, location, ident)
        except ServiceError as error:
            return await _page(here, location, _Refused(ident, None, error))
        return pages.see(f"{pages.PATH}/sites/{location.id}/reviews")


@dataclass(frozen=True, slots=True)
class _Refused:
    """A reply that was not accepted: to which review, what was typed, and why."""

    review_id: str
    typed: str | None
    error: ServiceError


async def _page(here: Visit, location: Reached, refused: _Refused | None = None) -> Response:
    """The reviews; after a refusal with what was typed and what is wrong with it.

    The review that a reply was for may be on another page, gone, or out of reach with the provider. The form then
    is shown again without the others, so that no text is lost.
    """
    try:
        found, trouble = await _listed(here, location), None
    except ServiceError as error:
        if error.kind.status < 500 and refused is None:
            raise
        found, trouble = {"reviews": [], "nextPageToken": ""}, error
    names = [review["name"].rpartition("/")[2] for review in found["reviews"]]
    return pages.page(
        "reviews.html",
        200 if refused is None else refused.error.kind.status,
        visit=here,
        location=location,
        title=await here.title(location),
        found=found,
        trouble=trouble,
        refused=refused,
        is_listed=refused is not None and refused.review_id in names,
        problems=problems.NONE if refused is None else problems.of(refused.error, f"{refused.review_id}-"),
    )


async def _listed(here: Visit, location: Reached) -> dict[str, Any]:
    asked = {"locationId": location.name, "pageSize": "25", "pageToken": request.args.get("page", "")}
    query = checked(ReviewListQuery, asked, "query")
    found: dict[str, Any] = json.loads((await reviews.list_page(here.services, location, query)).data)
    return found


def _ident(given: str, location: Reached) -> str:
    try:
        return review_id(given, location.name)
    except ValueError as error:
        raise invalid("path", "reviewId", str(error)) from None
