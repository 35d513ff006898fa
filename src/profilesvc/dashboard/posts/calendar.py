"""The calendars of a site and of all sites: scheduled and published posts of a month, by days of a time zone."""

import contextlib
from calendar import Calendar
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date, datetime, timedelta, tzinfo
from typing import Any

from quart import Blueprint, Response, request

from profilesvc.contract.json import JsonObject
from profilesvc.contract.zones import zone_of
from profilesvc.dashboard import pages
from profilesvc.dashboard.listing import Listing, matches, page_of
from profilesvc.dashboard.notify.alert_form import zone_or_utc
from profilesvc.dashboard.visits import Visit, view
from profilesvc.dashboard.words import posts as post_words
from profilesvc.dashboard.words import words
from profilesvc.domain.errors import invalid
from profilesvc.domain.hours import DAYS
from profilesvc.language.texts import _
from profilesvc.services.drafts import drafts
from profilesvc.services.drafts.drafts import Place
from profilesvc.services.insight import overview
from profilesvc.services.insight.overview import SiteView

_PARAMETERS = ("q", "business", "month", "zone", "day", "page")
_MOST_OF_DAY = 5  # posts, after which there is a link to the rest
_LONGEST = 80  # characters of a post


blueprint = Blueprint("calendar", __name__)


@dataclass(frozen=True, slots=True)
class Month:
    """A month in a time zone; its instants are in milliseconds."""

    first: date
    zone: str

    @classmethod
    def asked(cls, visit: Visit) -> "Month":
        """Return the month of the request, by default the current one."""
        zone = zone_or_utc(request.args.get("zone", ""))
        return cls(
            _month(request.args.get("month", ""), datetime.fromtimestamp(visit.now / 1000, zone_of(zone)).date()), zone
        )

    @property
    def before(self) -> date:
        return self.first - timedelta(days=1)

    @property
    def after(self) -> date:
        return (self.first + timedelta(days=31)).replace(day=1)

    @property
    def start(self) -> int:
        return _instant(self.first, self.zone)

    @property
    def end(self) -> int:
        return _instant(self.after, self.zone)

    @property
    def weeks(self) -> list[list[date]]:
        return Calendar().monthdatescalendar(self.first.year, self.first.month)


Days = dict[date, list[Place]]


@view(blueprint, "/sites/<location:locationId>/calendar")
async def show(visit: Visit, locationId: str) -> Response:
    location = await visit.location(locationId)
    month = Month.asked(visit)
    places = await drafts.places(visit.services, location.owner_id, location.name, month.start, month.end)
    title = await visit.title(location)
    listing = Listing.of(f"{pages.PATH}/sites/{location.id}/calendar", request.args, dict.fromkeys(_PARAMETERS))
    return await _page("calendar.html", visit, month, places, {}, listing=listing, location=location, title=title)


@view(blueprint, "/calendar")
async def all_sites(visit: Visit) -> Response:
    """Show the posts of all sites, or of those of a business or with a text in their name."""
    month = Month.asked(visit)
    listing = Listing.of(f"{pages.PATH}/calendar", request.args, dict.fromkeys(_PARAMETERS))
    every = await overview.sites(visit.services, visit.caller)
    wanted, business = listing.get("q"), listing.get("business")
    of_business = [site for site in every if business in ("", site.row.business_name)]
    sites = {site.row.name: site for site in of_business if matches(wanted, site.title)}
    every_place = await drafts.places(visit.services, visit.caller.owner_id, None, month.start, month.end)
    places = [place for place in every_place if place.location_name in sites]
    businesses = sorted({site.row.business_name for site in every if site.row.business_name})
    return await _page("calendar_of_all.html", visit, month, places, sites, listing=listing, businesses=businesses)


async def _page(
    template: str,
    visit: Visit,
    month: Month,
    places: list[Place],
    sites: Mapping[str, SiteView],
    *,
    listing: Listing,
    **values: Any,
) -> Response:
    """Return a calendar. Only the posts that it shows are read: a month may have thousands."""
    days, zone = Days(), zone_of(month.zone)
    day = _day(listing.get("day"))
    for place in places:
        days.setdefault(datetime.fromtimestamp(place.at / 1000, zone).date(), []).append(place)
    of_day = None if day is None else page_of(days.get(day, []), listing)
    wanted = {place for of_a_day in days.values() for place in of_a_day[:_MOST_OF_DAY]}
    wanted |= set() if of_day is None else set(of_day.rows)
    contents = await drafts.contents(visit.services, visit.caller.owner_id, list(wanted))
    entries = {place: _entry(place, post, zone, sites.get(place.location_name)) for place, post in contents.items()}
    return pages.page(
        template,
        visit=visit,
        month=month,
        is_chosen="zone" in request.args,
        weekdays=DAYS,
        days=days,
        entries=entries,
        most=_MOST_OF_DAY,
        day=day,
        of_day=of_day,
        listing=listing,
        **values,
    )


def _day(text: str) -> date | None:
    with contextlib.suppress(ValueError):
        return date.fromisoformat(text)
    return None


def _month(text: str, today: date) -> date:
    """Return the first day of the month."""
    if not text:
        return today.replace(day=1)
    try:
        first = date.fromisoformat(f"{text}-01")
    except ValueError:
        first = date.min
    if not 2000 <= first.year <= 2100:
        raise invalid("query", "month", "must be a month such as 2027-01")
    return first


def _instant(day: date, zone: str) -> int:
    return round(datetime(day.year, day.month, day.day, tzinfo=zone_of(zone)).timestamp() * 1000)


def _entry(place: Place, post: JsonObject, zone: tzinfo, site: SiteView | None) -> JsonObject:
    local = datetime.fromtimestamp(place.at / 1000, zone)
    if place.draft is None:
        state = words.POST_STATES.get(post.get("state", "")) or _("Post")
    else:
        state = post_words.DRAFT_STATES[place.draft.state]
    text = post_words.start_of(post, _LONGEST) or _("Without a text")
    return {"time": f"{local:%H:%M}", "state": state, "text": text, "site": site}
