"""The first page: numbers, and the list of sites with those that need attention first. It updates itself."""

from quart import Blueprint, Response, request

from profilesvc.dashboard import pages, site_list
from profilesvc.dashboard.visits import Visit, view
from profilesvc.services import overview, provider_connections

blueprint = Blueprint("sites", __name__)


@view(blueprint, "")
async def show(visit: Visit) -> Response:
    shown = await site_list.shown(visit, site_list.listing_of(request.args))
    name, email = await overview.person(visit.services, visit.caller)
    logins = (await provider_connections.list_all(visit.services, visit.caller)).connections
    ended = [login for login in logins if login.state == "reauth_required"]
    return pages.page("sites.html", visit=visit, email=email, name=name, ended=ended, **shown)


@view(blueprint, "/sites/live")
async def live(visit: Visit) -> Response:
    """Return the current list without the rows that the page already shows, or nothing if nothing has changed."""
    shown = await site_list.shown(visit, site_list.listing_of(request.args), request.args.get("seen", ""))
    if shown["is_same"]:
        return Response(status=204, headers={"Cache-Control": "no-store"})
    return pages.page("_sites.html", visit=visit, **shown)
