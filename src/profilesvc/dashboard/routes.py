"""The dashboard's blueprint: all of its pages, its files, and what every answer carries."""

from quart import Blueprint, Response, request

from profilesvc.contract.errors import NOT_FOUND
from profilesvc.dashboard import badge, keys, pages, plan, posts, reviews, session, site, sites, visits
from profilesvc.domain.errors import ServiceError

_FILES_SECONDS = 3600


def blueprint() -> Blueprint:
    """Everything under /dashboard."""
    made = Blueprint("dashboard", __name__, url_prefix=pages.PATH, static_folder="static")
    for part in (session, sites, site, posts, reviews, keys, plan, badge):
        part.register(made)
    made.register_error_handler(Exception, pages.failed)
    made.after_request(pages.guard)
    made.after_request(_keep_files)

    @made.get("/")
    async def home() -> Response:
        return pages.see(pages.PATH)

    @made.get("/<path:missing>")
    async def nothing(missing: str) -> Response:
        await visits.recognise()
        raise ServiceError(NOT_FOUND, "There is no such page.")

    return made


async def _keep_files(response: Response) -> Response:
    """The files of a version stay the same; pages say themselves that nobody may keep them."""
    if request.endpoint == "dashboard.static" and response.status_code == 200:
        response.headers["Cache-Control"] = f"public, max-age={_FILES_SECONDS}"
    return response
