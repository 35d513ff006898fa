"""The first page: every location with its keys, what is wrong with them first; it keeps itself up to date."""

import hashlib

from quart import Blueprint, Response, request

from profilesvc.dashboard import pages
from profilesvc.dashboard.visits import Visit, view
from profilesvc.services import overview
from profilesvc.services.overview import SiteView


def register(blueprint: Blueprint) -> None:
    """Declare it."""

    @view(blueprint, "")
    async def show(here: Visit) -> Response:
        found = await overview.sites(here.services, here.caller)
        name, email = await overview.person(here.services, here.caller)
        return pages.page("sites.html", visit=here, sites=found, seen=digest(found), email=email, name=name)

    @view(blueprint, "/sites/live")
    async def live(here: Visit) -> Response:
        """Return the current list, or nothing if the page already shows it."""
        found = await overview.sites(here.services, here.caller)
        seen = digest(found)
        if request.args.get("seen") == seen:
            return Response(status=204, headers={"Cache-Control": "no-store"})
        return pages.page("_sites.html", visit=here, sites=found, seen=seen)


def digest(sites: list[SiteView]) -> str:
    """Return a fingerprint of a list of sites, so that an unchanged page is not sent again."""
    shown = [
        (
            *(site.id, site.title, site.problems, site.drift, site.rejected, site.processing, site.row.sync_enabled),
            [(key.state, key.hint, tuple(key.row)) for key in site.keys],
        )
        for site in sites
    ]
    return hashlib.sha256(repr(shown).encode()).hexdigest()[:16]
