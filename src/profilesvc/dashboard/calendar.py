"""The calendars of a site and of all sites: scheduled and published posts of a month, by days of a time zone."""

import contextlib
import json
from calendar import Calendar
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from typing import Any

from quart import Blueprint, Response, request

from profilesvc.contract.json import JsonObject
from profilesvc.contract.zones import zone_of
from profilesvc.dashboard import hours, pages, post_words, words
from profilesvc.dashboard.alert_form import zone_or_utc
from profilesvc.dashboard.listing import Listing, matches, page_of
from profilesvc.dashboard.visits import Visit, view
from profilesvc.domain.errors import invalid
from profilesvc.language.texts import _
from profilesvc.services import drafts, overview
from profilesvc.services.drafts import Draft
from profilesvc.services.overview import SiteView

_PARAMETERS = ("q", "business", "month", "zone", "day", "page")
_MOST_OF_DAY = 5  # of a day, after which there is a link to the rest


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


Entries = dict[date, list[JsonObject]]


@view(blueprint, "/sites/<location:locationId>/calendar")
async def show(visit: Visit, locationId: str) -> Response:
    location = await visit.location(locationId)
    month, entries = Month.asked(visit), Entries()
    for created_at, post in await drafts.published(visit.services, location, month.start, month.end):
        _add(entries, month, created_at, _state(post), post)
    for draft in await drafts.listing(visit.services, location):
        _add_draft(entries, month, draft)
    return _page("calendar.html", visit, month, entries, location=location, title=await visit.title(location))


@view(blueprint, "/calendar")
async def of_all(visit: Visit) -> Response:
    """Show the posts of all sites, or of those of a business or with a text in their name."""
    month, entries = Month.asked(visit), Entries()
    listing = Listing.of(f"{pages.PATH}/calendar", request.args, dict.fromkeys(_PARAMETERS))
    every = await overview.sites(visit.services, visit.caller)
    sites = {site.row.name: site for site in every if _is_wanted(site, listing)}
    for name, created_at, post in await drafts.published_at_all(visit.services, visit.caller, month.start, month.end):
        if name in sites:
            _add(entries, month, created_at, _state(post), post, sites[name])
    for draft in await drafts.listing_of_all(visit.services, visit.caller):
        if draft.location_name in sites:
            _add_draft(entries, month, draft, sites[draft.location_name])
    day = _day(listing.get("day"))
    return _page(
        "calendar_of_all.html",
        visit,
        month,
        entries,
        listing=listing,
        most=_MOST_OF_DAY,
        day=day,
        shown=None if day is None else page_of(entries.get(day, []), listing),
        businesses=sorted({site.row.business_name for site in every if site.row.business_name}),
    )


def _is_wanted(site: SiteView, listing: Listing) -> bool:
    business = listing.get("business")
    return matches(listing.get("q"), site.title) and (not business or site.row.business_name == business)


def _page(template: str, visit: Visit, month: Month, entries: Entries, **shown: Any) -> Response:
    is_chosen = "zone" in request.args
    return pages.page(
        template, visit=visit, month=month, is_chosen=is_chosen, weekdays=hours.DAYS, entries=entries, **shown
    )


def _day(text: str) -> date | None:
    with contextlib.suppress(ValueError):
        return date.fromisoformat(text)
    return None


def _state(post: JsonObject) -> str:
    return words.POST_STATES.get(post.get("state", "")) or _("Post")


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


def _add_draft(entries: Entries, month: Month, draft: Draft, site: SiteView | None = None) -> None:
    if draft.due_at is not None and month.start <= draft.due_at < month.end:
        state = post_words.DRAFT_STATES[draft.state]
        _add(entries, month, draft.due_at, state, json.loads(draft.document), site)


def _add(entries: Entries, month: Month, at: int, state: str, post: JsonObject, site: SiteView | None = None) -> None:
    local = datetime.fromtimestamp(at / 1000, zone_of(month.zone))
    text = post.get("event", {}).get("title") or post.get("summary") or _("Without a text")
    entry = {"time": f"{local:%H:%M}", "state": state, "text": text[:80], "site": site}
    entries.setdefault(local.date(), []).append(entry)
    entries[local.date()].sort(key=lambda one: str(one["time"]))
