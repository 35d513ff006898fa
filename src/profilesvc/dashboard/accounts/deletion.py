"""The pages that delete the user's account: what is deleted and what stays, the question, and the end."""

from quart import Blueprint, Response, request

from profilesvc.api.html_forms import TEXTS
from profilesvc.dashboard import cookies, pages, problems
from profilesvc.dashboard.visits import Visit, counted_by_address, view
from profilesvc.domain.errors import ServiceError
from profilesvc.language.texts import NN_, ngettext
from profilesvc.services.accounts import deletion

blueprint = Blueprint("deletion", __name__)
_PATH, _DONE = "/account/delete", "/account-deleted"
# The tables that a person knows, with their names, one and several.
_NAMED = {
    "locations": NN_("%(num)s site", "%(num)s sites"),
    "keys": NN_("%(num)s API key", "%(num)s API keys"),
    "posts": NN_("%(num)s copy of a post", "%(num)s copies of posts"),
    "drafts": NN_("%(num)s draft", "%(num)s drafts"),
    "photos": NN_("%(num)s photo", "%(num)s photos"),
    "reply_templates": NN_("%(num)s template of a reply", "%(num)s templates of replies"),
    "provider_connections": NN_("%(num)s login at the provider", "%(num)s logins at the provider"),
    "channels": NN_("%(num)s webhook or address for alerts", "%(num)s webhooks and addresses for alerts"),
    "syncs": NN_("%(num)s entry of the sync history", "%(num)s entries of the sync history"),
}


@view(blueprint, _PATH, "POST", TEXTS)
async def delete(visit: Visit) -> Response:
    typed = (await request.form).get("email", "")
    try:
        await deletion.request_own(visit.services, visit.caller, visit.token, typed)
    except ServiceError as error:
        return await show(visit, typed, error)
    response = pages.redirect(f"{pages.PATH}{_DONE}")
    cookies.remove(response, visit.services, cookies.SESSION)
    return response


@blueprint.get(_DONE)
async def deleted() -> Response:
    """Show that the account is deleted. Its user has no session any more."""
    await counted_by_address()
    return pages.page("account_deleted.html")


@view(blueprint, _PATH)
async def show(visit: Visit, typed: str = "", error: ServiceError | None = None) -> Response:
    plan = await deletion.plan(visit.services, visit.caller, visit.token)
    counted = [ngettext(*_NAMED[name], plan.rows[name]) for name in _NAMED if plan.rows[name]]
    return pages.page(
        "account_delete.html", visit=visit, plan=plan, counted=counted, typed=typed, problems=problems.from_error(error)
    )
