"""The page of the account: its profile, its sessions, its sign-ins, and a copy of its data."""

from functools import partial

from quart import Blueprint, Response, request

from profilesvc.dashboard import cookies, exports, pages, problems
from profilesvc.dashboard.visits import Visit, view
from profilesvc.domain.errors import ServiceError
from profilesvc.services import sessions
from profilesvc.services.accounts import account
from profilesvc.services.accounts import export as account_export

blueprint = Blueprint("account", __name__)
_PATH = f"{pages.PATH}/account"


@view(blueprint, "/account/sign-out", "POST")
async def sign_out_everywhere(visit: Visit) -> Response:
    try:
        problems.require_confirmation("sure" in await request.form)
    except ServiceError as error:
        return await show(visit, error)
    await account.sign_out_everywhere(visit.services, visit.caller)
    response = pages.redirect(f"{pages.PATH}/sign-in")
    cookies.remove(response, visit.services, cookies.SESSION)
    return response


@view(blueprint, "/account/sessions/<session_id>/end", "POST")
async def end_session(visit: Visit, session_id: str) -> Response:
    await sessions.end(visit.services, visit.caller, session_id)
    return pages.redirect(f"{_PATH}#sessions", "session-ended")


@view(blueprint, "/account/sessions/end-others", "POST")
async def end_other_sessions(visit: Visit) -> Response:
    """End all sessions but this one, whose cookie gets a new token."""
    renewed = await sessions.end_others(visit.services, visit.caller, visit.token)
    response = pages.redirect(f"{_PATH}#sessions", "sessions-ended")
    cookies.put(response, visit.services, cookies.SESSION, renewed.token, renewed.seconds)
    return response


@view(blueprint, "/account/data.zip")
async def export(visit: Visit) -> Response:
    """Send a copy of the user's data to download."""
    await account_export.note(visit.services, visit.caller)
    make = partial(account_export.archive, caller=visit.caller)
    return await exports.stream(visit, "my-data", "zip", make)


@view(blueprint, "/account")
async def show(visit: Visit, error: ServiceError | None = None) -> Response:
    user = await account.read(visit.services, visit.caller)
    live = await sessions.list_live(visit.services, visit.caller, visit.token)
    return pages.page(
        "account.html", visit=visit, account=user, sessions=live, problems=problems.from_error(error, "everywhere-")
    )
