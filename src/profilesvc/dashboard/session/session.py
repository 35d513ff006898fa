"""The pages that start and end a session: sign-in, callback and sign-out.

`signing_in.py` is the client of the identity provider. The session is a user token in a cookie, which `visits.py` reads
on each request.
"""

from urllib.parse import quote

from quart import Blueprint, Response, current_app, request

from profilesvc.api.request import current_services
from profilesvc.contract.errors import AUTH_INVALID_TOKEN
from profilesvc.dashboard import cookies, pages
from profilesvc.dashboard.returning import local
from profilesvc.dashboard.session.signing_in import PendingSignIn, Provider
from profilesvc.dashboard.visits import Visit, counted_by_address, view
from profilesvc.domain.errors import ServiceError
from profilesvc.domain.time import SECOND
from profilesvc.services import oauth2

_ATTEMPT_SECONDS = 600
_PROVIDER = "profilesvc.identity_provider"


blueprint = Blueprint("session", __name__)


async def _provider() -> Provider:
    """Return the identity provider, after the client was counted."""
    services, extensions = await counted_by_address(), current_app.extensions
    provider: Provider | None = extensions.get(_PROVIDER)
    if provider is None or provider.services is not services:  # the services are opened again at each start
        provider = extensions[_PROVIDER] = Provider(services)
    return provider


@blueprint.get("/sign-in")
async def sign_in() -> Response:
    services = current_services()
    path = quote(local(request.args.get("next", "")), safe="/")
    start = f"{services.settings.base_url}{pages.PATH}/sign-in/start?next={path}"
    demo = services.settings.with_dev_issuer
    return pages.page("sign_in.html", start=start, ended="ended" in request.args, demo=demo, typed=[])


@blueprint.get("/sign-in/start")
async def start() -> Response:
    provider, again = await _provider(), "again" in request.args
    url, attempt = await provider.begin(local(request.args.get("next", "")), again=again)
    services, response = current_services(), pages.redirect(url)
    sealed = attempt.sealed(services, services.clock.now() + _ATTEMPT_SECONDS * SECOND)
    cookies.put(response, services, cookies.SIGN_IN, sealed, _ATTEMPT_SECONDS)
    return response


@blueprint.get("/callback")
async def callback() -> Response:
    services = current_services()
    attempt = PendingSignIn.opened(services, cookies.get(services, cookies.SIGN_IN) or "")
    if attempt is None:
        raise ServiceError(
            AUTH_INVALID_TOKEN, "This sign-in was not started in this browser, or it has expired. Start again."
        )
    token = await (await _provider()).finish(attempt, request.args.to_dict(), request.headers.get("User-Agent", ""))
    response = pages.redirect(local(attempt.next_path))
    cookies.put(response, services, cookies.SESSION, token.access_token, token.expires_in)
    cookies.remove(response, services, cookies.SIGN_IN)
    return response


@view(blueprint, "/sign-out", "POST")
async def sign_out(visit: Visit) -> Response:
    """End the session's token, not only the cookie of this browser."""
    await oauth2.revoke(visit.services, visit.caller, visit.token)
    response = pages.redirect(f"{pages.PATH}/sign-in")
    cookies.remove(response, visit.services, cookies.SESSION)
    return response
