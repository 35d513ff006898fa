"""The audit trail of the account: searched by kind, key, site and time, and as a file."""

import contextlib
from collections.abc import AsyncIterator, Mapping
from datetime import UTC, datetime, timedelta
from typing import get_args
from zoneinfo import ZoneInfo

from quart import Blueprint, Response, request

from profilesvc.api.parsing import checked
from profilesvc.contract.audit import AuditEntry, AuditQuery, Event, Wanted
from profilesvc.contract.keys import KeyEntry
from profilesvc.contract.zones import UTC_NAME, zone_of
from profilesvc.dashboard import exports, pages
from profilesvc.dashboard.listing import Choices, Listing, matches
from profilesvc.dashboard.visits import Visit, view
from profilesvc.dashboard.words import words
from profilesvc.language.texts import N_, gettext
from profilesvc.services import audit
from profilesvc.services.insight import overview

blueprint = Blueprint("audit", __name__)

PATH = f"{pages.PATH}/audit"
# The kinds of events, with the start of their names.
KINDS = {
    "keys": (N_("Keys"), "key."),
    "tokens": (N_("Tokens"), "token."),
    "secrets": (N_("Wrong secrets"), "auth."),
    "sign-ins": (N_("Sign-ins"), "user."),
    "alerts": (N_("Alerts"), "alert."),
    "webhooks": (N_("Webhooks"), "webhook."),
    "logins": (N_("Logins at the provider"), "provider."),
}
CHOICES: Choices = {"kind": tuple(KINDS), "key": None, "site": None, "from": None, "to": None, "zone": None}
MOST = 10_000  # events of a file
_SIZE, _PIECE = 50, 1_000
_HEADER = ("Time", "Last time", "Times", "Event", "Key", "Client id", "Site", "By", "Network", "Request id")


@view(blueprint, "/audit")
async def show(visit: Visit) -> Response:
    listing = Listing.of(PATH, request.args, CHOICES)
    before = checked(AuditQuery, {"before": request.args.get("before") or None}, "query").before
    names = await _names(visit)
    events, older = await audit.search(visit.services, visit.caller.owner_id, _wanted(listing, names), before, _SIZE)
    return pages.page(
        "audit.html",
        visit=visit,
        listing=listing,
        events=events,
        keys={entry.client_id: entry for entry, _ in names},
        titles={entry.client_id: title for entry, title in names},
        older=listing.link(before=older) if older else "",
        is_first=before is None,
        kinds={name: gettext(label) for name, (label, _) in KINDS.items()},
        zone=_zone(listing).key,
        most=MOST,
    )


@view(blueprint, "/audit.csv")
async def export(visit: Visit) -> Response:
    """Return the events that the page would show, the newest `MOST`."""
    listing = Listing.of(PATH, request.args, CHOICES)

    async def rows(visit: Visit) -> AsyncIterator[list[tuple[object, ...]]]:
        names = await _names(visit)
        by_id = {entry.client_id: (entry.name, title) for entry, title in names}
        wanted, before = _wanted(listing, names), None
        for _ in range(MOST // _PIECE):
            events, before = await audit.search(visit.services, visit.caller.owner_id, wanted, before, _PIECE)
            yield [_row(event, by_id) for event in events]
            if before is None:
                break

    return await exports.table(visit, "audit", _HEADER, rows)


def _row(event: AuditEntry, names: Mapping[str, tuple[str, str]]) -> tuple[object, ...]:
    name, title = names.get(event.client_id or "", ("", ""))
    last, times = event.details.get("last_at", event.at), event.details.get("count", 1)
    what = words.event(event.event)
    return (event.at, last, times, what, name, event.client_id, title, event.actor, event.ip_prefix, event.request_id)


async def _names(visit: Visit) -> list[tuple[KeyEntry, str]]:
    """Return the user's keys, with the name of the site of each."""
    titles = {choice.name: choice.title for choice in await overview.choices(visit.services, visit.caller)}
    entries = await overview.all_keys(visit.services, visit.caller, ended=True)
    return [(entry, titles.get(entry.assigned_location_id, entry.assigned_location_id)) for entry in entries]


def _wanted(listing: Listing, names: list[tuple[KeyEntry, str]]) -> Wanted:
    """Return what a list searches for. A key and a site are found by parts of their names."""
    events: list[Event] | None = None
    if kind := listing.get("kind"):
        events = [name for name in get_args(Event) if name.startswith(KINDS[kind][1])]
    key, site = listing.get("key"), listing.get("site")
    ids = None
    if key or site:
        ids = [
            entry.id
            for entry, title in names
            if matches(key, entry.name, ids=(entry.client_id,))
            and matches(site, title, ids=(entry.assigned_location_id,))
        ]
    return Wanted(events, ids, _start(listing, "from"), _start(listing, "to", days=1))


def _zone(listing: Listing) -> ZoneInfo:
    """Return the time zone that the browser named, or UTC."""
    return zone_of(listing.get("zone", UTC_NAME))


def _start(listing: Listing, name: str, days: int = 0) -> int | None:
    """Return the start of a day in the zone of the list, or of a later day; None if the day is missing or wrong."""
    with contextlib.suppress(ValueError, OverflowError):
        day = datetime.fromisoformat(listing.get(name)[:10]).replace(tzinfo=_zone(listing)) + timedelta(days=days)
        return int(day.astimezone(UTC).timestamp() * 1000)
    return None
