"""The language of the reader: selected by a form on each page, else the browser's."""

from quart import Blueprint, Response, request

from profilesvc.api import html_forms
from profilesvc.api.request import current_services, quart_request
from profilesvc.dashboard import cookies, pages
from profilesvc.dashboard.returning import local
from profilesvc.dashboard.visits import counted_by_address, require_own_origin
from profilesvc.domain.request import current_request
from profilesvc.language.choice import LANGUAGES, chosen

_YEAR = 365 * 24 * 60 * 60  # in seconds

blueprint = Blueprint("reader", __name__)


async def recognise() -> None:
    """Set the language of the request. A part of a page is in the language of its page, which live.js sends."""
    current_request().language = chosen(
        request.headers.get(pages.FRAGMENT),
        cookies.get(current_services(), cookies.LANGUAGE),
        accepted=request.headers.get("Accept-Language", ""),
    )


@blueprint.post("/language")
async def select() -> Response:
    """Store the selected language in a cookie, because pages without a session have one too."""
    services = await counted_by_address()
    require_own_origin(services)
    await html_forms.read(quart_request(), html_forms.BUTTONS)
    form = await request.form
    response = pages.redirect(local(form.get("next", "")))
    if form.get("language") in LANGUAGES:
        cookies.put(response, services, cookies.LANGUAGE, form["language"], _YEAR)
    return response
