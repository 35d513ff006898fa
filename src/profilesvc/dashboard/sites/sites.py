"""The first page: numbers, and the list of sites with those that need attention first. It updates itself."""

from collections.abc import AsyncIterator

from quart import Blueprint, Response, request

from profilesvc.dashboard import charts, exports, pages
from profilesvc.dashboard.sites import listing as site_list
from profilesvc.dashboard.visits import Visit, view
from profilesvc.dashboard.words import words
from profilesvc.domain.heartbeats import Period
from profilesvc.domain.time import iso
from profilesvc.services.insight import overview
from profilesvc.services.insight.overview import SiteView
from profilesvc.services.logins import logins

blueprint = Blueprint("sites", __name__)


@view(blueprint, "")
async def show(visit: Visit) -> Response:
    listing, sites = site_list.listing_of(request.args), await overview.sites(visit.services, visit.caller)
    values = await site_list.page_values(visit, listing, sites)
    days = [] if listing.is_filtered else await overview.connected_days(visit.services, visit.caller, sites)
    chart = charts.days(days, sum(bool(site.keys) for site in sites), visit.now)
    name, email = await overview.person(visit.services, visit.caller)
    rows = (await logins.list_all(visit.services, visit.caller)).connections
    ended = [login for login in rows if login.state == "reauth_required"]
    return pages.page(
        "sites.html", visit=visit, is_part=False, chart=chart, email=email, name=name, ended=ended, **values
    )


@view(blueprint, "/sites/live")
async def live(visit: Visit) -> Response:
    """Return the current list without the rows that the page already shows, or nothing if nothing has changed."""
    sites = await overview.sites(visit.services, visit.caller)
    values = await site_list.page_values(visit, site_list.listing_of(request.args), sites, request.args.get("seen", ""))
    if values["is_same"]:
        return Response(status=204, headers={"Cache-Control": "no-store"})
    return pages.page("_sites.html", visit=visit, is_part=True, **values)


@view(blueprint, "/sites.csv")
async def export(visit: Visit) -> Response:
    """Return the sites that the list finds, on all its pages."""
    listing = site_list.listing_of(request.args)

    async def rows(visit: Visit) -> AsyncIterator[list[tuple[object, ...]]]:
        sites = await overview.sites(visit.services, visit.caller)
        matches = site_list.search(sites, listing)
        histories = await overview.histories(visit.services, visit.caller, matches)
        yield [_row(site, histories.get(site.id, [])) for site in matches]

    return await exports.table(visit, "sites", _HEADER, rows)


_HEADER = (
    *("Name", "Location", "Business", "State", "Online in 30 days (%)", "Last heartbeat", "Keys", "Sync"),
    *("Verified", "Fields that differ", "Rejected posts", "Read from the provider", "Problems"),
)


def _row(site: SiteView, periods: list[Period]) -> tuple[object, ...]:
    beats = [key.row.last_heartbeat_at for key in site.keys if key.row.last_heartbeat_at is not None]
    return (
        *(site.title, site.row.name, site.row.business_name, words.STATES[site_list.state_of(site)]),
        *(site_list.percent(periods), iso(max(beats)) if beats else "", ", ".join(key.row.name for key in site.keys)),
        *("on" if site.row.sync_enabled else "off", "yes" if site.row.is_verified else "no"),
        *(len(site.drift), site.rejected, iso(site.checked_at), "; ".join(site_list.tags(site))),
    )
