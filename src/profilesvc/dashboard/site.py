"""One location: the connection of its keys over 30 days, what differs at the provider, and syncs."""

from collections.abc import Awaitable
from typing import Any

from quart import Blueprint, Response, request

from profilesvc.api.parsing import idempotency_key
from profilesvc.contract.sync import SyncComparison, SyncHistoryQuery
from profilesvc.dashboard import pages, problems
from profilesvc.dashboard.visits import Visit, view
from profilesvc.domain.connection import HISTORY
from profilesvc.domain.errors import ServiceError
from profilesvc.domain.readings import reading
from profilesvc.domain.world import parse_iso
from profilesvc.services import comparison, connection, locations, overview, sync
from profilesvc.services.context import Reached
from profilesvc.tokens.signer import random_id

_WIDTH = 1000
_HISTORY = 15


def register(blueprint: Blueprint) -> None:
    """Declare it."""

    @view(blueprint, "/sites/<location:locationId>")
    async def show(here: Visit, locationId: str) -> Response:
        return await _page(here, await here.reach(locationId))

    @view(blueprint, "/sites/<location:locationId>/live")
    async def live(here: Visit, locationId: str) -> Response:
        """Return the current connection states of its keys."""
        location = await here.reach(locationId)
        return pages.page("_connection.html", visit=here, location=location, lines=await _lines(here, location))

    @view(blueprint, "/sites/<location:locationId>/switch", "POST")
    async def switch(here: Visit, locationId: str) -> Response:
        location, wanted = await here.reach(locationId), (await request.form).get("sync") == "on"
        return await _done(here, location, locations.switch_sync(here.services, location, wanted))

    @view(blueprint, "/sites/<location:locationId>/verification", "POST")
    async def verification(here: Visit, locationId: str) -> Response:
        location = await here.reach(locationId)
        return await _done(here, location, locations.refresh_verification(here.services, location))

    @view(blueprint, "/sites/<location:locationId>/sync", "POST")
    async def push(here: Visit, locationId: str) -> Response:
        """Send what was asked for last to the provider, or say what that would change."""
        location, form = await here.reach(locationId), await request.form
        try:
            source = (await comparison.compare(here.services, location)).source
            if form.get("intent") == "preview":
                return await _page(here, location, await comparison.preview(here.services, location, source))
            once = idempotency_key([[form.get("once", "")]], ["dashboard", location.name])
            await sync.run(here.services, here.caller, location, source, once)
        except ServiceError as error:
            return await _page(here, location, error=error)
        return pages.see(f"{pages.PATH}/sites/{location.id}#comparison")


async def _done(here: Visit, location: Reached, action: Awaitable[Any]) -> Response:
    """The page again, after the action or with what was wrong about it."""
    try:
        await action
    except ServiceError as error:
        return await _page(here, location, error=error)
    return pages.see(f"{pages.PATH}/sites/{location.id}")


async def _page(here: Visit, location: Reached, preview: Any = None, error: ServiceError | None = None) -> Response:
    compared: SyncComparison | None = None
    trouble: ServiceError | None = None
    try:
        await locations.get(here.services, location)  # reads the provider into the mirror when that is old
        compared = await comparison.compare(here.services, location)
    except ServiceError as away:  # everything else can still be shown
        trouble = away
    row = await locations.load(here.services, location)
    return pages.page(
        "site.html",
        200 if error is None else error.kind.status,
        visit=here,
        problems=problems.NONE if error is None else problems.of(error),
        location=location,
        title=await here.title(location),
        row=row,
        lines=await _lines(here, location),
        readings=reading(compared) if compared else [],
        trouble=trouble,
        preview=preview,
        once=random_id(here.services.entropy),
        history=(await sync.history(here.services, location, SyncHistoryQuery(limit=_HISTORY))).history,
    )


async def _lines(here: Visit, location: Reached) -> list[tuple[Any, list[dict[str, Any]]]]:
    """Each key of the location with its 30 days as a row of blocks: state, place and width of 1000, from, to."""
    found = []
    for key in await overview.keys_of(here.services, here.caller):
        if key.row.location_name == location.name:
            status: Any = await connection.status(here.services, here.caller, key.row.client_id, history=True)
            found.append((key, [_block(period, here.now) for period in status.history]))
    return found


def _block(period: Any, now: int) -> dict[str, Any]:
    begin, end = (max(parse_iso(at) - (now - HISTORY), 0) * _WIDTH / HISTORY for at in (period.from_, period.to))
    return {"state": period.state, "x": round(begin, 1), "width": round(max(end - begin, 1), 1), "period": period}
