"""The first page: all locations with their keys, those with problems first. It updates itself."""

import hashlib

from quart import Blueprint, Response, request

from profilesvc.dashboard import pages
from profilesvc.dashboard.visits import Visit, view
from profilesvc.services import overview, provider_connections
from profilesvc.services.overview import SiteView

blueprint = Blueprint("sites", __name__)


@view(blueprint, "")
async def show(visit: Visit) -> Response:
    sites = await overview.sites(visit.services, visit.caller)
    name, email = await overview.person(visit.services, visit.caller)
    logins = (await provider_connections.list_all(visit.services, visit.caller)).connections
    ended = [login for login in logins if login.state == "reauth_required"]
    return pages.page("sites.html", visit=visit, sites=sites, seen=digest(sites), email=email, name=name, ended=ended)


@view(blueprint, "/sites/live")
async def live(visit: Visit) -> Response:
    """Return the current list, or nothing if the page already shows it."""
    sites = await overview.sites(visit.services, visit.caller)
    seen = digest(sites)
    if request.args.get("seen") == seen:
        return Response(status=204, headers={"Cache-Control": "no-store"})
    return pages.page("_sites.html", visit=visit, sites=sites, seen=seen)


def digest(sites: list[SiteView]) -> str:
    """Return a fingerprint of a list of sites, so that an unchanged list is not sent again."""
    shown = [
        (
            *(site.id, site.title, site.problems, site.drift, site.rejected, site.processing, site.row.sync_enabled),
            [(key.state, key.hint, tuple(key.row)) for key in site.keys],
        )
        for site in sites
    ]
    return hashlib.sha256(repr(shown).encode()).hexdigest()[:16]
