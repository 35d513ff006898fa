"""The page of a location: connections over 30 days, comparison with the provider, and syncs."""

import json
from collections.abc import Awaitable

from quart import Blueprint, Response, request

from profilesvc.contract.connection import ConnectionStatusWithHistory, StatePeriod
from profilesvc.contract.json import JsonObject
from profilesvc.contract.sync import SyncHistoryQuery, SyncPreview
from profilesvc.dashboard import pages, problems
from profilesvc.dashboard.sites import changes
from profilesvc.dashboard.visits import Visit, form_key, view
from profilesvc.domain.errors import ServiceError, invalid
from profilesvc.domain.heartbeats import HISTORY
from profilesvc.domain.posts import can_have_posts
from profilesvc.domain.time import parse_iso
from profilesvc.domain.verdicts import verdicts
from profilesvc.services import comparison, events, heartbeats, locations, sync
from profilesvc.services.context import AllowedLocation
from profilesvc.services.insight import overview
from profilesvc.services.insight.overview import KeyView
from profilesvc.tokens.signer import random_id

_WIDTH = 1000
_LARGEST = 2**63 - 1
_HISTORY = 15
_NEWEST, _PAGE = 10, 50  # events on the page of the location, and on a page of their own


blueprint = Blueprint("site", __name__)


@view(blueprint, "/sites/<location:locationId>")
async def show(visit: Visit, locationId: str) -> Response:
    return await show_page(visit, await visit.location(locationId))


@view(blueprint, "/sites/<location:locationId>/live")
async def live(visit: Visit, locationId: str) -> Response:
    """Return the current connections of the location's keys."""
    location = await visit.location(locationId)
    return pages.page("_connection.html", visit=visit, location=location, lines=await _lines(visit, location))


@view(blueprint, "/sites/<location:locationId>/events")
async def log(visit: Visit, locationId: str) -> Response:
    location = await visit.location(locationId)
    before = request.args.get("before", type=int)
    if before is not None and not 0 < before <= _LARGEST:
        raise invalid("query", "before", "must be that of the link to older events")
    rows, older = await events.location_events(visit.services, location, before, _PAGE)
    return pages.page(
        "events.html",
        visit=visit,
        location=location,
        title=await visit.title(location),
        events=rows,
        older=older,
        is_first=before is None,
        names=await _names(visit),
    )


@view(blueprint, "/sites/<location:locationId>/switch", "POST")
async def switch(visit: Visit, locationId: str) -> Response:
    location, enabled = await visit.location(locationId), (await request.form).get("sync") == "on"
    return await _done(
        visit, location, locations.switch_sync(visit.services, location, enabled), "on" if enabled else "off"
    )


@view(blueprint, "/sites/<location:locationId>/verification", "POST")
async def verification(visit: Visit, locationId: str) -> Response:
    location = await visit.location(locationId)
    return await _done(visit, location, locations.refresh_verification(visit.services, location), "verified")


@view(blueprint, "/sites/<location:locationId>/sync", "POST")
async def push(visit: Visit, locationId: str) -> Response:
    """Send the last profile to the provider, or show what that would change."""
    location, form = await visit.location(locationId), await request.form
    try:
        source = (await comparison.compare(visit.services, location)).source
        if form.get("intent") == "preview":
            return await show_page(visit, location, await comparison.preview(visit.services, location, source))
        once = form_key(form, ["dashboard", location.name])
        await sync.run(visit.services, visit.caller, location, source, once)
    except ServiceError as error:
        return await show_page(visit, location, error=error)
    return pages.redirect(f"{pages.PATH}/sites/{location.id}#comparison", "synced")


async def _done(visit: Visit, location: AllowedLocation, action: Awaitable[object], done: str) -> Response:
    """Run the action, then redirect to the page, or show the page with the error."""
    try:
        await action
    except ServiceError as error:
        return await show_page(visit, location, error=error)
    return pages.redirect(f"{pages.PATH}/sites/{location.id}", done)


async def show_page(
    visit: Visit, location: AllowedLocation, preview: SyncPreview | None = None, error: ServiceError | None = None
) -> Response:
    """Return the page of a site, with the preview of a sync or the problems of an error."""
    compared, changed = None, changes.NO_CHANGES
    failure: ServiceError | None = None
    try:
        await locations.get(visit.services, location)  # updates an old cached profile from the provider
        compared = await comparison.compare(visit.services, location)
        changed = await changes.find(visit, location, compared.provider)
    except ServiceError as unavailable:  # the rest of the page can be shown
        failure = unavailable
    row = await locations.load(visit.services, location)
    newest, older = await events.location_events(visit.services, location, None, _NEWEST)
    return pages.page(
        "site.html",
        can_have_posts=can_have_posts(json.loads(row.profile)),
        visit=visit,
        problems=problems.from_error(error),
        location=location,
        title=await visit.title(location),
        row=row,
        lines=await _lines(visit, location),
        events=newest,
        older=older,
        names=await _names(visit),
        readings=verdicts(compared) if compared else [],
        edits={one.field: one.editStatus for one in compared.differences} if compared else {},
        changes=changed,
        failure=failure,
        preview=preview,
        once=random_id(visit.services.entropy),
        history=(await sync.history(visit.services, location, SyncHistoryQuery(limit=_HISTORY))).history,
    )


async def _lines(visit: Visit, location: AllowedLocation) -> list[tuple[KeyView, list[JsonObject]]]:
    """Return each key of the location, with the blocks of its timeline of 30 days."""
    rows = []
    for key in await overview.keys_of(visit.services, visit.caller):
        if key.row.location_name == location.name:
            status = await heartbeats.status(visit.services, visit.caller, key.row.client_id, history=True)
            assert isinstance(status, ConnectionStatusWithHistory), "it was requested with its history"
            rows.append((key, [_block(period, visit.now) for period in status.history]))
    return rows


async def _names(visit: Visit) -> dict[str, str]:
    """Return the names of the user's live keys by their client ids."""
    return {key.row.client_id: key.row.name for key in await overview.keys_of(visit.services, visit.caller)}


def _block(period: StatePeriod, now: int) -> JsonObject:
    start, end = (max(parse_iso(at) - (now - HISTORY), 0) * _WIDTH / HISTORY for at in (period.from_, period.to))
    return {"state": period.state, "x": round(start, 1), "width": round(max(end - start, 1), 1), "period": period}
