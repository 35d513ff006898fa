"""The guides at `/guides/`: the static site that `make docs` builds, if this installation has it."""

from quart import Blueprint, Response, redirect, send_from_directory

from profilesvc.api.documents import PUBLIC
from profilesvc.api.request import current_services
from profilesvc.contract.errors import NOT_FOUND
from profilesvc.domain.errors import ServiceError

blueprint = Blueprint("guides", __name__)
_START = "/guides/docs/index.html"
# The site has scripts in its pages. It must not load anything from other origins.
_POLICY = "default-src 'self' 'unsafe-inline' data:; frame-ancestors 'none'"


@blueprint.get("/guides")
@blueprint.get("/guides/")
async def start() -> Response:
    """Redirect to the first page."""
    return redirect(_START)  # type: ignore[return-value]


@blueprint.get("/guides/<path:name>")
async def page(name: str) -> Response:
    """Return a file of the site."""
    folder = current_services().settings.effective_guides_folder
    if folder is None:
        raise ServiceError(NOT_FOUND, "The guides are not on this server. Build them with `make docs`.")
    response = await send_from_directory(folder, name)
    response.headers.update({**PUBLIC, "Content-Security-Policy": _POLICY})
    return response
