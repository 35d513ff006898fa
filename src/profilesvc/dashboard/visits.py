"""Visits: a session that is our own user token in a cookie, and the proof that a form is ours."""

import contextlib
import json
import re
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, cast
from urllib.parse import urlsplit

from quart import Blueprint, Response, request

from profilesvc.api.request import bearer_token, receive, services, this_request
from profilesvc.contract.common import location_name
from profilesvc.contract.errors import AUTH_INSUFFICIENT_PERMISSIONS
from profilesvc.dashboard import cookies, pages
from profilesvc.domain.errors import ServiceError, invalid
from profilesvc.domain.request import current
from profilesvc.limits.limiter import Kind
from profilesvc.services import access, locations
from profilesvc.services.context import Caller, Reached, Services
from profilesvc.tokens.seals import Seal

_LOCAL = re.compile(r"/dashboard(?:/[A-Za-z0-9_/-]*)?\Z", re.ASCII)


@dataclass(frozen=True, slots=True)
class Visit:
    """A request of a user who has signed in. `token` is the session: a user token."""

    services: Services
    caller: Caller
    token: str

    @property
    def csrf(self) -> str:
        """The value that every form carries; only pages of this session have it."""
        return self._seal.seal("form")

    def is_own_form(self, csrf: str) -> bool:
        """Return whether a form with this value comes from a page of this session."""
        return self._seal.opened(csrf) == "form"

    @property
    def _seal(self) -> Seal:
        return Seal(self.services.signer.keyring, f"dashboard form\n{self.token}", self.now)

    @property
    def now(self) -> int:
        """Milliseconds."""
        return self.services.clock.now()

    async def reach(self, location: str) -> Reached:
        """Return the location of a path, if it is the user's.

        Raises:
            ServiceError: VALIDATION_ERROR, NOT_FOUND.
        """
        try:
            name = location_name(location)
        except ValueError as error:
            raise invalid("path", "locationId", str(error)) from None
        return await access.reach(self.services, self.caller, name)

    async def title(self, location: Reached) -> str:
        """Return the name of the site."""
        profile = (await locations.load(self.services, location)).profile
        return str(json.loads(profile or "{}").get("title") or location.name)


View = Callable[..., Awaitable[Response]]


def local(path: str) -> str:
    """Return the path to go on to, or the dashboard's own if it leads elsewhere."""
    return path if _LOCAL.match(path) and "//" not in path else pages.PATH


async def visit() -> Visit:
    """Admit the user of the session.

    Raises:
        ServiceError: AUTH_INVALID_TOKEN if the browser is not signed in, or was signed out since.
    """
    running = services()
    token = cookies.get(running, cookies.SESSION)
    kind: Kind = "reads" if request.method in {"GET", "HEAD"} else "writes"

    async def admit(_is_first: bool) -> Caller:
        proof = bearer_token([f"Bearer {token}"] if token else [])
        return await access.admit(running, current(), proof, access.SESSION, kind)

    caller, _ = await receive(running, this_request(), None, admit)
    assert caller is not None, "`admit` returns one"
    here = Visit(running, caller, token or "")
    cast(dict[str, Any], request.scope)[pages.VISIT] = here
    return here


async def recognise() -> None:
    """Note the user of the session, if there is one: the page of an error then has the navigation."""
    with contextlib.suppress(ServiceError):
        await visit()


def view(blueprint: Blueprint, rule: str, method: str = "GET") -> Callable[[View], View]:
    """Declare a page (GET) or an action (POST) for signed-in users; other visitors are sent to the sign-in."""

    def register(handler: View) -> View:
        async def serve(**path: Any) -> Response:
            try:
                here = await visit()
            except ServiceError as error:
                if not pages.is_signed_out(error):
                    raise
                return _sign_in()
            if method == "GET":
                return await handler(here, **path)
            await _require_ours(here)
            return await here.services.background.finish(_awaited(handler(here, **path)))

        blueprint.add_url_rule(
            rule, f"{handler.__module__.rpartition('.')[2]}_{handler.__name__}", serve, methods=[method]
        )
        return handler

    return register


async def _awaited(answer: Awaitable[Response]) -> Response:
    return await answer


def _sign_in() -> Response:
    asked = request.path if request.method == "GET" and not pages.is_fragment() else pages.PATH
    ended = "" if cookies.get(services(), cookies.SESSION) is None else "&ended=1"
    return pages.see(f"{pages.PATH}/sign-in?next={local(asked)}{ended}")


async def _require_ours(here: Visit) -> None:
    """Refuse a form that is not from one of our own pages, whatever cookie is sent with it.

    Raises:
        ServiceError: AUTH_INSUFFICIENT_PERMISSIONS.
    """
    require_own_origin(here.services)
    if not here.is_own_form((await request.form).get("csrf", "")):
        raise ServiceError(AUTH_INSUFFICIENT_PERMISSIONS, "The form is not from your session; open the page again.")


def require_own_origin(running: Services) -> None:
    """Refuse a request that the browser says was made by a page elsewhere.

    Raises:
        ServiceError: AUTH_INSUFFICIENT_PERMISSIONS.
    """
    own = urlsplit(running.settings.base_url)
    origin = request.headers.get("Origin", f"{own.scheme}://{own.netloc}")
    site = request.headers.get("Sec-Fetch-Site", "same-origin")
    if origin != f"{own.scheme}://{own.netloc}" or site not in {"same-origin", "none"}:
        raise ServiceError(AUTH_INSUFFICIENT_PERMISSIONS, "Forms are accepted only from the dashboard's own pages.")
