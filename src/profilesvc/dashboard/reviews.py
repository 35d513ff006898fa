"""A location's reviews with the replies to them, where the plan has them."""

import json

from quart import Blueprint, Response, request

from profilesvc.api.parsing import checked
from profilesvc.contract.common import review_id
from profilesvc.contract.reviews import ReviewListQuery
from profilesvc.dashboard import pages
from profilesvc.dashboard.visits import Visit, view
from profilesvc.domain.errors import invalid
from profilesvc.services import reviews
from profilesvc.services.context import Reached

_SITE = "/sites/<location:locationId>"


def register(blueprint: Blueprint) -> None:
    """Declare them."""

    @view(blueprint, f"{_SITE}/reviews")
    async def show(here: Visit, locationId: str) -> Response:
        location = await here.reach(locationId)
        asked = {"locationId": location.name, "pageSize": "25", "pageToken": request.args.get("page", "")}
        query = checked(ReviewListQuery, asked, "query")
        found = json.loads((await reviews.list_page(here.services, location, query)).data)
        return pages.page("reviews.html", visit=here, location=location, found=found)

    @view(blueprint, f"{_SITE}/reviews/<review:reviewId>/reply", "POST")
    async def reply(here: Visit, locationId: str, reviewId: str) -> Response:
        location, form = await here.reach(locationId), await request.form
        await reviews.reply(
            here.services, location, _ident(reviewId, location), {"comment": form.get("comment", "").strip()}
        )
        return pages.see(f"{pages.PATH}/sites/{location.id}/reviews")

    @view(blueprint, f"{_SITE}/reviews/<review:reviewId>/withdraw", "POST")
    async def withdraw(here: Visit, locationId: str, reviewId: str) -> Response:
        location = await here.reach(locationId)
        await reviews.delete_reply(here.services, location, _ident(reviewId, location))
        return pages.see(f"{pages.PATH}/sites/{location.id}/reviews")


def _ident(given: str, location: Reached) -> str:
    try:
        return review_id(given, location.name)
    except ValueError as error:
        raise invalid("path", "reviewId", str(error)) from None
