"""Plan and usage: what is used of what, and what a larger plan would bring."""

from quart import Blueprint, Response

from profilesvc.dashboard import pages
from profilesvc.dashboard.visits import Visit, view
from profilesvc.services import overview


def register(blueprint: Blueprint) -> None:
    """Declare it."""

    @view(blueprint, "/plan")
    async def show(here: Visit) -> Response:
        used = await overview.usage(here.services, here.caller)
        return pages.page("plan.html", visit=here, used=used, upgrade_url=here.services.settings.upgrade_url)
