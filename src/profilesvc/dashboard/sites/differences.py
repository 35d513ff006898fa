"""The fields of a site that differ from the provider's, and what its user does about each."""

from quart import Blueprint, Response, request

from profilesvc.dashboard import pages
from profilesvc.dashboard.sites import site
from profilesvc.dashboard.visits import Visit, form_key, view
from profilesvc.domain import profiles
from profilesvc.domain.errors import ServiceError, invalid
from profilesvc.services import comparison, sync
from profilesvc.services.feed import updates
from profilesvc.services.feed.updates import Decision

blueprint = Blueprint("differences", __name__)
_DECISIONS: dict[str, Decision] = {"accept": "accept", "reject": "reject"}


@view(blueprint, "/sites/<location:locationId>/updates", "POST")
async def settle(visit: Visit, locationId: str) -> Response:
    """Accept or reject what the provider has changed."""
    location, form = await visit.location(locationId), await request.form
    decision, mask = _DECISIONS.get(form.get("decision", "")), form.get("mask", "")
    try:
        if decision is None:
            raise invalid("body", "decision", "must be accept or reject")
        once = form_key(form, ["dashboard", location.name, decision, mask])
        await updates.settle(visit.services, visit.caller, location, (decision, mask), once)
    except ServiceError as error:
        return await site.show_page(visit, location, error=error)
    return pages.redirect(f"{pages.PATH}/sites/{location.id}#comparison", f"{decision}ed")


@view(blueprint, "/sites/<location:locationId>/differences", "POST")
async def settle_difference(visit: Visit, locationId: str) -> Response:
    """Send the desired value of one field to the provider, or make the provider's value the desired one."""
    location, form = await visit.location(locationId), await request.form
    path, choice = form.get("field", ""), form.get("choice", "")
    try:
        if choice not in ("ours", "theirs"):
            raise invalid("body", "choice", "must be ours or theirs")
        compared = await comparison.compare(visit.services, location)
        if path in {difference.field for difference in compared.differences}:  # else someone has settled it
            values = compared.source if choice == "ours" else compared.provider
            once = form_key(form, ["dashboard", location.name, path, choice])
            body = profiles.only(values, path)
            await sync.run(visit.services, visit.caller, location, body, once)
    except ServiceError as error:
        return await site.show_page(visit, location, error=error)
    return pages.redirect(f"{pages.PATH}/sites/{location.id}#comparison", choice)
