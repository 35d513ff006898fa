"""The pattern library, for developers: every component of the dashboard, drawn by the macros that the pages use."""

from quart import Blueprint, Response

from profilesvc.contract.errors import NOT_FOUND
from profilesvc.dashboard import charts, pages
from profilesvc.dashboard.listing import Listing, page_of
from profilesvc.dashboard.problems import Problem, Problems
from profilesvc.dashboard.sites.listing import Bar
from profilesvc.dashboard.visits import Visit, view
from profilesvc.dashboard.words import words
from profilesvc.domain.errors import ServiceError

blueprint = Blueprint("patterns", __name__)
_COUNTS = [*([40] * 9), 38, 12, 25, 39, *([40] * 10), 41, 42, 42, 0, 42, 42, 17]


@view(blueprint, "/patterns")
async def show(visit: Visit) -> Response:
    """Show the components, with examples that are no data of the user."""
    if visit.services.settings.production:
        raise ServiceError(NOT_FOUND, "Page not found.")
    examples = Problems([Problem("name", "Name: is required"), Problem("url", "URL: must start with https://")])
    return pages.page(
        "patterns.html",
        visit=visit,
        problems=examples,
        chart=charts.days(_COUNTS, 42, visit.now),
        bar=Bar(87.5, {"online": "M0 0h105v9H0z", "offline": "M105 0h15v9H105z"}),
        listing=Listing(f"{pages.PATH}/patterns", {"page": "2"}),
        page=page_of(range(140), Listing(f"{pages.PATH}/patterns", {"page": "2"})),
        states=words.STATES,
    )
