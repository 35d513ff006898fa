"""The pages that delete the user's account: what is deleted and what stays, the question, and the end."""

from quart import Blueprint, Response, request

from profilesvc.api.request import current_services, quart_request, receive
from profilesvc.dashboard import cookies, pages, problems
from profilesvc.dashboard.visits import Visit, view
from profilesvc.domain.errors import ServiceError
from profilesvc.services import deletion

blueprint = Blueprint("deletion", __name__)
_PATH, _DONE = "/account/delete", "/account-deleted"
# The tables that a person knows, with their names, one and several.
_NAMED = {
    "locations": ("site", "sites"),
    "keys": ("API key", "API keys"),
    "posts": ("copy of a post", "copies of posts"),
    "drafts": ("draft", "drafts"),
    "photos": ("photo", "photos"),
    "reply_templates": ("template of a reply", "templates of replies"),
    "provider_connections": ("login at the provider", "logins at the provider"),
    "channels": ("webhook or address for alerts", "webhooks and addresses for alerts"),
    "syncs": ("entry of the sync history", "entries of the sync history"),
}


@view(blueprint, _PATH)
async def show(visit: Visit) -> Response:
    return await _page(visit)


@view(blueprint, _PATH, "POST")
async def delete(visit: Visit) -> Response:
    typed = (await request.form).get("email", "")
    try:
        await deletion.request_own(visit.services, visit.caller, visit.token, typed)
    except ServiceError as error:
        return await _page(visit, typed, error)
    response = pages.redirect(f"{pages.PATH}{_DONE}")
    cookies.remove(response, visit.services, cookies.SESSION)
    return response


@blueprint.get(_DONE)
async def deleted() -> Response:
    """Show that the account is deleted. Its user has no session any more, so that the client is counted by address."""
    await receive(current_services(), quart_request(), None, None)
    return pages.page("account_deleted.html")


async def _page(visit: Visit, typed: str = "", error: ServiceError | None = None) -> Response:
    plan = await deletion.plan(visit.services, visit.caller, visit.token)
    counted = [f"{plan.rows[name]} {_NAMED[name][plan.rows[name] != 1]}" for name in _NAMED if plan.rows[name]]
    return pages.page(
        "account_delete.html", visit=visit, plan=plan, counted=counted, typed=typed, problems=problems.of(error)
    )
