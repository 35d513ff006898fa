"""The pages before and after a session: sign in, come back, sign out."""

from weakref import WeakKeyDictionary

from quart import Blueprint, Response, request

from profilesvc.api.access import services
from profilesvc.api.arrival import asked_now, begin
from profilesvc.contract.errors import AUTH_INVALID_TOKEN
from profilesvc.dashboard import pages
from profilesvc.dashboard.signing_in import Attempt, Provider
from profilesvc.dashboard.visits import COOKIE, Visit, local, view
from profilesvc.domain.errors import ServiceError
from profilesvc.services import oauth2
from profilesvc.services.context import Services

_ATTEMPT = "profilesvc_signin"
_ATTEMPT_SECONDS = 600


def register(blueprint: Blueprint) -> None:
    """Declare them."""
    providers: WeakKeyDictionary[object, Provider] = WeakKeyDictionary()

    async def provider() -> Provider:
        """That of the running services; who asks is counted by address, as at the token route."""
        running = services()
        begin(asked_now())
        await running.limiter.by_address()
        return providers.setdefault(running.signer, Provider(running))

    @blueprint.get("/sign-in")
    async def sign_in() -> Response:
        running = services()
        start = f"{running.settings.base_url}{pages.PATH}/sign-in/start?next={local(request.args.get('next', ''))}"
        demo = running.settings.with_dev_issuer
        return pages.page("sign_in.html", start=start, ended="ended" in request.args, demo=demo)

    @blueprint.get("/sign-in/start")
    async def start() -> Response:
        url, attempt = await (await provider()).begin(local(request.args.get("next", "")))
        response = pages.see(url)
        _set(response, services(), _ATTEMPT, attempt.packed(), _ATTEMPT_SECONDS)
        return response

    @blueprint.get("/callback")
    async def callback() -> Response:
        attempt = Attempt.unpacked(request.cookies.get(_ATTEMPT, ""))
        if attempt is None:
            raise ServiceError(AUTH_INVALID_TOKEN, "This sign-in was not begun in this browser, or too long ago.")
        token = await (await provider()).finish(attempt, request.args.to_dict())
        response = pages.see(local(attempt.then))
        _set(response, services(), COOKIE, token.access_token, token.expires_in)
        response.delete_cookie(_ATTEMPT, path=pages.PATH)
        return response

    @view(blueprint, "/sign-out", "POST")
    async def sign_out(here: Visit) -> Response:
        """The token ends everywhere, not only in this browser."""
        await oauth2.revoke(here.services, here.caller, here.token)
        response = pages.see(f"{pages.PATH}/sign-in")
        response.delete_cookie(COOKIE, path=pages.PATH)
        return response


def _set(response: Response, running: Services, name: str, value: str, seconds: int) -> None:
    response.set_cookie(
        name,
        value,
        max_age=seconds,
        path=pages.PATH,
        secure=running.settings.base_url.startswith("https://"),
        httponly=True,
        samesite="Lax",
    )
