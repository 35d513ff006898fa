"""The page of the plan and its usage."""

from quart import Blueprint, Response

from profilesvc.dashboard import pages
from profilesvc.dashboard.visits import Visit, view
from profilesvc.services.insight import overview

blueprint = Blueprint("plan", __name__)


@view(blueprint, "/plan")
async def show(visit: Visit) -> Response:
    usage = await overview.usage(visit.services, visit.caller)
    return pages.page("plan.html", visit=visit, usage=usage, upgrade_url=visit.services.settings.upgrade_url)
