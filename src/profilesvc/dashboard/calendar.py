"""The calendar of a site: its scheduled and published posts of a month, by days of a time zone."""

import json
from calendar import Calendar
from datetime import date, datetime, timedelta
from zoneinfo import ZoneInfo

from quart import Blueprint, Response, request

from profilesvc.contract.json import JsonObject
from profilesvc.dashboard import pages, post_words, words
from profilesvc.dashboard.alert_form import zone_or_utc
from profilesvc.dashboard.visits import Visit, view
from profilesvc.domain.errors import invalid
from profilesvc.services import drafts

_WEEKDAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")


blueprint = Blueprint("calendar", __name__)


@view(blueprint, "/sites/<location:locationId>/calendar")
async def show(visit: Visit, locationId: str) -> Response:
    location = await visit.location(locationId)
    zone = zone_or_utc(request.args.get("zone", ""))
    first = _month(request.args.get("month", ""), datetime.fromtimestamp(visit.now / 1000, ZoneInfo(zone)).date())
    following = (first + timedelta(days=31)).replace(day=1)
    start, end = (_instant(day, zone) for day in (first, following))
    entries: dict[date, list[JsonObject]] = {}
    for created_at, post in await drafts.published(visit.services, location, start, end):
        _add(entries, zone, created_at, words.POST_STATES.get(post.get("state", ""), "Post"), post)
    for draft in await drafts.listing(visit.services, location):
        if draft.due_at is not None and start <= draft.due_at < end:
            _add(entries, zone, draft.due_at, post_words.DRAFT_STATES[draft.state], json.loads(draft.document))
    return pages.page(
        "calendar.html",
        visit=visit,
        location=location,
        title=await visit.title(location),
        zone=zone,
        is_chosen="zone" in request.args,
        first=first,
        before=first - timedelta(days=1),
        after=following,
        weekdays=_WEEKDAYS,
        weeks=Calendar().monthdatescalendar(first.year, first.month),
        entries=entries,
    )


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
    return round(datetime(day.year, day.month, day.day, tzinfo=ZoneInfo(zone)).timestamp() * 1000)


def _add(entries: dict[date, list[JsonObject]], zone: str, at: int, state: str, post: JsonObject) -> None:
    local = datetime.fromtimestamp(at / 1000, ZoneInfo(zone))
    text = post.get("event", {}).get("title") or post.get("summary") or "Without a text"
    entry = {"time": f"{local:%H:%M}", "state": state, "text": text[:80]}
    entries.setdefault(local.date(), []).append(entry)
    entries[local.date()].sort(key=lambda one: str(one["time"]))
